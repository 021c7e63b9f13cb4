import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { drawnSeed } from "../core/drawn-seed.test-kit.ts";
import { seededRandom, type Random } from "../core/random.ts";
import { checksumOf } from "../format/checksum.ts";
import { mayHold, type ColumnFilter, type FilterProbe } from "../format/filter/filter.ts";
import { probeNeedles, probeValues } from "../format/filter/probes.ts";
import type { ColumnSpec } from "../format/types.ts";
import { loadDuckDb, quoteText, runSql, type Connection, type DuckDb } from "../io/duckdb/duckdb.ts";
import { tlmFixture, type FixtureRow } from "../io/duckdb/tlm.test-kit.ts";
import { describeFile } from "./merge-describe.ts";
import { mergeFiles } from "./merge-files.ts";
import { orderForFeed } from "./merge-fed.ts";
import { DamagedInputs, type MergeColumn, type MergedFile, type MergeInput, type MergeTask } from "./merge.ts";

/** Merges of `tlm` extents alone, against what reading their files again says of them. */

const MIB = 1024 * 1024;
const DAY_NS = 86_400_000_000_000n;
const START_NS = 40_000n * DAY_NS;
const COLUMNS: readonly MergeColumn[] = [
  { id: 1, name: "at", type: { kind: "timestamp" } },
  { id: 2, name: "seq", type: { kind: "int" } },
  { id: 3, name: "big", type: { kind: "long" } },
  { id: 4, name: "r", type: { kind: "real" } },
  { id: 5, name: "ok", type: { kind: "bool" } },
  { id: 6, name: "seen", type: { kind: "timestamp" } },
  { id: 7, name: "id, of it", type: { kind: "string" } },
  { id: 8, name: "body", type: { kind: "string" } },
  { id: 9, name: "few", type: { kind: "string" } },
  { id: 10, name: "doc", type: { kind: "dynamic" } },
  { id: 11, name: "v", type: { kind: "vector", dimensions: 3 } },
  { id: 12, name: "late", type: { kind: "string" } },
];
const WORDS = "request handled in time for user with cache miss on shard retry after timeout upstream closed".split(
  " ",
);

let duckdb: DuckDb;
let connection: Connection;
beforeAll(async () => {
  duckdb = await loadDuckDb();
  connection = await duckdb.connect(await duckdb.open(":memory:"));
  await duckdb.query(connection, "SET threads = 1");
});
afterAll(() => duckdb.disconnect_sync(connection));

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "engine-fed-"));
});
afterEach(() => rm(folder, { recursive: true }));

function row(random: Random, seq: number, atNs: bigint): FixtureRow {
  const below = (bound: number): number => Math.floor(random.next() * bound);
  const words = (count: number): string => Array.from({ length: count }, () => WORDS[below(WORDS.length)]).join(" ");
  const hex = (): string => Buffer.from(random.fill(new Uint8Array(12))).toString("hex");
  return {
    at: atNs,
    seq,
    big: seq % 5 === 0 ? null : 2n ** 62n - BigInt(seq),
    r: seq % 9 === 0 ? null : seq % 1_001 === 0 ? Number.NaN : (seq - 500) / 8,
    ok: seq % 13 === 0 ? null : seq % 3 === 0,
    seen: seq % 4 === 0 ? null : -BigInt(seq) * 1_000_000_007n,
    "id, of it": hex(),
    body: seq % 2_000 === 7 ? "x".repeat(11_000) : seq % 50 === 0 ? null : words(3 + below(20)),
    few: ["", "a", "twelve bytes", "thirteen bytes", "nul\0byte", "😀😀😀😀", null][seq % 7] ?? null,
    doc: seq % 6 === 0 ? null : JSON.stringify({ seq, deep: ["a", { b: null }] }),
    v: seq % 8 === 0 ? null : [seq, 0.5, -1],
    late: `late ${seq % 900}`,
  };
}

/** An extent in several batches. */
async function inputOf(id: number, columns: readonly ColumnSpec[], rows: readonly FixtureRow[]): Promise<MergeInput> {
  const bytes = tlmFixture(columns, rows, 1_000);
  const path = join(folder, `${id}.tlm`);
  await writeFile(path, bytes);
  return { id: String(id), path, format: "tlm", rows: rows.length, checksum: checksumOf(bytes) };
}

const SEED = drawnSeed();

