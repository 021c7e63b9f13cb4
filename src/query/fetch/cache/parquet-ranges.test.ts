import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { drawnRandom } from "../../../core/drawn-seed.test-kit.ts";
import { ParquetFooterError } from "../../../format/parquet-footer.ts";
import type { ColumnSpec } from "../../../format/types.ts";
import { loadDuckDb, quoteText, runSql } from "../../../io/duckdb/duckdb.ts";
import { tlmToParquet } from "../../../io/duckdb/parquet.test-kit.ts";
import { tlmFixture } from "../../../io/duckdb/tlm.test-kit.ts";
import type { ByteRange } from "./extent-source.ts";
import { locateFooter, missingFrom, rangesOf, type LocatedFooter } from "./parquet-ranges.ts";

/** Wide enough for a footer that does not fit into the first request. */
const COLUMNS: ColumnSpec[] = [
  { name: "at", type: { kind: "timestamp" } },
  { name: "v", type: { kind: "vector", dimensions: 2 } },
  ...Array.from({ length: 800 }, (_, n): ColumnSpec => ({ name: `column ${n}`, type: { kind: "string" } })),
];

let folder: string;
let file: Uint8Array;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "engine-ranges-test-"));
  const rows = Array.from({ length: 40 }, (_, n) => ({
    at: BigInt(n),
    v: [n, 1],
    ...Object.fromEntries(COLUMNS.slice(2).map(({ name }) => [name, `${name} ${n % 4}`])),
  }));
  file = await tlmToParquet(tlmFixture(COLUMNS, rows));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const locate = (bytes: Uint8Array, reads: ByteRange[] = []): Promise<LocatedFooter> =>
  locateFooter(bytes.length, (range) => {
    reads.push(range);
    return Promise.resolve(bytes.subarray(range.offset, range.offset + range.sizeBytes));
  });

test("the footer says the same as DuckDB's own reader", async () => {
  const reads: ByteRange[] = [];
  const { footer, footerBytes } = await locate(file, reads);
  expect(footerBytes).toBeGreaterThan(64 * 1024);
  expect(reads).toHaveLength(2);
  const path = join(folder, "x.parquet");
  writeFileSync(path, file);
  const duckdb = await loadDuckDb();
  const connection = await duckdb.connect(await duckdb.open(":memory:"));
  const rows = await runSql(
    duckdb,
    connection,
    `SELECT path_in_schema, coalesce(dictionary_page_offset, data_page_offset), total_compressed_size,
       bloom_filter_offset, bloom_filter_length::BIGINT FROM parquet_metadata(${quoteText(path)})`,
  );
  const expected = rows.flatMap(([name, offset, size, bloom, bloomSize]) => {
    const column = name?.split(", ")[0];
    const parts = [{ column, offset: Number(offset), sizeBytes: Number(size) }];
    if (bloom !== null) parts.push({ column, offset: Number(bloom), sizeBytes: Number(bloomSize) });
    return parts;
  });
  expect(footer.parts).toEqual(expected);
  expect(footer.rows).toBe(40);
});

test("a footer with any bytes changed is read or refused, and its ranges stay inside of the file", async () => {
  const random = drawnRandom();
  const below = (limit: number): number => Math.floor(random.next() * limit);
  const { footerBytes } = await locate(file);
  const outside: ByteRange[] = [];
  let refused = 0;
  for (let run = 0; run < 400; run++) {
    const bytes = Uint8Array.from(file);
    for (let n = below(6); n >= 0; n--) bytes[bytes.length - 1 - below(footerBytes)] = below(256);
    const ranges = await locate(bytes).then(
      ({ footer }) => rangesOf(footer, ["at", "v", "column 7"]),
      (error: unknown) => error,
    );
    if (ranges instanceof ParquetFooterError) refused++;
    else if (!Array.isArray(ranges)) throw ranges;
    else outside.push(...ranges.filter(({ offset, sizeBytes }) => offset + sizeBytes > bytes.length));
  }
  expect(outside).toEqual([]);
  expect(refused).toBeGreaterThan(10);
});

test("what is missing of some ranges is what is in them and not in others", () => {
  const range = fc.record({ offset: fc.nat(60), sizeBytes: fc.integer({ min: 1, max: 20 }) });
  const placesOf = (ranges: readonly ByteRange[]): Set<number> =>
    new Set(ranges.flatMap(({ offset, sizeBytes }) => Array.from({ length: sizeBytes }, (_, n) => offset + n)));
  fc.assert(
    fc.property(fc.array(range, { maxLength: 5 }), fc.array(range, { maxLength: 5 }), (wanted, stored) => {
      const have = placesOf(stored);
      const missing = [...placesOf(wanted)].filter((place) => !have.has(place));
      expect(placesOf(missingFrom(wanted, stored))).toEqual(new Set(missing));
    }),
  );
});
