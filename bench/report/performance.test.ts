import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { distancesIn } from "./limits.ts";
import { performanceDoc } from "./performance.ts";
import { resultOf, summaryOf } from "./report.test-kit.ts";

test("docs/performance.md is what the goals and the kept results say: run `npm run docs`", async () => {
  const written = readFileSync(new URL("../../docs/performance.md", import.meta.url), "utf8");
  expect(written).toBe(await performanceDoc());
});

test("the distance from a limit is of the machine of the run; a run beside other work says nothing", () => {
  const scan = { measure: "scan" };
  const scanner = resultOf({
    benchmark: "kernel/scanner",
    summary: [summaryOf("scanner", 838.86, null, scan), summaryOf("JSON.parse", 200, 4, scan)],
  });
  const spent = { cpuSeconds: {}, threadSeconds: {}, peakBytes: {}, values: {} };
  const bodies = resultOf({
    benchmark: "load/bodies",
    summary: [summaryOf("engine", 5, null, { measure: "wait", unit: "ms", better: "less" })],
    rounds: [{ engine: { ...spent, wallSeconds: 2, bytesToDisk: { server: 83_886_080 } } }],
  });
  expect(distancesIn([bodies, scanner]).map(({ limit, says }) => [limit, says])).toEqual([
    ["memory, copied by one core", "10 % of it"],
    ["JSON.parse of each line", "4.2× of it"],
    ["one fsync of a page, median", "10× as long"],
    ["disk, written in sequence", "10 % of it"],
  ]);
  const noise = { ...scanner.noise, clockStepMs: 60_000 };
  expect(distancesIn([{ ...scanner, noise }])).toEqual([]);
});