/** Extents that overlap in time, the later ones with more columns; sorted by nothing. */
async function inputs(extents: number, rows: number, rangeNs: number): Promise<MergeInput[]> {
  const random = seededRandom(SEED);
  const made: MergeInput[] = [];
  for (let i = 0; i < extents; i++) {
    const present: readonly ColumnSpec[] = i < extents / 2 ? COLUMNS.slice(0, -1) : COLUMNS;
    const fixture = Array.from({ length: rows }, (_, j) => {
      const at = START_NS + BigInt(Math.floor(((i + random.next() * 2) / (extents + 1)) * rangeNs));
      return row(random, i * rows + j, (at / 1_000_000n) * 1_000_000n);
    });
    made.push(await inputOf(i, present, fixture));
  }
  return made;
}

async function taskOf(given: readonly MergeInput[], changed: Partial<MergeTask> = {}): Promise<MergeTask> {
  const limits = { memoryBytes: 256 * MIB, spillBytes: 1_024 * MIB, threads: 1 };
  const own = await mkdtemp(join(folder, "merge-"));
  return { columns: COLUMNS, inputs: given, clusterBy: [], folder: own, targetBytes: 256 * MIB, limits, ...changed };
}

/** All rows of files, in order. */
async function rowsOf(files: readonly MergedFile[]): Promise<string[]> {
  const all: string[] = [];
  for (const { path } of files) {
    const rows = await runSql(duckdb, connection, `SELECT CAST(t AS VARCHAR) FROM read_parquet(${quoteText(path)}) t`);
    all.push(...rows.map(([text]) => text ?? ""));
  }
  return all;
}

/** What DuckDB makes of the inputs: a column by which they are clustered has it sort, by `seq` as rows arrived. */
async function sortedRowsOf(given: readonly MergeInput[]): Promise<string[]> {
  const sorted = await mergeFiles(duckdb, await taskOf(given, { clusterBy: ["seq"] }));
  return rowsOf(sorted.toSorted((a, b) => Number(a.minAtNs - b.minAtNs)));
}

function filterOf({ filters }: MergedFile, name: string): ColumnFilter | undefined {
  return filters.find((filter) => filter.name === name);
}

function passes(filter: ColumnFilter | undefined, probe: FilterProbe | undefined): boolean {
  if (filter === undefined || probe === undefined) throw new Error("there is no filter to ask");
  return mayHold(filter.bytes, probe);
}

/** What the profile says against what the file says when it is read. */
async function expectSameAsRead(file: MergedFile): Promise<void> {
  const layout = { columns: COLUMNS, finer: new Set(file.nanosecondColumns) };
  const read = await describeFile(duckdb, connection, file.path, { layout });
  const exact = ({ stats, filters: _filters, ...rest }: MergedFile) => ({
    ...rest,
    stats: stats.map(({ distinct: _distinct, ...others }) => others),
  });
  expect(exact(file)).toEqual(exact(read));
  const estimates = file.stats.map(({ distinct = 0 }, i) => {
    const { distinct: exact = 0, nullCount = 0 } = read.stats[i] ?? {};
    // An extent that lies in two files counts for both.
    const isNear = distinct >= exact * 0.75 && distinct <= file.rows - nullCount;
    return exact <= 20 ? distinct === exact : isNear;
  });
  expect(estimates).toEqual(file.stats.map(() => true));
  const kinds = ({ filters }: MergedFile) => filters.map(({ name, kind }) => `${name} ${kind}`).sort();
  expect(kinds(file)).toEqual(kinds(read));
}

async function expectFilters(file: MergedFile): Promise<void> {
  const sql = `SELECT "id, of it", body FROM read_parquet(${quoteText(file.path)}) WHERE body IS NOT NULL`;
  for (const [id, body] of (await runSql(duckdb, connection, sql)).filter((_, i) => i % 20 === 0)) {
    expect(passes(filterOf(file, "id, of it"), probeValues([id ?? ""]))).toBe(true);
    expect(passes(filterOf(file, "body"), probeNeedles([(body ?? "").slice(0, 40)]))).toBe(true);
  }
  const absent = Array.from({ length: 500 }, (_, i) => `absent ${i}`);
  const wrong = absent.filter((text) => passes(filterOf(file, "id, of it"), probeValues([text])));
  expect(wrong.length).toBeLessThan(50);
  expect(passes(filterOf(file, "body"), probeNeedles(["deadlock"]))).toBe(false);
}

