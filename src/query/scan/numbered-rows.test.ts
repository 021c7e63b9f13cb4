import { afterAll, beforeAll, expect, test } from "vitest";
import { ANONYMOUS } from "../../auth/caller.ts";
import type { PlannedExtent } from "../../catalog/catalog.ts";
import type { ColumnSpec, ExtentFormat } from "../../format/types.ts";
import { TAG_COLUMN } from "../parse/row-condition.ts";
import { createQueryHarness, type QueryHarness } from "../query.test-kit.ts";
import { atPlace, placeOf } from "./numbered-rows.ts";

/** Rows of extents of both formats by their places, as live tails read them: by queries. */

const COLUMNS: ColumnSpec[] = [
  { name: "at", type: { kind: "timestamp" } },
  { name: "n", type: { kind: "int" } },
  // DuckDB has a column of its own of that name.
  { name: "file_row_number", type: { kind: "long" } },
];
const PLAIN = COLUMNS.slice(0, 2);
const EXTENTS: readonly { format: ExtentFormat; columns: readonly ColumnSpec[]; count: number }[] = [
  { format: "tlm", columns: COLUMNS, count: 5_000 },
  { format: "parquet", columns: PLAIN, count: 5_000 },
  { format: "parquet", columns: COLUMNS, count: 5_000 },
  { format: "tlm", columns: PLAIN, count: 3 },
];

let harness: QueryHarness;
beforeAll(async () => {
  harness = createQueryHarness();
  await harness.addTable(
    "default",
    "t",
    COLUMNS,
    EXTENTS.map(({ format, columns, count }, extent) => ({
      format,
      columns,
      rows: Array.from({ length: count }, (_, row) => ({
        // Times say nothing of the order of rows.
        at: BigInt((row * 7_919) % 1_000),
        n: extent * 10_000 + row,
        ...(columns === COLUMNS && { file_row_number: -7n }),
      })),
    })),
  );
});
afterAll(() => harness.close());

const planned: PlannedExtent[] = EXTENTS.map(({ format, columns, count }, i) => ({
  id: `extent-${i}`,
  key: `default/t/${i}.${format}`,
  format,
  formatVersion: 1,
  rows: count,
  sizeBytes: 1_000,
  checksum: "",
  minAtNs: 0n,
  maxAtNs: 1_000n,
  tableId: 1,
  schemaVersion: 1,
  beginSnapshot: 1,
  columns: columns.map(({ name }) => name),
}));

async function read(text: string, { from = 0, limit = 1_000_000, more = [] as string[] } = {}) {
  const { signal } = new AbortController();
  const selection = { table: "t", rows: "tailed", more, limit } as const;
  const tailing = { selection, tableId: 1, extents: planned, from };
  const request = { caller: ANONYMOUS, database: "default", text, requestId: "test", signal, tailing };
  const { body } = await harness.service.run(request);
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  const lines = Buffer.concat(chunks).toString("utf8").trimEnd().split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as Record<string, string | number>);
}

const placesOf = (rows: readonly Record<string, string | number>[]) =>
  rows.map((row) => Number(String(row[TAG_COLUMN]).split(" ")[0]));

test("every row has the place that its file gives it, in order", async () => {
  const rows = await read("true");
  expect(rows).toHaveLength(15_003);
  for (const row of rows) {
    const { extent, row: number } = atPlace(Number(row[TAG_COLUMN]));
    expect(row["n"]).toBe(extent * 10_000 + number);
    expect(row["file_row_number"]).toBe(extent === 0 || extent === 2 ? -7 : null);
  }
  expect(placesOf(rows)).toEqual(placesOf(rows).toSorted((a, b) => a - b));
});

test("rows are those from a place on, at most so many, of those that the condition is true of", async () => {
  expect(placesOf(await read("true", { from: placeOf(0, 4_998), limit: 4 }))).toEqual([
    placeOf(0, 4_998),
    placeOf(0, 4_999),
    placeOf(1, 0),
    placeOf(1, 1),
  ]);
  const last = await read("n % 2 = 0", { from: placeOf(2, 4_997) });
  expect(placesOf(last)).toEqual([placeOf(2, 4_998), placeOf(3, 0), placeOf(3, 2)]);
  expect(await read("NULL")).toEqual([]);
});

test("a row says which of several conditions are true of it", async () => {
  const rows = await read("n = 0", { more: ["n IN (0, 1)", "n = 2", "NULL", "n = 0 OR n = 10000"] });
  expect(rows.map((row) => row[TAG_COLUMN])).toEqual(["0 0 1 4", "1 1", "2 2", `${placeOf(1, 0)} 4`]);
});

test("no column of ours is shown", async () => {
  const [row] = await read("n = 1");
  expect(Object.keys(row ?? {})).toEqual([TAG_COLUMN, "at", "n", "file_row_number"]);
});

test("another table of that name is none", async () => {
  const { signal } = new AbortController();
  const selection = { table: "t", rows: "tailed", more: [], limit: 1 } as const;
  const tailing = { selection, tableId: 99, extents: [], from: 0 };
  const request = { caller: ANONYMOUS, database: "default", text: "true", requestId: "test", signal, tailing };
  await expect(harness.service.run(request)).rejects.toMatchObject({ code: "table_not_found" });
});
