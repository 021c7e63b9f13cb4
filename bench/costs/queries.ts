import type { QueryClass, QueryObservation } from "../../src/capacity/costs/costs.ts";
import { quantile } from "../../src/capacity/quantile.ts";
import { QueryClient } from "../query/query-client.ts";
import { cpuSecondsOf, descendantsOf, memoryOf, resetPeak } from "../support/process-stats.ts";
import { startBenchServer } from "../support/server.ts";
import { sendOnce, type LoadedHome } from "./compaction.ts";
import type { RowsFile } from "./rows-file.ts";
import type { StepContext } from "./step.ts";

/** A server with tables of logs to ask, and what is in them. */
export type QueryTarget = {
  url: string;
  /** Of the server; query processes are its children. */
  pid: number;
  /** All in Parquet. */
  compacted: { table: string; data: RowsFile };
  /** As ingest has left it. */
  fresh: { table: string; data: RowsFile };
};

/** A query of a class, and the sum of what its rows have in `n`, by which an answer is checked. */
export type Question = { class: QueryClass; sql: string; n: number; rangeBytes: number };

/** By class, which parts of the table in time are asked about: two, so that what a byte costs can be told from the rest. */
const SHARES: Readonly<Record<QueryClass, readonly [number, number]>> = {
  point: [0.002, 0.02],
  needle: [0.5, 1],
  window: [0.01, 0.1],
  group: [0.5, 1],
  scan: [0.5, 1],
  fresh: [0.5, 1],
};

const SUMS = "count(*) AS n, sum(bytes) AS total, avg(duration_ms) AS mean";
const ALL_COLUMNS = "concat_ws(' ', label, body, service, host, path, status, duration_ms, bytes, trace_id)";

/** In the order in which they are run: each class with the shorter range first. */
export function questionsOn({ compacted, fresh }: Pick<QueryTarget, "compacted" | "fresh">): Question[] {
  return Object.entries(SHARES).flatMap(([name, shares]) => {
    const queryClass = name as QueryClass;
    const { table, data } = queryClass === "fresh" ? fresh : compacted;
    return shares.map((share) => questionOf(queryClass, table, rangeIn(data, share)));
  });
}

type Range = { where: string; rows: number; sizeBytes: number; key: string };

function questionOf(queryClass: QueryClass, table: string, { where, rows, sizeBytes, key }: Range): Question {
  const own = {
    point: {
      sql: `SELECT count(*) AS n, max(body) AS body FROM ${table} WHERE ${where} AND trace_id = '${key}'`,
      n: 1,
    },
    needle: { sql: `SELECT *, 1 AS n FROM ${table} WHERE ${where} AND trace_id = '${key}'`, n: 1 },
    window: { sql: `SELECT ${SUMS} FROM ${table} WHERE ${where}`, n: rows },
    group: { sql: `SELECT service, ${SUMS} FROM ${table} WHERE ${where} GROUP BY service`, n: rows },
    scan: { sql: `SELECT count(*) AS n FROM ${table} WHERE ${where} AND ${ALL_COLUMNS} LIKE '% node-%/%'`, n: rows },
    fresh: { sql: `SELECT service, ${SUMS} FROM ${table} WHERE ${where} GROUP BY service`, n: rows },
  }[queryClass];
  return { class: queryClass, rangeBytes: sizeBytes, ...own };
}

/** That share of the rows, with the one in the middle among them. Rows differ in bytes by little: theirs are shared out. */
function rangeIn(data: RowsFile, share: number): Range {
  const rows = Math.max(1, Math.round(data.rows * share));
  const first = Math.max(0, Math.min(data.rows - rows, data.middle.index - (rows >> 1)));
  const atOf = (index: number) => new Date(Date.parse(data.firstAt) + index * data.stepMs).toISOString();
  const bounds = `"at" >= '${withoutZone(atOf(first))}' AND "at" < '${withoutZone(atOf(first + rows))}'`;
  return { where: bounds, rows, sizeBytes: Math.round((data.sizeBytes * rows) / data.rows), key: data.middle.key };
}

/** As the engine takes a literal of UTC. */
function withoutZone(time: string): string {
  return time.replace("T", " ").replace("Z", "");
}

export function timesOf({ brief }: Pick<StepContext, "brief">) {
  return brief ? { leastMs: 30, least: 2, most: 20 } : { leastMs: 1_200, least: 4, most: 400 };
}

/** One process, whose store is its own disk: whatever it reads is there already. */
export async function measureQueries(
  context: StepContext,
  { home, table, data }: LoadedHome,
  fresh: RowsFile,
): Promise<QueryObservation[]> {
  const freshTable = { database: "default", name: "fresh", columns: fresh.columns };
  const server = await startBenchServer({ home, tables: [freshTable] });
  try {
    await sendOnce(server.url, freshTable.name, fresh);
    const tables = { compacted: { table, data }, fresh: { table: freshTable.name, data: fresh } };
    return await observeQueries({ url: server.url, pid: server.pid, ...tables }, true, context);
  } finally {
    await server.stop();
  }
}

/** Asks every question, one after the other, often enough that its CPU can be counted. */
export async function observeQueries(
  target: QueryTarget,
  isCached: boolean,
  context: StepContext,
): Promise<QueryObservation[]> {
  const client = new QueryClient(target.url);
  try {
    const observations: QueryObservation[] = [];
    for (const question of questionsOn(target)) {
      context.signal.throwIfAborted();
      observations.push({ isCached, ...(await observeQuery(client, target.pid, question, context)) });
    }
    return observations;
  } finally {
    client.close();
  }
}

/** Query processes take turns: each has run it once. */
const WARM_UPS = 3;

async function observeQuery(
  client: QueryClient,
  pid: number,
  { class: queryClass, sql, n, rangeBytes }: Question,
  context: StepContext,
): Promise<Omit<QueryObservation, "isCached">> {
  for (let i = 0; i < WARM_UPS; i++) mustCount(sql, (await client.run(sql, { keep: true })).body, n);
  const { leastMs, least, most } = timesOf(context);
  for (const id of descendantsOf(pid)) resetPeak(id);
  const cpuBefore = cpuSecondsOf(pid);
  const startedMs = performance.now();
  const ms: number[] = [];
  while (ms.length < least || (performance.now() - startedMs < leastMs && ms.length < most)) {
    ms.push((await client.run(sql)).ms);
  }
  const cpuSeconds = (cpuSecondsOf(pid) - cpuBefore) / ms.length;
  const sorted = Float64Array.from(ms).sort();
  return {
    class: queryClass,
    rangeBytes,
    queries: ms.length,
    latencyMs: { p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99) },
    cpuSeconds,
    peakBytes: Math.max(
      ...descendantsOf(pid)
        .filter((id) => id !== pid)
        .map((id) => memoryOf(id).peakBytes),
    ),
  };
}

function mustCount(sql: string, body: string, n: number): void {
  const lines = body.split("\n").filter((line) => line !== "");
  const found = lines.reduce((sum, line) => sum + (JSON.parse(line) as { n: number }).n, 0);
  if (found !== n) throw new Error(`the query counts ${found} rows, and there are ${n}: ${sql}`);
}
