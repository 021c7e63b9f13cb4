import { readFileSync } from "node:fs";
import postgres from "postgres";
import { systemClock } from "../../src/core/clock.ts";
import { messageOf } from "../../src/core/errors.ts";
import { quoteIdentifier } from "../../src/io/duckdb/duckdb.ts";
import type { Answers } from "../support/answers.ts";
import { cutByRows } from "../support/bodies.ts";
import type { DataFile } from "../support/data-file.ts";
import { postgresColumns } from "../support/dialects.ts";
import { quantile } from "../../src/capacity/quantile.ts";

/** The clients of PostgreSQL, in a process of their own. Each inserts its next rows when the last are committed. */
export type PostgresJob = { port: number; file: DataFile; table: string; rowsPerInsert: number; clients: number };
export type PostgresMessage =
  | { kind: "ready" }
  | { kind: "done"; run: PostgresRun }
  | { kind: "answers"; answers: Answers; diskBytes: number };
export type PostgresRun = { wallSeconds: number; cpuSeconds: number; p50Ms: number; p99Ms: number; inserts: number };

type Sql = Pick<postgres.Sql, "unsafe">;
type Insert = { text: string; parameters: postgres.ParameterOrJSON<never>[] };

/** Prepares (connections open, parameters made), runs when told, and tells what the table holds when told again. */
async function run(job: PostgresJob): Promise<void> {
  const sql = postgres({
    host: "127.0.0.1",
    port: job.port,
    user: "bench",
    database: "postgres",
    max: job.clients + 1,
    onnotice: () => {},
  });
  await sql.unsafe(`CREATE TABLE ${job.table} (${postgresColumns(job.file.columns)})`);
  const inserts = cutByRows(readFileSync(job.file.path), job.rowsPerInsert).map((body) => insertOf(job, body));
  const clients = await Promise.all(Array.from({ length: job.clients }, () => sql.reserve()));
  tell({ kind: "ready" });
  await told();
  tell({ kind: "done", run: await insertAll(clients, inserts) });
  await told();
  tell({ kind: "answers", ...(await answersOf(sql, job)) });
  process.disconnect();
  process.exit(0);
}

async function insertAll(clients: readonly Sql[], inserts: readonly Insert[]): Promise<PostgresRun> {
  const latenciesMs: number[] = [];
  let next = 0;
  const client = async (sql: Sql) => {
    for (let insert = inserts[next++]; insert !== undefined; insert = inserts[next++]) {
      const startedMs = systemClock.monotonicMs();
      await sql.unsafe(insert.text, insert.parameters, { prepare: true });
      latenciesMs.push(systemClock.monotonicMs() - startedMs);
    }
  };
  const cpuBefore = process.cpuUsage();
  const startedMs = systemClock.monotonicMs();
  await Promise.all(clients.map(client));
  const wallSeconds = (systemClock.monotonicMs() - startedMs) / 1000;
  const cpu = process.cpuUsage(cpuBefore);
  const sorted = Float64Array.from(latenciesMs).sort();
  return {
    wallSeconds,
    cpuSeconds: (cpu.user + cpu.system) / 1e6,
    p50Ms: quantile(sorted, 0.5),
    p99Ms: quantile(sorted, 0.99),
    inserts: inserts.length,
  };
}

/** One statement of many rows, prepared once per connection: the fastest small insert short of COPY. */
function insertOf({ file, table }: PostgresJob, body: Buffer): Insert {
  const rows = body
    .toString()
    .split("\n")
    .filter((line) => line !== "");
  const parameters = rows.flatMap((line) => {
    const row = JSON.parse(line) as Record<string, postgres.ParameterOrJSON<never>>;
    return file.columns.map(({ name }) => row[name] ?? null);
  });
  const width = file.columns.length;
  const values = rows.map((_, i) => `(${file.columns.map((__, j) => `$${i * width + j + 1}`).join(",")})`);
  return { text: `INSERT INTO ${table} VALUES ${values.join(",")}`, parameters };
}

async function answersOf(
  sql: Sql,
  { table, file: { checks } }: PostgresJob,
): Promise<{ answers: Answers; diskBytes: number }> {
  const hash = `('x' || lpad(left(md5(${quoteIdentifier(checks.hashColumn)}), 6), 16, '0'))::bit(64)::bigint`;
  const [row] = await sql.unsafe(
    `SELECT count(*) AS n, sum(${quoteIdentifier(checks.sumColumn)}) AS s, sum(${hash}) AS h, ` +
      `pg_total_relation_size('${table}') AS d FROM ${table}`,
  );
  const answers = { rows: Number(row?.["n"]), sum: Number(row?.["s"]), hash: Number(row?.["h"]) };
  return { answers, diskBytes: Number(row?.["d"]) };
}

function told(): Promise<unknown> {
  return new Promise((resolve) => process.once("message", resolve));
}

function tell(message: PostgresMessage): void {
  process.send?.(message);
}

process.once("message", (job: PostgresJob) => {
  run(job).catch((error: unknown) => {
    console.error(messageOf(error));
    process.exit(1);
  });
});
