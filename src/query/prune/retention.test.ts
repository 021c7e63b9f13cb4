import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { systemClock } from "../../core/clock.ts";
import type { ColumnSpec, ExtentFormat } from "../../format/types.ts";
import { createQueryHarness, type QueryHarness } from "../query.test-kit.ts";

let harness: QueryHarness;

afterEach(() => harness.close());

const at: ColumnSpec = { name: "at", type: { kind: "timestamp" } };
const body: ColumnSpec = { name: "body", type: { kind: "string" } };
const DAY_NS = 86_400_000_000_000n;
const NOW_NS = BigInt(systemClock.nowMs()) * 1_000_000n;

/** Rows so many days old. */
const daysOld = (...days: readonly number[]) =>
  days.map((age) => ({ at: NOW_NS - (BigInt(Math.round(age * 100)) * DAY_NS) / 100n, body: `${age}` }));

/**
 * Retention is three days: of the extents one is past it, one reaches beyond it in each format, and two lie within. The
 * row of 2.9 days is the oldest that may be seen.
 */
async function addTable(formats: readonly ExtentFormat[]): Promise<void> {
  const ages = [[9, 8], [5, 2.9], [4, 1], [2, 1.5], [0.5]];
  const extents = ages.map((days, i) => ({
    format: formats[i % formats.length] ?? "tlm",
    columns: i === 4 ? [at] : [at, body],
    rows: daysOld(...days),
    snapshot: i + 1,
  }));
  await harness.addTable("default", "t", [at, body], extents);
  harness.setRetention("t", 3);
}

const VISIBLE = 5;

describe.each([
  ["in place", true],
  ["through the cache", false],
])("rows past their retention, %s", (_name, local) => {
  beforeEach(() => {
    harness = createQueryHarness({ local });
  });

  test.each<[string, ExtentFormat[]]>([
    ["tlm", ["tlm"]],
    ["Parquet", ["parquet"]],
    ["both", ["tlm", "parquet"]],
  ])("are in no answer: %s", async (_format, formats) => {
    await addTable(formats);
    const one = async (sql: string) => Object.values((await harness.rows(sql))[0] ?? {})[0];
    expect(await one("SELECT count(*) FROM t")).toBe(VISIBLE);
    expect(await one("SELECT count(body) FROM t")).toBe(VISIBLE - 1);
    expect(await one("SELECT count(at) FROM t")).toBe(VISIBLE);
    expect(await one("SELECT count(*) FROM t WHERE at < now()")).toBe(VISIBLE);
    expect(await one("SELECT max(body) FROM t")).toBe("2.9");
    expect(await one("SELECT min(at) >= now() - INTERVAL 3 DAY FROM t")).toBe(true);
    expect(await one("SELECT count(*) FROM t WHERE body IN ('9', '5', '4')")).toBe(0);
    expect(await one("SELECT count(*) FROM t AS a JOIN t AS b ON a.at = b.at")).toBe(VISIBLE);
    expect(await one("WITH c AS (SELECT * FROM t) SELECT count(*) FROM c")).toBe(VISIBLE);
    const ages = (await harness.rows("SELECT body FROM t ORDER BY at")).map((row) => row["body"]);
    expect(ages).toEqual(["2.9", "2", "1.5", "1", null]);
    expect(await harness.rows("SELECT body FROM t ORDER BY at LIMIT 1")).toEqual([{ body: "2.9" }]);
    expect(await harness.rows("SELECT body FROM t ORDER BY at DESC LIMIT 2")).toEqual([{ body: null }, { body: "1" }]);
    const [summary] = await harness.rows("SUMMARIZE SELECT body FROM t");
    expect(summary).toMatchObject({ count: VISIBLE, max: "2.9" });
    expect(await one("SELECT count(*) FROM t WHERE at < now() - INTERVAL 3 DAY")).toBe(0);
    const pivot = await harness.rows("PIVOT t ON body USING count(*)");
    expect(Object.keys(pivot[0] ?? {})).not.toContain("5");
    // An older snapshot shows no more of them.
    expect(await one("SELECT count(*) FROM t AT (VERSION => 1)")).toBe(0);
    expect(await one("SELECT count(*) FROM t AT (VERSION => 3)")).toBe(2);
  });

  test("are back when the retention is lifted, and nobody asks more of tables without one", async () => {
    await addTable(["parquet", "tlm"]);
    harness.setRetention("t", undefined);
    expect(await harness.rows("SELECT count(*) AS n FROM t")).toEqual([{ n: 9 }]);
  });

  test("are not looked for where there are none: extents within are counted by the catalog, those past it not opened", async () => {
    await addTable(["parquet"]);
    const plan = await harness.text("EXPLAIN ANALYZE SELECT count(*) FROM t");
    // Two files reach beyond; the other two are a number.
    expect(plan).toContain("Total Files Read: 2");
    harness.setRetention("t", 10_000);
    const whole = await harness.text("EXPLAIN ANALYZE SELECT count(*) FROM t");
    expect(whole).not.toContain("Files Read");
    expect(await harness.rows("SELECT count(*) AS n FROM t")).toEqual([{ n: 9 }]);
  });
});
