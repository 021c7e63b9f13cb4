import { afterAll, beforeAll, expect, test } from "vitest";
import { BOMBS, detonate, isExpectedEnding } from "./bombs.test-kit.ts";
import { createQueryHarness, type QueryHarness } from "../../../src/query/query.test-kit.ts";

const WALL_MS = 250;
/** The rest is for a machine that has other things to do. */
const LATEST_MS = WALL_MS + 2_000;

let harness: QueryHarness;

beforeAll(async () => {
  const memoryBytes = 128 * 1024 * 1024;
  harness = createQueryHarness({ pool: { children: 3, memoryBytes }, service: { memoryBytes } });
  const columns = [
    { name: "at", type: { kind: "timestamp" } },
    { name: "label", type: { kind: "string" } },
  ] as const;
  await harness.addTable("default", "logs", columns, [{ format: "tlm", columns, rows: [{ at: 1n, label: "x" }] }]);
});

afterAll(() => harness.close());

test.each(Object.entries(BOMBS))("%s", async (name, bomb) => {
  const { code, message, tookMs } = await detonate(harness, bomb, WALL_MS);
  expect({ isExpected: isExpectedEnding(name, code), code, message }).toEqual({ isExpected: true, code, message });
  expect(message.length).toBeLessThan(2_000);
  expect(tookMs).toBeLessThan(LATEST_MS);
  expect(await harness.rows("SELECT count(*) AS n FROM logs")).toEqual([{ n: 1 }]);
});
