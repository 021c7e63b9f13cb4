import { measureAll } from "../measured.ts";
import { benchmarksNamed } from "../named.ts";
import { BENCHMARKS } from "../registry.ts";
import type { Command } from "./command.ts";
import { flagsWithoutOptions } from "./flags.ts";

/**
 * The smallest forms that still say something of the layers that most changes touch, in three minutes together (100
 * seconds on two cores with a load of 6, 2026-11-28). They show large losses; `compare` finds small ones.
 */
export const QUICK: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "kernel/scanner": { rows: "60000" },
  "kernel/otlp": { requests: "5" },
  "load/bodies": { rows: "100000" },
  "memory/recall": { memories: "20000", edges: "80000", questions: "100" },
  "query/fixed": { rows: "50000", times: "30" },
};

/** The fewest of which the noise can be told. */
const ROUNDS = 4;

export const quick: Command = {
  usage: "[--rounds N] [--seed N] [--out FOLDER]",
  doc: "small forms of five benchmarks in at most three minutes: what is run before a merge",
  run: async (words, signal) => {
    const { rounds = ROUNDS, ...flags } = flagsWithoutOptions("quick", words);
    const named = await Promise.all(
      Object.entries(QUICK).map(async ([name, options]) =>
        (await benchmarksNamed(name, BENCHMARKS)).map((benchmark) => ({
          benchmark,
          flags: { ...flags, rounds, options },
        })),
      ),
    );
    return await measureAll(named.flat(), signal);
  },
};
