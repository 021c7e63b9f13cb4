import { join } from "node:path";
import { IS_RELEASE, REPOSITORY } from "../revision.ts";
import { UsageError } from "./command.ts";

/** Where results go unless said otherwise. */
const RESULTS = IS_RELEASE ? "bench-results" : join(REPOSITORY, ".cache", "bench-results");

export type Flags = {
  rounds: number | undefined;
  /** Whether a round goes before those that count. */
  warmsUp: boolean;
  seed: number;
  out: string;
  /** What is none of these: options of the benchmark, which checks them. */
  options: Readonly<Record<string, string>>;
};

/** Values by the names of their flags, in the order given. Every flag takes a value. */
export function valuesByFlag(words: readonly string[]): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (let at = 0; at < words.length; at += 2) {
    const [word = "", value] = [words[at], words[at + 1]];
    const name = /^--([a-z][A-Za-z]*)$/.exec(word)?.[1];
    if (name === undefined || value === undefined) throw new UsageError(`${word} is no option with a value`);
    found.set(name, [...(found.get(name) ?? []), value]);
  }
  return found;
}

/** What `run` and its like take. Of a flag that is given twice the last value counts. */
export function flagsOf(values: ReadonlyMap<string, readonly string[]>): Flags {
  const last = [...values].map(([name, each]) => [name, each.at(-1) ?? ""] as const);
  const { rounds, warmUpRounds = "1", seed, out, ...options }: Record<string, string> = Object.fromEntries(last);
  return {
    rounds: rounds === undefined ? undefined : countIn("rounds", rounds),
    warmsUp: warmsUpFor(warmUpRounds),
    seed: seed === undefined ? Date.now() % 1_000_000_007 : countIn("seed", seed),
    out: out ?? RESULTS,
    options,
  };
}

/** For a command that runs benchmarks with options of its own choice. */
export function flagsWithoutOptions(command: string, words: readonly string[]): Flags {
  const flags = flagsOf(valuesByFlag(words));
  const [unknown] = Object.keys(flags.options);
  if (unknown !== undefined) throw new UsageError(`${command} takes no --${unknown}`);
  return flags;
}

function warmsUpFor(text: string): boolean {
  if (text !== "0" && text !== "1") throw new UsageError(`--warmUpRounds takes 0 or 1, not ${text}`);
  return text === "1";
}

function countIn(name: string, text: string): number {
  const count = Number(text);
  if (!Number.isSafeInteger(count) || count < 1)
    throw new UsageError(`--${name} takes a positive whole number, not ${text}`);
  return count;
}
