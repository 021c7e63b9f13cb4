import { shown } from "../support/report.ts";
import type { Goal, Standing } from "./goals.ts";

/** How figures of goals are written. */

export const MARKS: Readonly<Record<Standing, string>> = {
  holds: "✓ holds",
  missed: "✗ missed",
  unclear: "? unclear",
  none: "– no result",
};

export function wantedText(goal: Goal): string {
  return `${goal.better === "more" ? "≥" : "≤"} ${withUnit(goal, amount(goal.wanted))}`;
}

/** The last result, with its interval; empty without one. */
export function resultText(goal: Goal): string {
  const { result } = goal;
  if (result === undefined) return "";
  const value = withUnit(goal, amount(result.value));
  return result.low === undefined ? value : `${value} (${amount(result.low)}–${amount(result.high ?? result.value)})`;
}

function withUnit({ peer, unit }: Goal, text: string): string {
  return peer === undefined ? `${text} ${unit}` : `${text}×`;
}

/** About three digits, without zeros that say nothing. */
export function amount(value: number): string {
  if (value >= 1_000) return Number(value.toPrecision(4)).toLocaleString("en-US");
  return String(Number(shown(value)));
}

/** The benchmark or program that a goal is measured by. */
export function measuredBy({ benchmark, program, measure, peer }: Goal): string {
  const against = peer === undefined ? "" : ` against ${peer}`;
  return `${benchmark ?? program ?? ""}: ${measure}${against}`;
}

/** When the last result was taken, and of which build. */
export function takenText({ result }: Goal): string {
  return result === undefined ? "never measured" : `${result.date}, ${result.commit}`;
}
