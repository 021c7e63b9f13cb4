import { median } from "../../src/capacity/quantile.ts";
import { printTable, shown } from "../support/report.ts";
import type { Benchmark } from "./benchmark.ts";
import type { Result, SideRound, Summary } from "./result.ts";

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
  printProcesses(result);
  for (const problem of noise.problems) console.log(`no result: ${problem}`);
}

/** Of one round, by side and process: medians. Files of schema 1 do not tell it. */
function printProcesses({ rounds, summary }: Result): void {
  const rows = [...new Set(summary.map(({ side }) => side))].flatMap((side) => {
    const own = rounds.flatMap((round) => round[side] ?? []);
    return Object.keys(own[0]?.threadSeconds ?? {}).map((name) =>
      [side, name].concat(SPENT.map((spent) => shown(median(own.flatMap((round) => spent(round, name) ?? []))))),
    );
  });
  if (rows.length === 0) return;
  console.log("");
  printTable(["one round", "process", "CPU s", "main thread", "other threads", "MB to disk"], rows);
}

const SPENT: readonly ((round: SideRound, process: string) => number | undefined)[] = [
  ({ cpuSeconds }, name) => cpuSeconds[name],
  ({ threadSeconds }, name) => threadSeconds[name]?.main,
  ({ threadSeconds }, name) => threadSeconds[name]?.others,
  ({ bytesToDisk }, name) => (bytesToDisk[name] === undefined ? undefined : bytesToDisk[name] / 1e6),
];

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
