import { MIGRATIONS } from "../../catalog/migrations.test-kit.ts";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Catalog, ExtentRecord, NewExtent } from "../../catalog/catalog.ts";
import { openSqliteCatalog } from "../../catalog/sqlite/sqlite.ts";
import type { StatsTest } from "../../catalog/stats-predicates.ts";
import { systemClock } from "../../core/clock.ts";
import { silentLog } from "../../core/log.ts";
import { checksumOf } from "../../format/checksum.ts";
import { filtersOf } from "../../format/columns/column-filters.ts";
import { ColumnSet } from "../../format/columns/column-set.ts";
import { textsOf } from "../../format/filter/filter.test-kit.ts";
import { buildGramFilter } from "../../format/filter/gram-filter.ts";
import { byteScanner } from "../../format/ndjson/byte-scanner.ts";
import type { ColumnSpec } from "../../format/types.ts";
import { pruneByFilters } from "./filter-rule.ts";

const EXTENTS = 50;
const ROWS = 1_000;
const COLUMNS: ColumnSpec[] = [
  { name: "at", type: { kind: "timestamp" } },
  { name: "trace", type: { kind: "string" } },
  { name: "body", type: { kind: "string" } },
  { name: "level", type: { kind: "string" } },
];

type Row = { trace: string; body: string; level: string };

/** Every extent's bodies have a word of their own. */
const WORDS = Array.from({ length: EXTENTS }, (_, extent) => `shard${String.fromCodePoint(0x3041 + extent)}gone`);
const rowOf = (extent: number, row: number): Row => ({
  // Spread so that every extent spans all traces.
  trace: Math.imul(extent * ROWS + row, 0x9e3779b1)
    .toString(16)
    .padStart(9, "0"),
  body: row % 100 === 7 ? `lost ${WORDS[extent]} at ${row}` : "request handled in time",
  level: ["INFO", "WARN"][row % 2] ?? "",
});
const ROWS_OF = Array.from({ length: EXTENTS }, (_, extent) =>
  Array.from({ length: ROWS }, (_row, i) => rowOf(extent, i)),
);

let folder: string;
let catalog: Catalog;
let tableId: number;
let extents: ExtentRecord[];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "engine-filters-"));
  catalog = await openSqliteCatalog({
    path: join(folder, "c.db"),
    clock: systemClock,
    log: silentLog,
    migrations: MIGRATIONS,
    mode: "server",
  });
  const { table } = await catalog.createTable({ database: "default", name: "logs", columns: COLUMNS });
  tableId = table.id;
  const commit = { tableId, schemaVersion: table.schemaVersion, newColumns: [], ledger: [] };
  await catalog.commit([{ ...commit, extents: ROWS_OF.map((rows, i) => extentOf(rows, `extent ${i}`)) }]);
  // Written before there were filters.
  const { filters: _, ...plain } = extentOf(ROWS_OF[0] ?? [], "plain");
  await catalog.commit([{ ...commit, extents: [plain] }]);
  extents = await catalog.extents(tableId, 2);
});
afterAll(async () => {
  await catalog.close();
  rmSync(folder, { recursive: true });
});

/** As ingest seals it, and with a filter of what the bodies have inside. */
function extentOf(rows: readonly Row[], id: string): NewExtent {
  const set = new ColumnSet(COLUMNS);
  const bytes = Buffer.from(rows.map((row) => JSON.stringify(row)).join("\n"));
  byteScanner.scan({ bytes, evolve: false, arrivedAtNs: 5n }, set);
  const stats = set.columns.map((column) => column.stats(set.rows));
  const filters = filtersOf(set.columns, stats, bytes.length);
  const grams = buildGramFilter(textsOf(rows.map(({ body }) => body)));
  if (grams !== undefined) filters.push({ name: "body", kind: "grams", bytes: grams });
  const described = { id, key: id, format: "tlm", formatVersion: 1, rows: rows.length, sizeBytes: 100 } as const;
  return { ...described, checksum: checksumOf(bytes), minAtNs: 5n, maxAtNs: 5n, stats, filters };
}

const equal = (column: string, ...texts: string[]): StatsTest => ({
  kind: "within",
  column,
  ranges: texts.toSorted().map((text) => ({ min: text, max: text })),
});
const contains = (column: string, ...needles: string[]): StatsTest => ({ kind: "contains", column, needles });

/** Extents left over of the fifty; the one without filters always is. */
async function kept(...tests: readonly StatsTest[][]): Promise<number[]> {
  const readers = tests.map((own) => ({ range: {}, tests: own }));
  const pruned = await pruneByFilters(catalog, tableId, extents, readers);
  const gone = EXTENTS + 1 - pruned.extents.length;
  expect(pruned.prunedByFilters).toEqual({ extents: gone, sizeBytes: gone * 100 });
  expect(pruned.extents.at(-1)?.id).toBe("plain");
  return pruned.extents.slice(0, -1).map(({ id }) => Number(id.slice("extent ".length)));
}

const traceOf = (extent: number, row: number): string => rowOf(extent, row).trace;

