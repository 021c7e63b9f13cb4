import { isDeepStrictEqual } from "node:util";
import { loadProblems } from "../suite/load.ts";
import { benchmarksNamed } from "../suite/named.ts";
import { BENCHMARKS } from "../suite/registry.ts";
import type { Result, Summary } from "../suite/result.ts";
import { optionsOf } from "../suite/run.ts";
import type { Goal, GoalResult } from "./goals.ts";

/** What a goal came to, and the file that says so. */
export type Evidence = { own: GoalResult; source: Result };

/**
 * What result files say of a goal: of several, the newest that counts. Undefined where none does. Rejects with a sentence
 * for a goal whose benchmark is not there.
 */
export async function evidenceFor(goal: Goal, results: readonly Result[]): Promise<Evidence | undefined> {
  if (goal.benchmark === undefined) return undefined;
  const options = await optionsWanted(goal.benchmark, goal.options);
  const newest = results
    .filter((one) => counts(one) && one.benchmark === goal.benchmark && isDeepStrictEqual(one.options, options))
    .toSorted((a, b) => Date.parse(b.startedAt) - Date.parse(a.startedAt));
  for (const result of newest) {
    const figure = figureIn(goal, result);
    if (figure !== undefined) return { own: asGoalResult(figure, result), source: result };
  }
  return undefined;
}

/** As a result file has them: a smaller run says nothing of a goal. */
async function optionsWanted(name: string, own: Goal["options"]): Promise<Record<string, unknown>> {
  const [benchmark] = await benchmarksNamed(name, BENCHMARKS);
  if (benchmark === undefined) throw new Error(`there is no benchmark ${name}`);
  const texts = Object.entries(own).map(([option, value]) => [option, String(value)] as const);
  return optionsOf(benchmark, Object.fromEntries(texts));
}

function asGoalResult(
  { median, interval }: Pick<Summary, "median" | "interval">,
  { machine, startedAt, commit, isClean, release }: Result,
): GoalResult {
  return {
    value: rounded(median),
    low: rounded(interval.low),
    high: rounded(interval.high),
    date: startedAt.slice(0, 10),
    commit: commit === null ? "unknown" : `${commit.slice(0, SHORT_COMMIT)}${isClean ? "" : " with changes"}`,
    processor: `${machine.processor} × ${machine.cores}`,
    ...(release !== null && { release }),
  };
}

const SHORT_COMMIT = 8;

/**
 * Figures taken beside other work say nothing. A machine that was noisy by itself has made their intervals wide, and a
 * goal within one is unclear.
 */
export function counts({ noise }: Result): boolean {
  return loadProblems(noise).length === 0;
}

/** Ratios are of the first side over the others, so a goal with a peer reads the peer's row. */
function figureIn(
  { measure, side, peer }: Goal,
  { summary }: Result,
): Pick<Summary, "median" | "interval"> | undefined {
  const rowOf = (name: string | undefined) =>
    summary.find((row) => row.measure === measure && (name === undefined || row.side === name));
  return peer === undefined ? rowOf(side) : (rowOf(peer)?.ratio ?? undefined);
}

/** To four digits: more says nothing. */
function rounded(value: number): number {
  return Number(value.toPrecision(4));
}
