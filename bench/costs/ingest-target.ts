import { systemCodeOf } from "../../src/core/errors.ts";
import type { CostPart, IngestObservation } from "../../src/capacity/costs/costs.ts";
import { cpuSecondsOf, mainThreadSecondsOf, memoryOf, resetPeak } from "../support/process-stats.ts";
import type { Scrape } from "../../src/capacity/observe/metrics-text.ts";
import { byLabel, scrape } from "../support/scrape.ts";
import type { RowsFile } from "./rows-file.ts";

/** Where a load is sent, and where what it costs is read. */
export type IngestTarget = Pick<IngestObservation, "deployment" | "viaEdge"> & {
  /** Takes rows. */
  url: string;
  /** Answers queries. */
  queryUrl: string;
  /** Addresses of all processes of the engine, whose metrics count together. */
  urls: readonly string[];
  pids: ReadonlyMap<CostPart, number>;
  /** Of the PostgreSQL log, so far. */
  walBytes: () => Promise<number | null>;
  createTable(name: string, data: RowsFile): Promise<void>;
  /** Resolves when so many requests to the tables are visible. */
  untilVisible(tables: readonly string[], requests: number): Promise<void>;
};

/** What a load has cost. */
export type Spent = Pick<
  IngestObservation,
  "commits" | "cpuSeconds" | "mainThreadSeconds" | "walBytes" | "storeRequests" | "storedBytes" | "peakBytes"
> & { flushes: number };

/** Counts from now on until the function that it resolves to is called. Nothing else may use the target meanwhile. */
export async function startMeter(target: IngestTarget): Promise<() => Promise<Spent>> {
  const engine = [...target.pids].filter(([part]) => part !== "postgres" && part !== "store");
  const before = await countersOf(target);
  for (const [, pid] of engine) resetPeak(pid);
  const cpuBefore = perPart(target.pids, cpuSecondsOf);
  const mainBefore = perPart(engine, mainThreadSecondsOf);
  return async () => {
    const cpuAfter = perPart(target.pids, cpuSecondsOf);
    const mainAfter = perPart(engine, mainThreadSecondsOf);
    const peakBytes = perPart(engine, (pid) => memoryOf(pid).peakBytes);
    const after = await countersOf(target);
    return {
      commits: after.commits - before.commits,
      flushes: after.flushes - before.flushes,
      cpuSeconds: less(cpuAfter, cpuBefore),
      mainThreadSeconds: less(mainAfter, mainBefore),
      walBytes: after.walBytes === null || before.walBytes === null ? null : after.walBytes - before.walBytes,
      storeRequests: less(after.storeRequests, before.storeRequests),
      storedBytes: after.storedBytes - before.storedBytes,
      peakBytes,
    };
  };
}

/** A part whose process is gone; undefined while all are there. */
export function endedPart({ pids }: IngestTarget): CostPart | undefined {
  return [...pids].find(([, pid]) => !isThere(pid))?.[0];
}

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // Of another user, it is there.
    return systemCodeOf(error) === "EPERM";
  }
}

type ByName = Readonly<Record<string, number>>;

function perPart(pids: Iterable<readonly [CostPart, number]>, of: (pid: number) => number): ByName {
  return Object.fromEntries([...pids].map(([part, pid]) => [part, of(pid)]));
}

function less(after: ByName, before: ByName): Record<string, number> {
  return Object.fromEntries(Object.entries(after).map(([name, value]) => [name, value - (before[name] ?? 0)]));
}

type Counters = Pick<Spent, "commits" | "flushes" | "storedBytes" | "storeRequests" | "walBytes">;

/** What has been spent so far beside CPU, by the engine's own metrics. */
async function countersOf({ urls, walBytes }: IngestTarget): Promise<Counters> {
  const storeRequests: Record<string, number> = {};
  let [commits, flushes, storedBytes] = [0, 0, 0];
  for (const url of urls) {
    const metrics = await scrape(url);
    commits += valueOf(metrics, "engine_catalog_commit_duration_seconds_count");
    flushes += valueOf(metrics, "engine_ingest_flush_duration_seconds_count");
    storedBytes += valueOf(metrics, "engine_extents_committed_bytes_total");
    for (const [kind, requests] of byLabel(metrics, "engine_objstore_requests_total", "kind")) {
      storeRequests[kind] = (storeRequests[kind] ?? 0) + requests;
    }
  }
  return { commits, flushes, storedBytes, storeRequests, walBytes: await walBytes() };
}

/** Of a metric without labels; 0 in a role that does not have it. */
function valueOf(metrics: Scrape, name: string): number {
  return metrics.find((sample) => sample.name === name)?.value ?? 0;
}
