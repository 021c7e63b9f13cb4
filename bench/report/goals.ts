import { readFile } from "node:fs/promises";
import { parse } from "smol-toml";
import { z } from "zod";
import { messageOf } from "../../src/core/errors.ts";

/** What is promised of the engine's speed, as data: `bench/goals.toml`. */

const date = z
  .unknown()
  // A date of TOML is a Date of smol-toml, which prints as it was written.
  .transform((value) => (value instanceof Date ? value.toISOString().slice(0, 10) : value))
  .pipe(z.iso.date());

const goalResult = z.strictObject({
  /** Ours over the peer's, or in the goal's unit. */
  value: z.number(),
  /** Of 95 %, or the range of several runs. */
  low: z.number().optional(),
  high: z.number().optional(),
  date,
  commit: z.string().min(1),
  processor: z.string().min(1),
  /** Of the program that was measured; none before the first release. */
  release: z.string().optional(),
  note: z.string().optional(),
});
export type GoalResult = z.output<typeof goalResult>;

const goal = z
  .strictObject({
    name: z.string().regex(/^[a-z0-9-]+$/),
    chapter: z.string().min(1),
    title: z.string().min(1),
    /** A benchmark of the suite; or a program, whose figure is typed in. */
    benchmark: z.string().optional(),
    program: z.string().optional(),
    /** With which the benchmark is run; others have their defaults. */
    options: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).default({}),
    /** Whose figure counts; the benchmark's first side unless given. */
    side: z.string().optional(),
    measure: z.string().min(1),
    peer: z.string().optional(),
    unit: z.string().optional(),
    better: z.enum(["more", "less"]),
    wanted: z.number().positive(),
    /** Who asks for it. */
    basis: z.string().min(1),
    result: goalResult.optional(),
  })
  .refine((one) => (one.benchmark === undefined) !== (one.program === undefined), "it takes a benchmark or a program")
  .refine((one) => (one.peer === undefined) !== (one.unit === undefined), "it takes a peer or a unit")
  .refine((one) => one.peer === undefined || one.side === undefined, "ratios are of the first side: it takes no side")
  .refine(
    ({ result }) => (result?.low === undefined) === (result?.high === undefined),
    "an interval has both ends, low and high",
  );
export type Goal = z.output<typeof goal>;

const goals = z
  .strictObject({ goal: z.array(goal).min(1) })
  .refine(({ goal: all }) => new Set(all.map(({ name }) => name)).size === all.length, "two goals have one name");

/** Of a file's text. Throws a sentence for what is no file of goals. */
export function goalsIn(text: string, path: string): Goal[] {
  let found: unknown;
  try {
    found = parse(text);
  } catch (error) {
    throw new Error(`${path} is not TOML: ${messageOf(error)}`, { cause: error });
  }
  const parsed = goals.safeParse(found);
  if (parsed.success) return parsed.data.goal;
  const [issue] = parsed.error.issues;
  throw new Error(`${path} is no file of goals: ${issue?.path.join(".")}: ${issue?.message}`);
}

export async function readGoals(path: string): Promise<Goal[]> {
  return goalsIn(await readFile(path, "utf8"), path);
}

/**
 * How a goal stands. `unclear`: its value holds or misses, and its interval reaches over to the other side. `none`: no
 * result is of this release.
 */
export type Standing = "holds" | "missed" | "unclear" | "none";

/** By its last result, whatever release that is of; `none` without one. */
export function lastStanding({ better, wanted, result }: Goal): Standing {
  if (result === undefined) return "none";
  const reaches = (value: number) => (better === "more" ? value >= wanted : value <= wanted);
  const { value, low = value, high = value } = result;
  const [worst, best] = better === "more" ? [low, high] : [high, low];
  if (reaches(worst)) return "holds";
  return reaches(best) ? "unclear" : "missed";
}

/** By a result of this release. */
export function standingOf(one: Goal, release: string): Standing {
  return one.result?.release === release ? lastStanding(one) : "none";
}
