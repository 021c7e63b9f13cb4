import { amount } from "./figures.ts";
import type { Growth } from "./growth.ts";
import { markdownTable } from "./markdown.ts";

const HEAD = `What grows with what, by \`npm run bench -- growth\`. The power is that of a law y = a · x^b fitted to all sizes. What is
promised to be flat may cost 1.25 times as much at the largest size as at the smallest, and what may grow as n log n, 1.25
times that; it is marked as more where even the intervals say so.`;

const MARKS = { holds: "✓ holds", unclear: "? unclear", exceeds: "✗ more" } as const;

/** Curves as tables, each with what it explains. */
export function growthText(curves: readonly Growth[]): string {
  return [HEAD, ...curves.map(curveText)].join("\n\n");
}

function curveText({ name, question, x, series, startedAt, commit, machine, problems }: Growth): string {
  const sizes = series[0]?.points.map((point) => amount(point.x)) ?? [];
  const table = markdownTable(
    [x.unit, ...sizes, "power", "promised", ""],
    series.map(({ name: of, unit, points, exponent, promise, verdict }) => [
      `${of}, ${unit}`,
      ...points.map(({ y }) => amount(y)),
      exponent.toFixed(2),
      promise,
      MARKS[verdict],
    ]),
  );
  const notes = series.map(({ name: of, doc, verdict, because }) =>
    verdict === "holds" || because === null ? `- ${of}: ${doc}.` : `- ${of}: ${doc}. It grows: ${because}.`,
  );
  const noise = problems.map((problem) => `- marked: ${problem}.`);
  const taken = `Taken ${startedAt.slice(0, 10)}, ${commit?.slice(0, 8) ?? "no repository"}, on ${machine.processor} × ${machine.cores}.`;
  return `### ${name}\n\n${question} ${taken}\n\n${table}\n\n${[...notes, ...noise].join("\n")}`;
}
