import { afterEach, beforeEach, expect, test } from "vitest";
import type { ColumnSpec } from "../../format/types.ts";
import { createQueryHarness, type QueryHarness } from "../query.test-kit.ts";

let harness: QueryHarness;
beforeEach(() => {
  harness = createQueryHarness();
});
afterEach(() => harness.close());

const at: ColumnSpec = { name: "at", type: { kind: "timestamp" } };
const text = (name: string): ColumnSpec => ({ name, type: { kind: "string" } });

test("a column that no file has is NULL, whatever DuckDB would make of its name", async () => {
  const names = ["x", "filename", "file_row_number", "FILE_INDEX", "rowid"];
  for (const missing of names) {
    const table = `t_${missing}`;
    const rows = [{ at: 1n, a: "1" }];
    await harness.addTable(
      "default",
      table,
      [at, text("a"), text(missing)],
      [
        { format: "parquet", columns: [at, text("a")], rows },
        { format: "parquet", columns: [at, text("a")], rows },
      ],
    );
    expect(await harness.rows(`SELECT a, ${missing} AS found FROM ${table}`)).toEqual([
      { a: "1", found: null },
      { a: "1", found: null },
    ]);
  }
});

test("a column that only a later file has is read from there", async () => {
  await harness.addTable(
    "default",
    "t",
    [at, text("a"), text("b")],
    [
      { format: "parquet", columns: [at, text("a")], rows: [{ at: 1n, a: "1" }] },
      { format: "parquet", columns: [at, text("b")], rows: [{ at: 2n, b: "2" }] },
    ],
  );
  expect(await harness.rows("SELECT a, b FROM t ORDER BY at")).toEqual([
    { a: "1", b: null },
    { a: null, b: "2" },
  ]);
  expect(await harness.rows("SELECT count(*) AS n FROM t")).toEqual([{ n: 2 }]);
});

test("files of many different columns are read by name", async () => {
  const names = Array.from({ length: 40 }, (_, i) => `c${i}`);
  const extents = names.map((name, i) => ({
    format: "parquet" as const,
    columns: [at, text(name)],
    rows: [{ at: BigInt(i), [name]: `${i}` }],
  }));
  await harness.addTable("default", "t", [at, ...names.map(text), text("never")], extents);
  const rows = await harness.rows("SELECT * FROM t ORDER BY at");
  const values = rows.map((row) => names.flatMap((name) => row[name] ?? []));
  expect(values).toEqual(names.map((_, i) => [`${i}`]));
  expect(rows.every((row) => row["never"] === null)).toBe(true);
  expect(await harness.rows("SELECT count(c7) AS some, count(*) AS n, any_value(c39) AS last FROM t")).toEqual([
    { some: 1, n: 40, last: "39" },
  ]);
});