describe("pruning by filters", () => {
  it("leaves one of fifty extents for a trace, and as many as a list names", async () => {
    expect(await kept([equal("trace", traceOf(17, 400))])).toEqual([17]);
    expect(await kept([equal("TRACE", traceOf(3, 1), traceOf(44, 998), "missing")])).toEqual([3, 44]);
    expect(await kept([equal("trace", "missing")])).toEqual([]);
  });

  it("leaves those whose text may have the needle inside", async () => {
    expect(await kept([contains("body", WORDS[21] ?? "")])).toEqual([21]);
    expect(await kept([contains("body", "lost", (WORDS[9] ?? "").slice(2, 8))])).toEqual([9]);
    expect(await kept([contains("body", "andled in ti")])).toHaveLength(EXTENTS);
    expect(await kept([contains("body", "refused")])).toEqual([]);
    expect(await kept([contains("body", "xyz")])).toHaveLength(EXTENTS);
  });

  it("joins what AND and OR join", async () => {
    const trace = equal("trace", traceOf(5, 1));
    const word = contains("body", WORDS[6] ?? "");
    expect(await kept([trace, word])).toEqual([]);
    expect(await kept([{ kind: "any", of: [trace, word] }])).toEqual([5, 6]);
    expect(await kept([{ kind: "any", of: [trace, { kind: "all", of: [word, equal("level", "INFO")] }] }])).toEqual([
      5, 6,
    ]);
    expect(await kept([{ kind: "any", of: [trace, equal("level", "INFO")] }])).toHaveLength(EXTENTS);
    expect(await kept([{ kind: "any", of: [] }])).toHaveLength(EXTENTS);
  });

  it("leaves what any reader of the table needs", async () => {
    expect(await kept([equal("trace", traceOf(5, 1))], [equal("trace", traceOf(6, 2))])).toEqual([5, 6]);
    expect(await kept([equal("trace", traceOf(5, 1))], [])).toHaveLength(EXTENTS);
    expect(await kept()).toHaveLength(EXTENTS);
  });

  it("says nothing about ranges, nulls, columns without filters or unknown ones, and lists too long to ask for", async () => {
    const many = Array.from({ length: 2_000 }, (_, i) => `absent ${i}`);
    const silent: StatsTest[] = [
      { kind: "within", column: "trace", ranges: [{ min: "0", max: "1" }] },
      { kind: "within", column: "trace", ranges: [{ min: "0" }] },
      { kind: "within", column: "at", ranges: [{ min: 5n, max: 5n }] },
      { kind: "within", column: "trace", ranges: [] },
      { kind: "null", column: "trace" },
      { kind: "not_null", column: "trace" },
      equal("level", "INFO"),
      equal("unknown", "x"),
      contains("trace", "abcdef"),
      equal("trace", ...many),
    ];
    for (const test of silent) expect([test, await kept([test])]).toEqual([test, Array.from(ROWS_OF.keys())]);
  });

  it("asks no more than a bounded number of times", async () => {
    const tests = Array.from({ length: 40 }, (_, i) => equal("trace", traceOf(i, 1)));
    expect(await kept([{ kind: "any", of: tests }])).toHaveLength(EXTENTS);
    expect(await kept([equal("trace", traceOf(2, 1)), { kind: "any", of: tests }])).toEqual([2]);
  });

  it("never leaves out an extent that has a row which passes", async () => {
    const place = fc.tuple(fc.nat(EXTENTS - 1), fc.nat(ROWS - 1));
    const leaf: fc.Arbitrary<StatsTest> = fc.oneof(
      fc.array(place, { minLength: 1, maxLength: 4 }).map((of) => equal("trace", ...of.map(([e, r]) => traceOf(e, r)))),
      place.map(([e, r]) => contains("body", rowOf(e, r).body.slice(r % 9, (r % 9) + 3 + (e % 20)))),
      fc.constantFrom(equal("level", "INFO"), equal("level", "none"), equal("trace", "missing")),
    );
    const tree = fc.letrec<{ test: StatsTest }>((tie) => ({
      test: fc.oneof(
        { depthSize: "small", withCrossShrink: true },
        leaf,
        fc.array(tie("test"), { minLength: 1, maxLength: 3 }).map((of): StatsTest => ({ kind: "all", of })),
        fc.array(tie("test"), { minLength: 1, maxLength: 3 }).map((of): StatsTest => ({ kind: "any", of })),
      ),
    })).test;
    await fc.assert(
      fc.asyncProperty(tree, async (test) => {
        const left = new Set(await kept([test]));
        const needed = [...ROWS_OF.keys()].filter((extent) => ROWS_OF[extent]?.some((row) => passes(test, row)));
        expect(needed.filter((extent) => !left.has(extent))).toEqual([]);
      }),
      { numRuns: 60 },
    );
  });
});

function passes(test: StatsTest, row: Row): boolean {
  if (test.kind === "all") return test.of.every((part) => passes(part, row));
  if (test.kind === "any") return test.of.some((part) => passes(part, row));
  const value = row[test.column as keyof Row];
  if (test.kind === "contains") return test.needles.every((needle) => value.includes(needle));
  if (test.kind === "within") return test.ranges.some(({ min }) => min === value);
  throw new Error(test.kind);
}
