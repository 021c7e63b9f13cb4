import type { DriveResult, RequestResult } from "./plan.ts";
import { percentilesOf, type Percentiles } from "./samples.ts";

/** What came of a load, all generator processes together. Percentiles are of all single values, not of percentiles. */
export type LoadRun = {
  /** For how long requests fell due. */
  seconds: number;
  /** Requests that fell due; in a closed loop, requests sent. */
  offered: number;
  offeredPerSecond: number;
  accepted: number;
  /** Requests a second that were accepted before the duration was over. */
  achievedPerSecond: number;
  /** Answers of 429. */
  refused: number;
  /** Any other answers but 200, broken connections, and answers that never came. */
  failed: number;
  firstFailure: string | undefined;
  /** Requests that had fallen due, and that no connection had been free for, when the duration was over. */
  backlog: number;
  /** Of these, how many were never sent. */
  abandoned: number;
  /**
   * Of accepted requests, from when they fell due to the last byte of the answer; of those never sent, what they had
   * waited so far.
   */
  latencyMs: Percentiles;
  /** Of accepted requests, from the first byte sent: what a closed loop sees. */
  serviceMs: Percentiles;
  /** How late the generators themselves sent what found an idle connection; all NaN in a closed loop. */
  latenessMs: Percentiles;
  /** By the name of the request in the profile: `ingest`, `health`, and each query's. */
  byRequest: Readonly<Record<string, RequestRun>>;
  rowsAcknowledged: number;
  /** Of acknowledged bodies, before they were compressed. */
  bytesAcknowledged: number;
  generatorCpuSeconds: number;
  /** Of all cores of the machine, while the load ran. */
  generatorShare: number;
  /** Why the figures may be those of the generator and not of the server; empty when there is no such reason. */
  marks: string[];
};

export type RequestRun = Pick<LoadRun, "accepted" | "refused" | "failed" | "latencyMs" | "serviceMs">;

/** Past this share of the machine the generator takes what the server would need. */
const MOST_SHARE = 0.4;
/** Past this the generator is too late, at the 99th percentile, to tell short waits. */
const MOST_LATENESS_MS = 10;

type Machine = { wallSeconds: number; cores: number };

export function mergeResults(
  results: readonly DriveResult[],
  names: readonly string[],
  { durationMs, ...machine }: Machine & { durationMs: number },
): LoadRun {
  const requests = results.flatMap((result) => result.requests);
  const seconds = durationMs / 1_000;
  const abandonedMs = results.map((result) => result.abandonedMs);
  const latenessMs = percentilesOf(results.map((result) => result.latenessMs));
  const generatorCpuSeconds = sumOf(results, ({ cpuSeconds }) => cpuSeconds);
  const generatorShare = generatorCpuSeconds / (machine.wallSeconds * machine.cores);
  const offered = sumOf(results, (result) => result.offered);
  return {
    seconds,
    offered,
    offeredPerSecond: offered / seconds,
    ...requestRun(requests, abandonedMs),
    achievedPerSecond: sumOf(requests, ({ acceptedInTime }) => acceptedInTime) / seconds,
    firstFailure: results.find(({ firstFailure }) => firstFailure !== undefined)?.firstFailure,
    backlog: sumOf(results, ({ backlog }) => backlog),
    abandoned: sumOf(abandonedMs, ({ length }) => length),
    latenessMs,
    byRequest: Object.fromEntries(
      names.map((name, index) => [
        name,
        requestRun(
          results.flatMap((result) => result.requests[index] ?? []),
          [],
        ),
      ]),
    ),
    rowsAcknowledged: sumOf(requests, ({ rows }) => rows),
    bytesAcknowledged: sumOf(requests, ({ bytes }) => bytes),
    generatorCpuSeconds,
    generatorShare,
    marks: marksOf(generatorShare, latenessMs),
  };
}

function requestRun(requests: readonly RequestResult[], abandonedMs: readonly Float64Array[]): RequestRun {
  return {
    accepted: sumOf(requests, ({ accepted }) => accepted),
    refused: sumOf(requests, ({ refused }) => refused),
    failed: sumOf(requests, ({ failed }) => failed),
    latencyMs: percentilesOf([...requests.map(({ latencyMs }) => latencyMs), ...abandonedMs]),
    serviceMs: percentilesOf(requests.map(({ serviceMs }) => serviceMs)),
  };
}

function marksOf(share: number, { p99 }: Percentiles): string[] {
  const marks: string[] = [];
  if (share > MOST_SHARE) marks.push(`the generator took ${(share * 100).toFixed(0)} % of the machine`);
  if (p99 > MOST_LATENESS_MS) marks.push(`the generator sent ${p99.toFixed(0)} ms late (p99)`);
  return marks;
}

function sumOf<T>(all: readonly T[], valueOf: (one: T) => number): number {
  return all.reduce((sum, one) => sum + valueOf(one), 0);
}
