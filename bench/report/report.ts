import type { Result } from "../suite/result.ts";
import { counts, evidenceFor, type Evidence } from "./evidence.ts";
import type { Goal, Standing } from "./goals.ts";
import { standingOf } from "./goals.ts";
import type { Growth } from "./growth.ts";
import type { Html } from "./html.ts";

/** What is reported on paper, in a terminal and in the documents. */
export type Report = {
  /** Of the program that is reported on. */
  release: string;
  /** With their newest results. */
  goals: readonly Goal[];
  results: readonly Result[];
  growth: readonly Growth[];
  /** What is planned from these figures. */
  plan?: Html;
  heldOut?: readonly HeldOut[];
};

/** A load that was predicted before it was measured. */
export type HeldOut = {
  load: string;
  measure: string;
  unit: string;
  predicted: { value: number; low: number; high: number };
  measured: number;
};

/** By how much what was measured differs from what was predicted, as a share of what was predicted. */
export function missOf({ predicted, measured }: Pick<HeldOut, "predicted" | "measured">): number {
  return measured / predicted.value - 1;
}

/** What result files say, by the names of the goals that they are of. */
export async function evidenceByGoal(
  goals: readonly Goal[],
  results: readonly Result[],
): Promise<Map<string, Evidence>> {
  const found = new Map<string, Evidence>();
  for (const goal of goals) {
    const evidence = await evidenceFor(goal, results);
    if (evidence !== undefined) found.set(goal.name, evidence);
  }
  return found;
}

/** The goals with these results in place of earlier ones. */
export function withNewest(goals: readonly Goal[], evidence: ReadonlyMap<string, Evidence>): Goal[] {
  return goals.map((goal) => {
    const result = evidence.get(goal.name)?.own;
    return result === undefined ? goal : Object.assign({}, goal, { result });
  });
}

/** By how they stand in this release, in the order of the file. */
export function byStanding({ goals, release }: Pick<Report, "goals" | "release">): Record<Standing, Goal[]> {
  const groups: Record<Standing, Goal[]> = { holds: [], missed: [], unclear: [], none: [] };
  for (const goal of goals) groups[standingOf(goal, release)].push(goal);
  return groups;
}

/** At most ten lines for who reads nothing else. */
export function summaryOf(report: Report): string[] {
  const { holds, missed, unclear, none } = byStanding(report);
  const busy = report.results.filter((result) => !counts(result));
  const lines = [
    `Release ${report.release}: of ${report.goals.length} goals ${holds.length} hold, ${missed.length} are missed, ` +
      `${unclear.length} are unclear, ${none.length} have no result of this release.`,
    ...missed.slice(0, MISSED_LINES).map(({ title }) => `Missed: ${title}.`),
  ];
  if (missed.length > MISSED_LINES) lines.push(`${missed.length - MISSED_LINES} more are missed.`);
  if (report.results.length > 0) lines.push(`${count(report.results.length, "result file")} read.`);
  if (busy.length > 0) {
    lines.push(`Beside other work, and no result: ${[...new Set(busy.map(({ benchmark }) => benchmark))].join(", ")}.`);
  }
  return lines;
}

const MISSED_LINES = 6;

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? " was" : "s were"}`;
}
