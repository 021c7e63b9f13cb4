import type { Growth } from "../report/growth.ts";
import { printTable, shown } from "../support/report.ts";

const WORDS = { holds: "holds", unclear: "unclear", exceeds: "MORE" } as const;

/** What people are shown of a curve; programs read its file. */
export function printGrowth({ name, question, x, series, problems }: Growth): void {
  console.log(`\n${name}: ${question}`);
  const sizes = series[0]?.points.map((point) => String(point.x)) ?? [];
  printTable(
    ["", "unit", ...sizes.map((size) => `${size} ${x.unit}`), "power", "promised", ""],
    series.map(({ name: of, unit, points, exponent, promise, verdict }) => [
      of,
      unit,
      ...points.map(({ y }) => shown(y)),
      `x^${exponent.toFixed(2)}`,
      promise,
      WORDS[verdict],
    ]),
  );
  for (const { name: of, verdict, because } of series)
    if (verdict === "exceeds" && because !== null) console.log(`${of}: ${because}`);
  for (const problem of problems) console.log(`marked: ${problem}`);
}
