import { z } from "zod";
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
import { defineBenchmark, type Side } from "../suite/benchmark.ts";
import { cutBySize } from "../support/bodies.ts";
import { DATASET_NAMES, requiredDataset } from "../support/data-file.ts";
import { MIB } from "../support/report.ts";
import type { Dataset } from "../support/shapes.ts";

const EXTENT_BYTES = 2.7 * MIB;
const ROWS: Readonly<Record<string, number>> = {
  logs: 40_000,
  wide: 12_000,
  nested: 30_000,
  numbers: 40_000,
  text: 6_000,
};
const DEFAULT_ROWS = 60_000;
const MAX_NEEDLES = 4_000;

/** Extents of about 8,000 log rows. */
export const benchmark = defineBenchmark({
  name: "kernel/filters",
  question:
    "What do filters cost an extent at sealing, in time and in bytes, and how much do they let pass that is not there?",
  notMeasured:
    "What filters spare a query. Filters of grams are not built by ingest; they are those of the column with the longest " +
    "text, and have no size where it has too many grams. What is looked for is what the next extents hold and the first " +
    "does not: their values, and their words of five letters and more.",
  options: z.strictObject({
    data: z.enum(DATASET_NAMES).default("logs").describe(DATASET_NAMES.join(", ")),
    rows: z.coerce.number().int().positive().optional().describe("as many as make a few extents unless given"),
  }),
  measures: {
    build: { unit: "ns/row", better: "less", doc: "making the filters" },
    seal: { unit: "ns/row", better: "less", doc: "scan, statistics, encoding, checksum, without filters" },
    share: { unit: "%", better: "less", doc: "of sealing without filters: making them" },
    size: { unit: "%", better: "less", doc: "of the extent's bytes" },
    passing: { unit: "%", better: "less", doc: "of what is not in the extent: passes its filters" },
  },
  rounds: 7,
  open: async ({ data, rows }) => {
    const dataset = requiredDataset(data, rows ?? ROWS[data] ?? DEFAULT_ROWS);
    const extents = cutBySize(dataset.ndjson, EXTENT_BYTES).map((part) => scan(part, dataset));
    return { sides: [valuesSide(dataset, extents), ...gramsSide(extents)] };
  },
});

/** As in the server, where output buffers serve again. */
const output = new SharedArrayBuffer(32 * MIB);

/** The filters of values that ingest builds. */
function valuesSide(dataset: Dataset, extents: readonly ColumnSet[]): Side {
  const parts = cutBySize(dataset.ndjson, EXTENT_BYTES);
  const passing = shareOf("passing", passingValues(extents));
  const round = async () => {
    const spent = { seal: 0, filters: 0 };
    const sizes = { filters: 0, extents: 0 };
    for (const part of parts) {
      const startedMs = systemClock.monotonicMs();
      const set = scan(part, dataset);
      const columns = storedColumns(set);
      const stats = columns.map((column) => column.stats(set.rows));
      const bytes = encodeTlm(set, output);
      checksumOf(bytes);
      const sealedMs = systemClock.monotonicMs();
      const filters = filtersOf(columns, stats, bytes.byteLength);
      spent.filters += systemClock.monotonicMs() - sealedMs;
      spent.seal += sealedMs - startedMs;
      sizes.extents += bytes.byteLength;
      sizes.filters += filters.reduce((sum, filter) => sum + filter.bytes.length, 0);
      set.release();
    }
    return {
      build: (spent.filters * 1e6) / dataset.rows,
      seal: (spent.seal * 1e6) / dataset.rows,
      share: (100 * spent.filters) / spent.seal,
      size: (100 * sizes.filters) / sizes.extents,
      ...passing,
    };
  };
  return { name: "values", round };
}

/** How many were asked for, and how many of them pass. */
type Passing = { asked: number; passed: number };

function shareOf(name: string, { asked, passed }: Passing): Record<string, number> {
  return asked === 0 ? {} : { [name]: (100 * passed) / asked };
}

/** Values of later extents, over all filters of the first. */
function passingValues([first, ...others]: readonly ColumnSet[]): Passing {
  if (first === undefined) return { asked: 0, passed: 0 };
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
  return { asked, passed };
}

/** Filters of grams over the column of the first extent that has the longest text; none where no column has text. */
function gramsSide([first, ...others]: readonly ColumnSet[]): Side[] {
  const column = first?.columns.filter(isText).toSorted((a, b) => b.bytes().length - a.bytes().length)[0];
  if (first === undefined || column === undefined) return [];
  const texts = { offsets: column.offsets(0, column.rows), bytes: column.bytes() };
  const sizeBytes = encodeTlm(first, output).byteLength;
  const { name } = column.spec;
  const all = textsIn(first, name).join("\0");
  const words = new Set(others.flatMap((set) => textsIn(set, name).flatMap((text) => text.match(/\w{5,20}/g) ?? [])));
  const absent = [...words].filter((word) => !all.includes(word)).slice(0, MAX_NEEDLES);
  const round = async () => {
    const startedMs = systemClock.monotonicMs();
    const filter = buildGramFilter(texts);
    const build = ((systemClock.monotonicMs() - startedMs) * 1e6) / column.rows;
    if (filter === undefined) return { build };
    const passed = absent.filter((word) => passes(filter, probeNeedles([word]))).length;
    const passing = shareOf("passing", { asked: absent.length, passed });
    return { build, size: (100 * filter.length) / sizeBytes, ...passing };
  };
  return [{ name: "grams", round }];
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
