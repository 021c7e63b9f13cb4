import type { z } from "zod";

/**
 * A benchmark: one file, which says what it asks and how each side answers. Rounds, turns, statistics, CPU seconds, the
 * machine and the output are the runner's (`run.ts`), and nothing here prints a figure.
 */
export type Benchmark<O extends z.ZodObject = z.ZodObject> = {
  /** As on the command line: its group, which is its folder, and its own name. */
  name: `${string}/${string}`;
  question: string;
  /** What the figures do not say, for who would read more into them. */
  notMeasured: string;
  /** From texts of the command line; each with a default, and a description for `list`. */
  options: O;
  /** By name. */
  measures: Readonly<Record<string, Measure>>;
  /** Unless said otherwise. */
  rounds: number;
  /** Whether its first side is a server that `BenchContext.entry` chooses: then two revisions can be compared by it. */
  startsServer?: true;
  /** Whether a side of it is a program of others. */
  hasPeers?: true;
  /** Prepares what all sides need. `close` is called in any case once it has resolved. */
  open: (options: z.output<O>, context: BenchContext) => Promise<OpenBenchmark>;
};

export type Measure = {
  /** Of its values. */
  unit: string;
  better: "more" | "less";
  doc: string;
};

export type BenchContext = {
  /** An empty folder, or none yet, which is removed at the end. */
  folder: string;
  /** What is drawn is drawn from it. */
  seed: number;
  /** Of each side, after one that warms up. */
  rounds: number;
  signal: AbortSignal;
  /** The program whose server is measured; the sources of this repository unless given. */
  entry?: string;
};

export type OpenBenchmark = {
  /** Ours first. */
  sides: readonly Side[];
  /** What a reader must know of the rounds since it was last asked, such as that the generator took too much. */
  marks?: () => readonly string[];
  close?: () => Promise<void>;
};

export type Side = {
  name: string;
  /** Before any time counts: what all sides must say alike. Sides without it have no answer of their own. */
  answers?: () => Promise<unknown>;
  /** One round: values of all measures that the side has, by name. */
  round: () => Promise<Readonly<Record<string, number>>>;
  /** Processes that work for it beside this one, by what they are: their CPU seconds and memory are counted. */
  processes?: () => Readonly<Record<string, number>>;
};

/** A benchmark as its file exports it. Throws where its parts do not fit together. */
export function defineBenchmark<O extends z.ZodObject>(benchmark: Benchmark<O>): Benchmark<O> {
  if (!/^[a-z][a-z-]*\/[a-z][a-z-]*$/.test(benchmark.name))
    throw new Error(`${benchmark.name} is no name of a benchmark`);
  if (Object.keys(benchmark.measures).length === 0) throw new Error(`${benchmark.name} measures nothing`);
  if (benchmark.rounds < 1) throw new Error(`${benchmark.name} has no rounds`);
  return benchmark;
}
