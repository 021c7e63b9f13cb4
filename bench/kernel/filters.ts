import { systemClock } from "../../src/core/clock.ts";
import { checksumOf } from "../../src/format/checksum.ts";
import { filtersOf } from "../../src/format/columns/column-filters.ts";
import { ColumnSet } from "../../src/format/columns/column-set.ts";
import type { TextColumn } from "../../src/format/columns/text-column.ts";
import { mayHold, type FilterProbe } from "../../src/format/filter/filter.ts";
import { buildGramFilter } from "../../src/format/filter/gram-filter.ts";
import { probeNeedles, probeValues } from "../../src/format/filter/probes.ts";
import { byteScanner } from "../../src/format/ndjson/byte-scanner.ts";
import { encodeTlm, storedColumns } from "../../src/format/tlm.ts";
import { readArguments } from "../support/arguments.ts";
import { cutBySize } from "../support/bodies.ts";
import { datasetOf } from "../support/data-file.ts";
import { median } from "../../src/capacity/quantile.ts";
import { machine, MIB, printTable, shown } from "../support/report.ts";
import type { Dataset } from "../support/shapes.ts";

/**
 * Question: what do filters cost an extent at sealing, in time and in bytes, and how much do they let pass that is not
 * there?
 *
 * Extents of about 8,000 log rows. The first table is of the filters of values that ingest builds; the second of the
 * filters of grams that it does not build, over the column with the longest text. What is looked for is what the next
 * extents hold and the first does not: their values, and their words of five letters and more.
 *
 *     node bench/kernel/filters.ts [DATA…] [--rows 40000] [--rounds 7]
 */
const EXTENT_BYTES = 2.7 * MIB;
const OPTIONS = { rows: { type: "string" }, rounds: { type: "string", default: "7" } } as const;
const ROWS: Readonly<Record<string, number>> = {
  logs: 40_000,
  wide: 12_000,
  nested: 30_000,
  numbers: 40_000,
  text: 6_000,
};
const DEFAULT_ROWS = 60_000;
const MAX_NEEDLES = 4_000;

export async function main(args: readonly string[]): Promise<void> {
  const options = readArguments(args, OPTIONS);
  const names = options.positionals.length === 0 ? [...Object.keys(ROWS), "git", "packages"] : options.positionals;
  const values: string[][] = [];
  const grams: string[][] = [];
  for (const name of names) {
    const count = options.text("rows") === undefined ? (ROWS[name] ?? DEFAULT_ROWS) : options.count("rows");
    const dataset = datasetOf(name, count);
    if (dataset === undefined) continue;
    values.push([name, ...measureValues(dataset, options.count("rounds"))]);
    grams.push([name, ...measureGrams(dataset, options.count("rounds"))]);
  }
  console.log(`${machine()}\nfilters of values, medians\n`);
  printTable(["", "columns", "seal ns/row", "filters ns/row", "% of seal", "% of bytes", "% passing"], values);
  console.log("\nfilters of grams\n");
  printTable(["", "column", "bytes/row", "ns/row", "KB", "absent", "% passing"], grams);
}

/** As in the server, where output buffers serve again. */
const output = new SharedArrayBuffer(32 * MIB);

function measureValues(dataset: Dataset, rounds: number): string[] {
  const sealMs: number[] = [];
  const filterMs: number[] = [];
  const sizes = { filters: 0, extents: 0 };
  let last: ReturnType<typeof filtersOf> = [];
  for (let round = 0; round <= rounds; round++) {
    const spent = { seal: 0, filters: 0 };
    for (const part of cutBySize(dataset.ndjson, EXTENT_BYTES)) {
      const startedMs = systemClock.monotonicMs();
      const set = scan(part, dataset);
      const columns = storedColumns(set);
      const stats = columns.map((column) => column.stats(set.rows));
      const bytes = encodeTlm(set, output);
      checksumOf(bytes);
      const sealedMs = systemClock.monotonicMs();
      last = filtersOf(columns, stats, bytes.byteLength);
      spent.filters += systemClock.monotonicMs() - sealedMs;
      spent.seal += sealedMs - startedMs;
      if (round === 0) sizes.extents += bytes.byteLength;
      if (round === 0) sizes.filters += last.reduce((sum, filter) => sum + filter.bytes.length, 0);
      set.release();
    }
    // The first round warms up.
    if (round > 0) sealMs.push(spent.seal);
    if (round > 0) filterMs.push(spent.filters);
  }
  const perRow = (ms: readonly number[]): string => shown((median([...ms]) * 1e6) / dataset.rows);
  const share = shown(median(filterMs.map((ms, i) => (100 * ms) / (sealMs[i] ?? 0))));
  const names = new Set(last.map(({ name }) => name));
  const bytes = shown((100 * sizes.filters) / sizes.extents);
  return [[...names].join(" "), perRow(sealMs), perRow(filterMs), share, bytes, passingValues(dataset)];
}

