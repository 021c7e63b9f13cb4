import { join } from "node:path";
import { VERSION } from "../../src/core/version.ts";
import type { Result } from "../suite/result.ts";
import { REPOSITORY } from "../suite/revision.ts";
import { amount, MARKS, resultText, takenText, wantedText } from "./figures.ts";
import { jsonFilesIn, readFiles } from "./files.ts";
import { lastStanding, readGoals, standingOf, type Goal } from "./goals.ts";
import { growthText } from "./growth-text.ts";
import { distancesIn } from "./limits.ts";
import { markdownTable } from "./markdown.ts";
import { byStanding, type Report } from "./report.ts";

const HEAD = `# Performance

<!-- Written from \`bench/goals.toml\` and \`bench/results/\` by \`npm run docs\`. -->

What this program promises of its speed, and what was measured. No test keeps these figures: \`npm run bench -- report\`
says how they stand, \`npm run bench -- run NAME\` measures a benchmark of the suite again, and
[the benchmarks](../bench/README.md) say what each asks and how to read it.`;

const METHOD = `## Method

- All sides of a benchmark hold the same answers before a time counts, are warmed up by one round, and take turns; a figure
  is the median of the rounds. In brackets stands its interval of 95 % (bootstrap), or the range of several runs for a
  figure of a program that is not on the suite.
- A figure with × is ours over the peer's. Rates are better when they are higher (≥), times and sizes when they are lower
  (≤). Servers, load and peers share one machine and speak over loopback; MB per CPU-second (MB/CPU-s) counts the server,
  its threads and its children.
- A run in which a side differed from itself by more than 5 %, other processes took a tenth of the machine, or the clock was
  set, is no result.
- \`wanted\` is what a document asks for, what the peer does, or what was stated before; \`bench/goals.toml\` says which.`;

/** The text of `docs/performance.md`, from the goals and the kept results of this repository. */
export async function performanceDoc(): Promise<string> {
  const bench = join(REPOSITORY, "bench");
  const goals = await readGoals(join(bench, "goals.toml"));
  const { results, growth } = await readFiles(await jsonFilesIn(join(bench, "results")));
  return renderPerformanceDoc({ goals, results, growth, release: VERSION });
}

export function renderPerformanceDoc({
  goals,
  results,
  growth,
  release,
}: Pick<Report, "goals" | "results" | "growth" | "release">): string {
  const chapters = Map.groupBy(goals, ({ chapter }) => chapter);
  const parts = [
    HEAD,
    standsText(goals, release),
    ...[...chapters].map(([chapter, own]) => `## ${chapter}\n\n${goalsTable(own, release)}${notesOf(own)}`),
    `## Limits of the machine\n\n${limitsText(results)}`,
    ...(growth.length === 0 ? [] : [`## Growth\n\n${growthText(growth)}`]),
    METHOD,
  ];
  return `${parts.join("\n\n")}\n`;
}

function standsText(goals: readonly Goal[], release: string): string {
  const { holds, missed, unclear, none } = byStanding({ goals, release });
  return (
    `Of ${goals.length} goals ${holds.length} hold in release ${release}, ${missed.length} are missed, ` +
    `${unclear.length} are unclear (the interval reaches over the goal), and ${none.length} have no result of this ` +
    "release: their marks in brackets are those of the last one."
  );
}

function goalsTable(goals: readonly Goal[], release: string): string {
  return markdownTable(
    ["goal", "", "wanted", "last result", "measured", "on"],
    goals.map((goal) => [
      goal.title,
      markOf(goal, release),
      wantedText(goal),
      resultText(goal),
      takenText(goal),
      goal.result?.processor ?? "",
    ]),
  );
}

function markOf(goal: Goal, release: string): string {
  const [own, last] = [standingOf(goal, release), lastStanding(goal)].map((standing) => MARKS[standing]);
  return own === last ? `${own}` : `(${last})`;
}

function notesOf(goals: readonly Goal[]): string {
  const notes = goals.flatMap(({ title, result }) => (result?.note === undefined ? [] : `- ${title}: ${result.note}.`));
  return notes.length === 0 ? "" : `\n\n${notes.join("\n")}`;
}

function limitsText(results: readonly Result[]): string {
  const distances = distancesIn(results);
  if (distances.length === 0) {
    return "No result in `bench/results/` says how far the engine is from what its machine could do at most.";
  }
  const rows = distances.map(({ limit, limitValue, figure, figureValue, unit, says, machine }) => [
    limit,
    `${amount(limitValue)} ${unit}`,
    figure,
    `${amount(figureValue)} ${unit}`,
    says,
    machine,
  ]);
  const head = ["limit", "of the machine", "the engine", "measured", "distance", "on"];
  return `Both were measured in one run.\n\n${markdownTable(head, rows)}`;
}
