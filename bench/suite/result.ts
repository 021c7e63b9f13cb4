import { readFile } from "node:fs/promises";
import { z } from "zod";
import { writeDurably } from "../../src/core/durable-file.ts";
import { systemRandom } from "../../src/core/random.ts";
import { machineSchema } from "../../src/capacity/machine.ts";

/**
 * The file that a run leaves. A newer program reads files of older ones, not the other way round. Schema 1 had neither
 * the release, nor bytes to disk, nor CPU seconds of threads.
 */
export const RESULT_SCHEMA = 2;

const interval = z.object({ low: z.number(), high: z.number() });
const numbers = z.record(z.string(), z.number());

const sideRound = z.object({
  values: numbers,
  wallSeconds: z.number(),
  /** User and system, by process; `bench` is the one that measures, with all its threads. */
  cpuSeconds: numbers,
  /** Of these, without children: what the process's first thread took, which no second core helps, and all others. */
  threadSeconds: z.record(z.string(), z.object({ main: z.number(), others: z.number() })).default({}),
  peakBytes: numbers,
  /** Sent to a disk, by process with its children; without those of which the kernel does not tell it. */
  bytesToDisk: numbers.default({}),
});

const summary = z.object({
  side: z.string(),
  measure: z.string(),
  unit: z.string(),
  better: z.enum(["more", "less"]),
  median: z.number(),
  interval,
  /** Ours over this side's, of rounds next to each other; null for ours. */
  ratio: z.object({ median: z.number(), interval }).nullable(),
});

export const resultSchema = z.object({
  schema: z.literal([1, RESULT_SCHEMA]),
  benchmark: z.string(),
  question: z.string(),
  notMeasured: z.string(),
  options: z.record(z.string(), z.unknown()),
  seed: z.int(),
  startedAt: z.iso.datetime(),
  /** Null where there is no repository. */
  commit: z.string().nullable(),
  isClean: z.boolean(),
  /** The version of the program that measured; null in files of schema 1. */
  release: z.string().nullable().default(null),
  machine: machineSchema,
  rounds: z.array(z.record(z.string(), sideRound)),
  summary: z.array(summary),
  /** What a reader must know of the figures. */
  marks: z.array(z.string()).default([]),
  noise: z.object({
    /** By measure, of our side against itself; null with too few rounds. */
    byMeasure: z.record(z.string(), interval.nullable()),
    /** Share of the machine that other processes took. */
    foreignShare: z.number(),
    /** The wall clock against the one that never goes back, in ms. */
    clockStepMs: z.number(),
    /** Why the figures say nothing; empty when they do. */
    problems: z.array(z.string()),
  }),
});
export type Result = z.output<typeof resultSchema>;
export type SideRound = z.output<typeof sideRound>;
export type Summary = z.output<typeof summary>;

/** Whole or not at all. */
export async function writeResult(path: string, result: Result): Promise<void> {
  await writeDurably(path, `${JSON.stringify(result, undefined, 2)}\n`, 0o644, systemRandom);
}

/** Throws a sentence with the file, what is wrong, and what to do. */
export async function readResult(path: string): Promise<Result> {
  const found: unknown = JSON.parse(await readFile(path, "utf8"));
  const schema = z.object({ schema: z.int() }).safeParse(found).data?.schema;
  if (schema !== undefined && schema > RESULT_SCHEMA) {
    throw new Error(`${path} is of schema ${schema}, this program reads up to ${RESULT_SCHEMA}: use the newer program`);
  }
  const parsed = resultSchema.safeParse(found);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new Error(`${path} is no result of a benchmark: ${issue?.path.join(".")}: ${issue?.message}; run it again`);
}