/** Per cent of the values of later extents that the first one's filters let pass, over all its filters. */
function passingValues(dataset: Dataset): string {
  const [first, ...others] = cutBySize(dataset.ndjson, EXTENT_BYTES).map((part) => scan(part, dataset));
  if (first === undefined) return "";
  const columns = storedColumns(first);
  const stats = columns.map((column) => column.stats(first.rows));
  const filters = filtersOf(columns, stats, encodeTlm(first, output).byteLength);
  let [asked, passed] = [0, 0];
  for (const { name, bytes } of filters) {
    const present = new Set(textsIn(first, name));
    for (const value of new Set(others.flatMap((set) => textsIn(set, name)))) {
      if (present.has(value)) continue;
      asked++;
      if (passes(bytes, probeValues([value]))) passed++;
    }
  }
  return asked === 0 ? "–" : shown((100 * passed) / asked);
}

function measureGrams(dataset: Dataset, rounds: number): string[] {
  const sets = cutBySize(dataset.ndjson, EXTENT_BYTES).map((part) => scan(part, dataset));
  const [first, ...others] = sets;
  const column = first?.columns.filter(isText).toSorted((a, b) => b.bytes().length - a.bytes().length)[0];
  if (first === undefined || column === undefined) return [];
  const texts = { offsets: column.offsets(0, column.rows), bytes: column.bytes() };
  const builtMs: number[] = [];
  let filter: Uint8Array | undefined;
  for (let round = 0; round < rounds; round++) {
    const startedMs = systemClock.monotonicMs();
    filter = buildGramFilter(texts);
    builtMs.push(systemClock.monotonicMs() - startedMs);
  }
  const { name } = column.spec;
  const figures = [name, shown(texts.bytes.length / column.rows), shown((median(builtMs) * 1e6) / column.rows)];
  if (filter === undefined) return [...figures, "too many", "", ""];
  const all = textsIn(first, name).join("\0");
  const words = new Set(others.flatMap((set) => textsIn(set, name).flatMap((text) => text.match(/\w{5,20}/g) ?? [])));
  const absent = [...words].filter((word) => !all.includes(word)).slice(0, MAX_NEEDLES);
  const passed = absent.filter((word) => passes(filter, probeNeedles([word]))).length;
  const share = absent.length === 0 ? "–" : shown((100 * passed) / absent.length);
  return [...figures, shown(filter.length / 1e3), String(absent.length), share];
}

function passes(filter: Uint8Array, probe: FilterProbe | undefined): boolean {
  return probe === undefined || mayHold(filter, probe);
}

function isText(column: ColumnSet["columns"][number]): column is TextColumn {
  return column.storage === "text" && column.spec.type.kind === "string";
}

function textsIn(set: ColumnSet, name: string): string[] {
  const column = set.columns.find(({ spec }) => spec.name === name);
  if (column === undefined || !isText(column)) return [];
  const bytes = Buffer.from(column.bytes().buffer, column.bytes().byteOffset, column.bytes().length);
  const offsets = column.offsets(0, column.rows);
  return Array.from({ length: column.rows }, (_, row) => bytes.toString("utf8", offsets[row], offsets[row + 1]));
}

function scan(part: Buffer, { columns }: Dataset): ColumnSet {
  const set = new ColumnSet(columns);
  for (const bytes of cutBySize(part, MIB)) byteScanner.scan({ bytes, evolve: true, arrivedAtNs: 0n }, set);
  return set;
}

if (import.meta.main) await main(process.argv.slice(2));
