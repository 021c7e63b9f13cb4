import { printTable } from "../support/report.ts";
import { MARKS, measuredBy, resultText, takenText, wantedText } from "./figures.ts";
import { lastStanding, type Goal, type Standing } from "./goals.ts";
import { byStanding, summaryOf, type Report } from "./report.ts";

const ORDER: readonly Standing[] = ["missed", "unclear", "holds", "none"];

/** The goals by how they stand, worst first. */
export function printReport(report: Report): void {
  for (const line of summaryOf(report)) console.log(line);
  const groups = byStanding(report);
  for (const standing of ORDER) {
    const goals = groups[standing];
    if (goals.length === 0) continue;
    console.log("");
    printTable(
      [standing === "none" ? `${MARKS.none} of this release` : MARKS[standing], "wanted", "last", "taken", "by"],
      goals.map((goal) => [goal.title, wantedText(goal), lastText(goal, standing), takenText(goal), measuredBy(goal)]),
    );
  }
}

/** An earlier result says how it stood. */
function lastText(goal: Goal, standing: Standing): string {
  if (standing !== "none" || goal.result === undefined) return resultText(goal);
  return `${resultText(goal)} ${MARKS[lastStanding(goal)].charAt(0)}`;
}
