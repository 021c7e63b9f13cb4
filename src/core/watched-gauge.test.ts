import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { WatchedGauge } from "./watched-gauge.ts";

const NAME = "engine_test_depth";

async function linesOf(registry: Registry): Promise<string[]> {
  return (await registry.metrics()).split("\n").filter((line) => line.startsWith(NAME));
}

test("a gauge without anything to watch has no sample, nor has one that tells nothing", async () => {
  const registry = new Registry();
  const gauge = new WatchedGauge({ name: NAME, help: "Depth.", registers: [registry] });
  expect(await linesOf(registry)).toEqual([]);
  let depth: number | undefined = 3;
  gauge.watch({}, () => depth);
  expect(await linesOf(registry)).toEqual([`${NAME} 3`]);
  depth = undefined;
  expect(await linesOf(registry)).toEqual([]);
  gauge.watch({}, async () => 5);
  expect(await linesOf(registry)).toEqual([`${NAME} 5`]);
});

test("labels are told apart, and each is asked anew", async () => {
  const registry = new Registry();
  const gauge = new WatchedGauge({ name: NAME, help: "Depth.", labelNames: ["pool"], registers: [registry] });
  let reads = 0;
  gauge.watch({ pool: "read" }, () => ++reads);
  gauge.watch({ pool: "write" }, () => (reads < 2 ? 7 : undefined));
  expect(await linesOf(registry)).toEqual([`${NAME}{pool="read"} 1`, `${NAME}{pool="write"} 7`]);
  expect(await linesOf(registry)).toEqual([`${NAME}{pool="read"} 2`]);
});
