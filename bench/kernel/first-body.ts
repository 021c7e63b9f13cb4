import { seededRandom, type Random } from "../../src/core/random.ts";
import { DEFAULT_SHAPE, formatColumnType, type ColumnSpec } from "../../src/format/types.ts";
import type { SealResult } from "../../src/ingest/seal.ts";
import { seal } from "../../src/ingest/seal-thread.ts";
import { readArguments } from "../support/arguments.ts";
import { machine, median, MIB, printTable, shown } from "../support/report.ts";

/**
 * Question: what does it cost to seal a body of 1 MiB that brings 12 new fields, whose types come from its values,
 * against the same body once the table has the columns?
 *
 *     node bench/kernel/first-body.ts [KIND…] [--rounds 40]
 *
 * Whole seals on one thread (scan, statistics, encoding, checksum), in turn. By the first value of a field its column is
 * guessed; the kinds differ in how soon and how often a later value calls for another type.
 */
const OPTIONS = {
  rounds: { type: "string", default: "40" },
  "body-bytes": { type: "string", default: String(MIB) },
} as const;
const FIELDS = 12;
const WARM_UPS = 10;

type Kind = { what: string; value: (random: Random, field: number, row: number, rows: number) => unknown };

const integer = (random: Random): number => Math.floor(random.next() * 1_000_000);
const fraction = (random: Random): number => Math.round(random.next() * 100_000) / 100;
const text = (random: Random): string => `value-${integer(random)}`;
const time = (random: Random): string => new Date(Date.UTC(2026, 0, 1) + integer(random) * 1_000).toISOString();

/** Values of one field of the plain kind. */
function plain(random: Random, field: number): unknown {
  return [integer, text, () => 0.25 + fraction(random), time, () => random.next() < 0.5, text][field % 6]?.(random);
}

const KINDS: Readonly<Record<string, Kind>> = {
  plain: { what: "every value as the first", value: plain },
  widening: {
    what: "whole numbers in the first rows, then fractions",
    value: (random, field, row) => (field % 2 === 0 && row >= 5 ? fraction(random) : integer(random)),
  },
  nulls: {
    what: "nulls first, then values",
    value: (random, field, row) => (row < 5 + 20 * field ? null : plain(random, field)),
  },
  mixed: {
    what: "numbers, texts and lists in turn",
    value: (random, field, row) => [integer, text, () => [field, row], fraction][(row + field) % 4]?.(random),
  },
  times: {
    what: "times in UTC, then with an offset",
    value: (random, field, row) => (row < 5 + field ? time(random) : time(random).replace("Z", "+01:00")),
  },
  late: {
    what: "whole numbers, and in one field a fraction in the last row",
    value: (random, field, row, rows) => (field === 0 && row === rows - 1 ? 0.5 : integer(random)),
  },
};

export async function main(args: readonly string[]): Promise<void> {
  const options = readArguments(args, OPTIONS);
  const names = options.positionals.length === 0 ? Object.keys(KINDS) : options.positionals;
  console.log(`${machine()}\nMB per CPU-second of whole seals, medians of ${options.count("rounds")} rounds\n`);
  const rows: string[][] = [];
  for (const name of names) {
    const kind = KINDS[name];
    if (kind === undefined) throw new Error(`${name} is no kind; there are ${Object.keys(KINDS).join(", ")}`);
    rows.push([
      name,
      ...(await measure(bodyOf(kind, options.count("body-bytes")), options.count("rounds"))),
      kind.what,
    ]);
  }
  printTable(["", "first", "later", "first/later", "what"], rows);
}

/** About `sizeBytes` of rows. */
function bodyOf({ value }: Kind, sizeBytes: number): Uint8Array {
  const rowOf = (random: Random, row: number, rows: number): string => {
    const fields = Array.from({ length: FIELDS }, (_, field) => [`field_${field}`, value(random, field, row, rows)]);
    return `${JSON.stringify({ at: "2026-01-01T00:00:00Z", ...Object.fromEntries(fields) })}\n`;
  };
  const sample = Array.from({ length: 100 }, (_, row) => rowOf(seededRandom(1), row, Infinity)).join("");
  const rows = Math.max(1, Math.floor((sizeBytes * 100) / sample.length));
  const random = seededRandom(1);
  return Buffer.from(Array.from({ length: rows }, (_, row) => rowOf(random, row, rows)).join(""));
}

async function measure(bytes: Uint8Array, rounds: number): Promise<string[]> {
  const { newColumns, extent } = await sealed(bytes, DEFAULT_SHAPE);
  if (newColumns.length !== FIELDS) throw new Error(`the body brought ${newColumns.length} columns`);
  const columns = [...DEFAULT_SHAPE, ...newColumns];
  const again = await sealed(bytes, columns);
  if (again.newColumns.length > 0 || again.extent?.checksum !== extent?.checksum) {
    throw new Error(`the body is another extent later: ${newColumns.map(({ type }) => formatColumnType(type)).join()}`);
  }
  const seconds: { first: number; later: number }[] = [];
  for (let round = -WARM_UPS; round < rounds; round++) {
    const pair = { first: await cpuSecondsOf(bytes, DEFAULT_SHAPE), later: await cpuSecondsOf(bytes, columns) };
    if (round >= 0) seconds.push(pair);
  }
  const mbPerCpuSecond = (of: (pair: (typeof seconds)[number]) => number) =>
    shown(bytes.length / 1e6 / median(seconds.map(of)));
  const ratio = median(seconds.map(({ first, later }) => later / first));
  return [mbPerCpuSecond(({ first }) => first), mbPerCpuSecond(({ later }) => later), `${shown(ratio)}×`];
}

async function cpuSecondsOf(bytes: Uint8Array, columns: readonly ColumnSpec[]): Promise<number> {
  const before = process.cpuUsage();
  await sealed(bytes, columns);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
}

async function sealed(bytes: Uint8Array, columns: readonly ColumnSpec[]): Promise<SealResult> {
  const bodies = [{ bytes, evolve: true, inferTypes: true, arrivedAtNs: 0n }];
  const result = await seal({ columns, bodies, format: "tlm", output });
  const [outcome] = result.outcomes;
  if (outcome?.ok !== true) throw new Error(`the body is refused: ${outcome?.error.message ?? ""}`);
  return result;
}

/** As in the server, where output buffers serve again. */
const output = new SharedArrayBuffer(16 * MIB);

if (import.meta.main) await main(process.argv.slice(2));
