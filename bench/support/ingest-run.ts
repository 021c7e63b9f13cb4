import { sleep, systemClock } from "../../src/core/clock.ts";
import { mustAgree, type Answers } from "./answers.ts";
import { prepareLoad } from "./generator.ts";
import type { Cut, LoadPlan, LoadResult } from "./load-plan.ts";
import type { BenchServer } from "./server.ts";
import type { Checks } from "./shapes.ts";

/** One measured run of ingest: the load's own figures and the server's beside them. */
export type IngestRun = LoadResult & {
  /** CPU seconds of the server until the last acknowledgement. */
  serverCpuSeconds: number;
  /** The same with what it did in the `settleMs` after that. */
  settledCpuSeconds: number;
  peakBytes: number;
  loopP99Ms: number;
  diskBytes: number;
};

export type IngestJob = {
  file: string;
  cut: Cut;
  connections: number;
  tables: readonly string[];
  keyPrefix: string;
  pace?: NonNullable<LoadPlan["pace"]>;
  repeatForMs?: number;
  keepsTimes?: boolean;
  /** How long background work of the server is watched after the last acknowledgement. */
  settleMs?: number;
};

/** Runs one load against a server. */
export async function runIngest(server: BenchServer, job: IngestJob): Promise<IngestRun> {
  const generator = await prepareLoad(planOf(server.url, job));
  const diskBefore = await server.diskBytes();
  await server.loopP99Ms(); // starts its window
  server.resetPeak();
  const cpuBefore = server.cpuSeconds();
  const result = await generator.run();
  const serverCpuSeconds = server.cpuSeconds() - cpuBefore;
  const { peakBytes } = server.memory();
  const loopP99Ms = await server.loopP99Ms();
  await sleep(systemClock, job.settleMs ?? 0);
  const settledCpuSeconds = server.cpuSeconds() - cpuBefore;
  const diskBytes = (await server.diskBytes()) - diskBefore;
  return { ...result, serverCpuSeconds, settledCpuSeconds, peakBytes, loopP99Ms, diskBytes };
}

/** The plan of a load on the server at that address. */
export function planOf(url: string, job: Omit<IngestJob, "settleMs">): LoadPlan {
  const { hostname, port } = new URL(url);
  const headers = { "Content-Type": "application/x-ndjson" };
  return { host: hostname, port: Number(port), path: "/v1/ingest", headers, ...job };
}

/** What the tables hold together. */
export async function answersOfTables(
  server: BenchServer,
  tables: readonly string[],
  checks: Checks,
): Promise<Answers> {
  const total: Answers = { rows: 0, sum: 0, hash: 0 };
  for (const table of tables) addAnswers(total, await server.answers(table, checks));
  return total;
}

/** Adds `answers`, `times` over, to `total`. */
export function addAnswers(total: Answers, answers: Answers, times = 1): void {
  total.rows += answers.rows * times;
  total.sum += answers.sum * times;
  total.hash += answers.hash * times;
}

/** What a load is checked by: what its data holds, or what bodies of it hold that were accepted so often. */
export type IngestChecks = { checks: Checks } & (
  | { expected: Answers }
  | { answersOf: (acceptedByBody: readonly number[]) => Answers }
);

/**
 * Runs a load that must be accepted whole, and checks that the tables then hold what they held before and the data.
 * Tables that do not exist yet held nothing.
 */
export async function runCheckedIngest(
  server: BenchServer,
  job: IngestJob,
  data: IngestChecks,
  tablesExist: boolean,
): Promise<IngestRun> {
  const expected = tablesExist ? await answersOfTables(server, job.tables, data.checks) : { rows: 0, sum: 0, hash: 0 };
  const run = await runIngest(server, job);
  if (run.failed > 0) throw new Error(`requests failed: ${run.firstFailure ?? ""}`);
  addAnswers(expected, "expected" in data ? data.expected : data.answersOf(run.acceptedByBody));
  mustAgree("the server", await answersOfTables(server, job.tables, data.checks), expected);
  return run;
}
