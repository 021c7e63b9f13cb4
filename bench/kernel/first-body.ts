import { z } from "zod";
import { seededRandom, type Random } from "../../src/core/random.ts";
import { DEFAULT_SHAPE, type ColumnSpec } from "../../src/format/types.ts";
import type { SealResult } from "../../src/ingest/seal.ts";
import { seal } from "../../src/ingest/seal-thread.ts";
import { defineBenchmark } from "../suite/benchmark.ts";
import { MIB } from "../support/report.ts";

const FIELDS = 12;
/** Seals in one round of a side. */
const SEALS = 10;

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

const NAMES = Object.keys(KINDS);

export const benchmark = defineBenchmark({
  name: "kernel/first-body",
  question:
    "What does it cost to seal a body that brings 12 new fields, whose types come from its values, against the same body " +
    "once the table has the columns?",
  notMeasured:
    "HTTP, storing. By the first value of a field its column is guessed; the kinds differ in how soon and how often a " +
    "later value calls for another type.",
  options: z.strictObject({
    kind: z
      .enum(NAMES)
      .default("plain")
      .describe(
        Object.entries(KINDS)
          .map(([name, { what }]) => `${name}: ${what}`)
          .join("; "),
      ),
    bytes: z.coerce.number().int().positive().default(MIB).describe("of the body"),
  }),
  measures: {
    seal: { unit: "MB/CPU-s", better: "more", doc: "scan, statistics, encoding and checksum on one thread" },
  },
  rounds: 9,
  open: async ({ kind, bytes }) => {
    const named = KINDS[kind];
    if (named === undefined) throw new Error(`${kind} is no kind`);
    const body = bodyOf(named, bytes);
    const { newColumns } = await sealed(body, DEFAULT_SHAPE);
    if (newColumns.length !== FIELDS) throw new Error(`the body brought ${newColumns.length} columns`);
    const sideOf = (name: string, columns: readonly ColumnSpec[]) => ({
      name,
      answers: async () => (await sealed(body, columns)).extent?.checksum,
      round: async () => ({ seal: (body.length * SEALS) / 1e6 / (await cpuSecondsOf(body, columns)) }),
    });
    return { sides: [sideOf("first", DEFAULT_SHAPE), sideOf("later", [...DEFAULT_SHAPE, ...newColumns])] };
  },
});

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

async function cpuSecondsOf(bytes: Uint8Array, columns: readonly ColumnSpec[]): Promise<number> {
  const before = process.cpuUsage();
  for (let i = 0; i < SEALS; i++) await sealed(bytes, columns);
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
