import { printTable, shown } from "../support/report.ts";
import type { Benchmark } from "./benchmark.ts";
import type { Result, Summary } from "./result.ts";

/** What people are shown of a run; programs read its file. */
export function printResult(result: Result): void {
  const { machine, noise } = result;
  const quota = machine.cpuQuota === null ? "" : `, ${shown(machine.cpuQuota)} of them allowed`;
  console.log(`${result.benchmark}: ${result.question}`);
  console.log(`Not measured: ${result.notMeasured}`);
  console.log(
    `${machine.processor} × ${machine.cores}${quota}, fsync ${shown(machine.fsyncMs.p50)} ms, ` +
      `${result.rounds.length} rounds, seed ${result.seed}`,
  );
  console.log("");
  printTable(
    ["", "measure", "median", "95 %", "unit", "ratio", "95 %"],
    result.summary.map((row) => [
      row.side,
      row.measure,
      shown(row.median),
      between(row.interval),
      unitOf(row),
      ...ratioOf(row),
    ]),
  );
  for (const mark of result.marks) console.log(`marked: ${mark}`);
  for (const problem of noise.problems) console.log(`no result: ${problem}`);
}

function between({ low, high }: { low: number; high: number }): string {
  return `${shown(low)}–${shown(high)}`;
}

function unitOf({ unit, better }: Summary): string {
  return `${unit} ${better === "more" ? "↑" : "↓"}`;
}

function ratioOf({ ratio }: Summary): [string, string] {
  return ratio === null ? ["", ""] : [`${shown(ratio.median)}×`, between(ratio.interval)];
}

/** Name, question, options and measures of each. */
export function printList(benchmarks: readonly Benchmark[]): void {
  for (const { name, question, options, measures } of benchmarks) {
    console.log(`${name}\n  ${question}`);
    for (const [option, schema] of Object.entries(options.shape)) {
      console.log(`  --${option}  ${(schema as { description?: string }).description ?? ""}`);
    }
    for (const [measure, { unit, better, doc }] of Object.entries(measures)) {
      console.log(`  ${measure} (${unit}, ${better} is better): ${doc}`);
    }
  }
}
