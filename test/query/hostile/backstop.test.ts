import { afterEach, beforeEach, expect, test } from "vitest";
import { abuseHarness } from "./abuse-rounds.test-kit.ts";
import { type Backstop, withBackstop } from "./backstop.test-kit.ts";
import type { QueryHarness } from "../../../src/query/query.test-kit.ts";

const WIDE: Backstop = { timeMs: 30_000, memoryBytes: 2 ** 33, diskBytes: 2 ** 33 };
/** Each would end by its budget of time, thirty seconds later than here. */
const SLOW = "SELECT count(*) FROM range(1_000_000_000) a(x), range(1_000_000_000) b(y) WHERE x + y < 0";
const SPILLS = "SELECT x FROM range(20_000_000) a(x) ORDER BY hash(x) LIMIT 1 OFFSET 19_999_999";

let harness: QueryHarness;
beforeEach(async () => {
  harness = await abuseHarness();
});
afterEach(() => harness.close());

test.runIf(process.platform === "linux").each<[string, Partial<Backstop>, string]>([
  ["time", { timeMs: 300 }, SLOW],
  ["memory", { memoryBytes: 2 ** 20 }, SLOW],
  ["disk", { diskBytes: 2 ** 20 }, SPILLS],
])("ends a query that takes more %s than it may ever", async (_what, limits, sql) => {
  const [name] = Object.keys(limits);
  const backstop = { ...WIDE, ...limits };
  await expect(withBackstop(harness, () => harness.text(sql), backstop)).rejects.toThrow(
    `no budget ended it: ${name} `,
  );
  expect(await withBackstop(harness, () => harness.rows("SELECT 1 AS a"))).toEqual([{ a: 1 }]);
});

test("leaves errors of the query as they are", async () => {
  await expect(withBackstop(harness, () => harness.text("SELECT nope"))).rejects.toMatchObject({
    code: "invalid_query",
  });
});
