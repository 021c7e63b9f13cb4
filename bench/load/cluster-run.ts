import { sleep, systemClock } from "../../src/core/clock.ts";
import { mustAgree, type Answers } from "../support/answers.ts";
import { mapParts, type BenchCluster, type ByPart, type ClusterCounts } from "../support/bench-cluster.ts";
import type { DataFile } from "../support/data-file.ts";
import { prepareLoad } from "../support/generator.ts";
import { planOf, type IngestJob } from "../support/ingest-run.ts";
import type { LoadResult } from "../support/load-plan.ts";
import { quantile } from "../../src/capacity/quantile.ts";

/** One load on a cluster, with what it cost until its last row was visible. */
export type ClusterRun = LoadResult & {
  cpu: ByPart;
  /** From a request's first byte to its commit, by the catalog's ledger. */
  freshnessMs: { p50: number; p99: number; max: number };
  spent: ClusterCounts;
};

export type ClusterJob = Omit<IngestJob, "tables" | "settleMs"> & { table: string };

export type ClusterData = { data: DataFile; answersOf: (acceptedByBody: readonly number[]) => Answers };

const POLL_MS = 50;
/** Also the slowest committer is done by then. */
const VISIBLE_WITHIN_MS = 120_000;

/** Loads a fresh table through that address, and checks that it then holds what was acknowledged and nothing else. */
export async function runClusterLoad(
  cluster: BenchCluster,
  url: string,
  { table, ...job }: ClusterJob,
  { data, answersOf }: ClusterData,
): Promise<ClusterRun> {
  await cluster.createTable(table, data.columns);
  const generator = await prepareLoad(planOf(url, { ...job, tables: [table], keepsTimes: true }));
  const before = await cluster.counts();
  const cpuBefore = cluster.cpuSeconds();
  const result = await generator.run();
  if (result.failed > 0) throw new Error(`requests failed: ${result.firstFailure ?? ""}`);
  await untilCommitted(cluster, table, result.accepted);
  const cpuAfter = cluster.cpuSeconds();
  const spent = difference(await cluster.counts(), before);
  const freshnessMs = freshnessOf(result.sentAtMs ?? {}, await cluster.committedAtMs(table));
  mustAgree("the cluster", await cluster.answers(table, data.checks), answersOf(result.acceptedByBody));
  return { ...result, cpu: mapParts((part) => cpuAfter[part] - cpuBefore[part]), freshnessMs, spent };
}

async function untilCommitted(cluster: BenchCluster, table: string, requests: number): Promise<void> {
  const deadlineMs = systemClock.monotonicMs() + VISIBLE_WITHIN_MS;
  while ((await cluster.committedKeys(table)) < requests) {
    if (systemClock.monotonicMs() > deadlineMs) throw new Error(`not all requests to ${table} were committed in time`);
    await sleep(systemClock, POLL_MS);
  }
}

function freshnessOf(sentAtMs: Readonly<Record<string, number>>, committedAtMs: ReadonlyMap<string, number>) {
  const waits = Object.entries(sentAtMs).map(([key, sentMs]) => {
    const committedMs = committedAtMs.get(key);
    if (committedMs === undefined) throw new Error(`the catalog does not know the key ${key}, which was acknowledged`);
    return committedMs - sentMs;
  });
  const sorted = Float64Array.from(waits).sort();
  return { p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99), max: quantile(sorted, 1) };
}

function difference(after: ClusterCounts, before: ClusterCounts): ClusterCounts {
  const requests = [...after.s3Requests].map(([kind, count]) => {
    return [kind, count - (before.s3Requests.get(kind) ?? 0)] as const;
  });
  return {
    s3Requests: new Map(requests),
    s3BytesOut: after.s3BytesOut - before.s3BytesOut,
    snapshots: after.snapshots - before.snapshots,
    extents: after.extents - before.extents,
    writes: after.writes - before.writes,
    transactions: after.transactions - before.transactions,
    walBytes: after.walBytes - before.walBytes,
  };
}
