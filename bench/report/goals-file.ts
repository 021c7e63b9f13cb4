import { stringify } from "smol-toml";
import type { GoalResult } from "./goals.ts";

const GOAL = /^(?=\[\[goal\]\]$)/m;
const NAME = /^name = "([a-z0-9-]+)"$/m;
/** Up to the next table, or a comment behind an empty line. */
const RESULT = /^\[goal\.result\]\n(?:(?!\[|\n).*\n)*/m;

/**
 * The text of a file of goals with these results, by the names of their goals. All else stays as it is: the order of the
 * goals, and comments but for those inside a result. Throws where a name has no goal.
 */
export function withResults(text: string, results: ReadonlyMap<string, GoalResult>): string {
  const missing = new Set(results.keys());
  const [head = "", ...goals] = text.split(GOAL);
  const updated = goals.map((goal) => {
    const name = NAME.exec(goal)?.[1] ?? "";
    const result = results.get(name);
    if (result === undefined) return goal;
    missing.delete(name);
    return withResult(goal, result);
  });
  if (missing.size > 0) throw new Error(`there is no goal ${[...missing].join(", ")}`);
  return head + updated.join("");
}

function withResult(goal: string, result: GoalResult): string {
  const table = `[goal.result]\n${tomlOf(result)}`;
  if (RESULT.test(goal)) return goal.replace(RESULT, () => table);
  const end = goal.search(/\n(?:\n|$)/) + 1;
  return `${goal.slice(0, end)}\n${table}${goal.slice(end)}`;
}

function tomlOf({ date, ...rest }: GoalResult): string {
  // `stringify` would write the date as a text.
  return `${stringify(rest).trimEnd()}\ndate = ${date}\n`;
}
