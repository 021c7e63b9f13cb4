import { afterAll, beforeAll, expect, test } from "vitest";
import { systemClock } from "../../core/clock.ts";
import { silentLog } from "../../core/log.ts";
import type { RecordRow } from "../../db/records.ts";
import { EngineRegistry, type EngineRegistryOptions } from "./registry.ts";
import { scriptedTrino, type ScriptedTrino } from "./trino/scripted-trino.test-kit.ts";

let trino: ScriptedTrino;
beforeAll(async () => {
  trino = await scriptedTrino();
});
afterAll(() => trino.close());

/** Over a catalog that answers each read with the next of these. */
function registryOver(...reads: readonly RecordRow[][]): EngineRegistry {
  const left = [...reads];
  const records = { rows: () => Promise.resolve(left.shift() ?? []) };
  const options = { clock: systemClock, log: silentLog, records };
  return new EngineRegistry(options as unknown as EngineRegistryOptions);
}

test("a query is ended at its engine, also when the engine is removed meanwhile", async () => {
  const row = { name: "trino", kind: "trino", url: trino.url, default_catalog: "lake" };
  await registryOver([row]).cancel("trino", "q1");
  expect(trino.ended).toEqual(["q1"]);
});

test("a query of an engine that is gone is not ended", async () => {
  trino.ended.length = 0;
  await registryOver().cancel("trino", "q1");
  await registryOver([{ name: "other" }]).cancel("tr\0ino", "q1");
  expect(trino.ended).toEqual([]);
});
