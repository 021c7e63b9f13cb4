import type { ByPart } from "../support/bench-cluster.ts";
import { PARTS } from "../support/bench-cluster.ts";
import type { LoadResult } from "../support/load-plan.ts";
import { median } from "../../src/capacity/quantile.ts";
import { printTable, shown } from "../support/report.ts";
import type { ClusterRun } from "./cluster-run.ts";

/** A load on one side. `cluster` is there where the side is one. */
export type SideRun = LoadResult & {
  /** Of the processes that have a part in ingest. */
  engineCpuSeconds: number;
  cluster?: ClusterRun;
};

export type MeasuredSide = { name: string; runs: readonly SideRun[] };

/** The edge may cost so much of what the ingest node does. */
const EDGE_SHARE = 0.25;
const KINDS = ["put", "get", "head", "list", "delete", "multipart"] as const;

/** Every figure is the median of the rounds but the longest waits, which are the worst. */
export function printClusterReport(sides: readonly MeasuredSide[]): void {
  printLoad(sides);
  printCpu(sides);
  printRequests(sides);
  printRatios(sides);
}

type Figure<Run> = (run: Run) => number;

/** A column of the first table: of the rounds of a side. */
type Column = [name: string, of: (runs: readonly SideRun[]) => number];

const LOAD_COLUMNS: readonly Column[] = [
  ["MB", mid(megabytes)],
  ["wall MB/s", mid((run) => megabytes(run) / run.wallSeconds)],
  ["MB/CPU-s", mid((run) => megabytes(run) / run.engineCpuSeconds)],
  ["ack p50 ms", mid((run) => run.latencyMs.p50)],
  ["p99", mid((run) => run.latencyMs.p99)],
  ["max", worst((run) => run.latencyMs.max)],
  ["fresh p50 ms", mid(fresh(({ p50 }) => p50))],
  ["p99", mid(fresh(({ p99 }) => p99))],
  ["max", worst(fresh(({ max }) => max))],
  ["refused", worst((run) => run.refused)],
  ["unsent", worst((run) => run.unsent)],
];

function mid(figure: Figure<SideRun>): Column[1] {
  return (runs) => median(runs.map(figure));
}

function worst(figure: Figure<SideRun>): Column[1] {
  return (runs) => Math.max(...runs.map(figure));
}

function fresh(figure: Figure<ClusterRun["freshnessMs"]>): Figure<SideRun> {
  return ({ cluster }) => (cluster === undefined ? Number.NaN : figure(cluster.freshnessMs));
}

function printLoad(sides: readonly MeasuredSide[]): void {
  console.log("\nload");
  const rows: string[][] = [];
  for (const { name, runs } of sides) rows.push([name, ...LOAD_COLUMNS.map(([, figure]) => shown(figure(runs)))]);
  printTable(["", ...LOAD_COLUMNS.map(([name]) => name)], rows);
}

function printCpu(sides: readonly MeasuredSide[]): void {
  const columns = [...PARTS, "client"] as const;
  const cpuOf = (run: ClusterRun, part: (typeof columns)[number]) =>
    part === "client" ? run.cpuSeconds : run.cpu[part];
  const table = (title: string, figure: (run: ClusterRun, cpuSeconds: number) => number) => {
    console.log(`\n${title}`);
    const rows = columns.map((part): [string, Figure<ClusterRun>] => [part, (run) => figure(run, cpuOf(run, part))]);
    printClusterTable(sides, rows);
  };
  table("CPU-s per GB", perGb);
  table("MB per CPU-s", (run, cpuSeconds) => megabytes(run) / cpuSeconds);
}

/** A row per side that is a cluster. */
function printClusterTable(sides: readonly MeasuredSide[], columns: readonly [string, Figure<ClusterRun>][]): void {
  const rows: string[][] = [];
  for (const { name, runs } of sides) {
    const own = clusterRuns(runs);
    if (own.length > 0) rows.push([name, ...columns.map(([, figure]) => shown(median(own.map(figure))))]);
  }
  printTable(["", ...columns.map(([name]) => name)], rows);
}

/** What the store and the catalog are asked for. */
function printRequests(sides: readonly MeasuredSide[]): void {
  const counts: [string, Figure<ClusterRun>][] = [
    ...KINDS.map((kind): [string, Figure<ClusterRun>] => [kind, ({ spent }) => spent.s3Requests.get(kind) ?? 0]),
    ["S3 MB out", ({ spent }) => spent.s3BytesOut / 1e6],
    ["extents", ({ spent }) => spent.extents],
    ["snapshots", ({ spent }) => spent.snapshots],
    ["writing commits", ({ spent }) => spent.writes],
    ["transactions", ({ spent }) => spent.transactions],
  ];
  console.log("\nper GB: requests to the S3 store by kind, and what PostgreSQL commits");
  const columns = counts.map(([name, count]): [string, Figure<ClusterRun>] => [name, (run) => perGb(run, count(run))]);
  printClusterTable(sides, columns);
}

/** Of pairs of runs of one round. */
function printRatios(sides: readonly MeasuredSide[]): void {
  console.log("");
  for (const { name, runs } of sides) {
    const shares = clusterRuns(runs).flatMap(({ cpu }) => (cpu.edge > 0 ? [edgeShare(cpu)] : []));
    if (!name.endsWith("edge") || shares.length === 0) continue;
    console.log(`${name}: the edge takes ${shown(median(shares))}× the CPU of the ingest node (${EDGE_SHARE}× wanted)`);
  }
  ratio(sides, ["sync, edge", "sync, direct"], "p50 of the acknowledgement", (run) => run.latencyMs.p50);
  ratio(sides, ["staged, edge", "staged, direct"], "p50 of the acknowledgement", (run) => run.latencyMs.p50);
  ratio(sides, ["staged, direct", "sync, direct"], "MB/CPU-s", (run) => megabytes(run) / run.engineCpuSeconds);
  for (const side of ["sync, direct", "staged, direct"]) {
    ratio(sides, [side, "one process"], "MB/CPU-s", (run) => megabytes(run) / run.engineCpuSeconds);
  }
}

function ratio(
  sides: readonly MeasuredSide[],
  [first, second]: readonly [string, string],
  what: string,
  figure: Figure<SideRun>,
): void {
  const [own, other] = [first, second].map((name) => sides.find((side) => side.name === name)?.runs);
  if (own === undefined || other === undefined) return;
  const ratios = own.flatMap((run, round) => {
    const pair = other[round];
    return pair === undefined ? [] : [figure(run) / figure(pair)];
  });
  console.log(`${first}: ${shown(median(ratios))}× the ${what} of ${second}`);
}

function edgeShare({ edge, ingest }: ByPart): number {
  return edge / ingest;
}

function clusterRuns(runs: readonly SideRun[]): ClusterRun[] {
  return runs.flatMap(({ cluster }) => (cluster === undefined ? [] : [cluster]));
}

function megabytes({ bytesAccepted }: LoadResult): number {
  return bytesAccepted / 1e6;
}

function perGb(run: LoadResult, count: number): number {
  return (count * 1e9) / run.bytesAccepted;
}