describe("a merge of tlm extents alone", () => {
  it("has the rows, the statistics and the filters that sorting and reading again gives", async () => {
    const given = await inputs(6, 4_000, 3_600e9);
    const task = await taskOf(given);
    expect(
      orderForFeed(
        task,
        given.map(() => MIB),
      ),
    ).toBeDefined();
    const files = await mergeFiles(duckdb, task);
    expect(files.map(({ rows }) => rows)).toEqual([24_000]);
    expect(await rowsOf(files)).toEqual(await sortedRowsOf(given));
    for (const file of files) {
      await expectSameAsRead(file);
      await expectFilters(file);
    }
  });

  it("has the rows of inputs that have few of each day", async () => {
    const given = await inputs(3, 2_000, 20 * 86_400e9);
    const files = await mergeFiles(duckdb, await taskOf(given));
    expect(files.length).toBeGreaterThanOrEqual(20);
    expect(await rowsOf(files)).toEqual(await sortedRowsOf(given));
  });

  it.each([
    ["near", 2 ** 31 - 1, "DELTA_BINARY_PACKED"],
    ["apart", 2 ** 31, "PLAIN"],
  ])("writes integers so that everybody can read them, %s as they are in all inputs", async (_, range, encoding) => {
    // More different values than a dictionary has.
    const rowsEach = 30_000;
    const given: MergeInput[] = [];
    for (const [i, base] of [-(2 ** 30), range - 2 ** 30 - rowsEach + 1].entries()) {
      const fixture = Array.from({ length: rowsEach }, (_value, j) => ({ at: START_NS + BigInt(j), seq: base + j }));
      given.push(await inputOf(i, COLUMNS.slice(0, 2), fixture));
    }
    const [first, second] = given;
    if (first === undefined || second === undefined) throw new Error("no inputs");
    const [single] = await mergeFiles(duckdb, await taskOf([first]));
    if (single === undefined) throw new Error("no file");
    const asParquet: MergeInput = { ...first, path: single.path, format: "parquet", checksum: single.checksum };
    const cases: [MergeInput[], Partial<MergeTask>, string][] = [
      [[first], {}, "DELTA_BINARY_PACKED"],
      [given, {}, encoding],
      [given, { clusterBy: ["seq"] }, encoding],
      [[asParquet, second], {}, encoding],
    ];
    for (const [inputs, changed, expected] of cases) {
      const [file] = await mergeFiles(duckdb, await taskOf(inputs, changed));
      const metadata = `parquet_metadata(${quoteText(file?.path ?? "")})`;
      const encodings = await runSql(
        duckdb,
        connection,
        `SELECT DISTINCT encodings FROM ${metadata} WHERE path_in_schema = 'seq'`,
      );
      expect(encodings).toEqual([[expected]]);
    }
  });

  it("ends files at midnight, and where they are large enough, each with what is in it", async () => {
    const given = await inputs(8, 4_000, 2.5 * 86_400e9);
    const files = await mergeFiles(duckdb, await taskOf(given, { targetBytes: 128 * 1024, columns: COLUMNS }));
    const days = files.map(({ minAtNs }) => minAtNs / DAY_NS);
    expect(files.map(({ maxAtNs }) => maxAtNs / DAY_NS)).toEqual(days);
    expect(new Set(days).size).toBe(3);
    expect(files.reduce((sum, { rows }) => sum + rows, 0)).toBe(32_000);
    for (const [i, file] of files.entries()) {
      expect(file.minAtNs).toBeGreaterThanOrEqual(files[i - 1]?.maxAtNs ?? 0n);
      await expectSameAsRead(file);
    }
    expect(await rowsOf(files)).toEqual(await sortedRowsOf(given));
  });

  it("is sorted by DuckDB when too much would be open at once", async () => {
    const given = await inputs(6, 100, 1e9);
    const task = await taskOf(given);
    const order = (sizeBytes: number) =>
      orderForFeed(
        task,
        given.map(() => sizeBytes),
      );
    expect(order(8 * MIB)).toBeDefined();
    expect(order(32 * MIB)).toBeUndefined();
    // Those that follow each other are open one at a time.
    const apart: MergeInput[] = [];
    for (let i = 0; i < given.length; i++) {
      const rows = Array.from({ length: 40_000 }, (_, j) => ({ at: START_NS + BigInt(i * 40_000 + j) }));
      apart.push(await inputOf(i, COLUMNS.slice(0, 1), rows));
    }
    expect(
      orderForFeed(
        await taskOf(apart),
        apart.map(() => 24 * MIB),
      ),
    ).toBeDefined();
  });

  it("names every input whose bytes are not what was committed, however it fails", async () => {
    const given = await inputs(4, 500, 1e9);
    const changed = given.map((input, i) => (i % 2 === 0 ? input : { ...input, checksum: "crc32:00000000" }));
    const damaged = mergeFiles(duckdb, await taskOf(changed));
    await expect(damaged).rejects.toEqual(new DamagedInputs(["1", "3"]));
    await writeFile(given[2]?.path ?? "", "no extent");
    await expect(mergeFiles(duckdb, await taskOf(given))).rejects.toEqual(new DamagedInputs(["2"]));
  });
});
