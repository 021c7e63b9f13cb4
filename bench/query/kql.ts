import { readdir } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { join } from "node:path";
import { readArguments } from "../support/arguments.ts";
import { withTemporaryFolder } from "../support/data-file.ts";
import { median } from "../../src/capacity/quantile.ts";
import { machine, MIB, printTable, shown } from "../support/report.ts";
import { startBenchServer } from "../support/server.ts";
import { queryData, RARE_WORD, type DataFacts } from "./data.ts";
import { QueryClient } from "./query-client.ts";
import { mustBeSame } from "./same-rows.ts";
import { seedHome } from "./seed.ts";
import type { Row } from "./side.ts";

/**
 * Question: what does a query in KQL cost against the same query written by hand in SQL: in time, over HTTP and warm, and
 * in bytes that are read; and how long does the first query in KQL of a server take?
 *
 *     node bench/query/kql.ts [--rows 1000000] [--rounds 15] [--format parquet] [--extent-rows N]
 *
 * The answers are compared first. It does not measure how long translation takes by itself (`kql-corpus.ts`).
 */
const OPTIONS = {
  rows: { type: "string", default: "1000000" },
  rounds: { type: "string", default: "15" },
  "extent-rows": { type: "string", default: "50000" },
} as const;

const WARM_UPS = 3;
const FIRST_ROUNDS = 5;

type Twin = { name: string; sql: string; kql: string; ordered?: true };

function twins({ traceId, window }: DataFacts): Twin[] {
  const { from, to } = window;
  const inWindow = `"at" >= TIMESTAMP_NS '${bare(from)}' AND "at" < TIMESTAMP_NS '${bare(to)}'`;
  const during = `at >= datetime(${from}) and at < datetime(${to})`;
  return [
    { name: "count", sql: "SELECT count(*) AS Count FROM events", kql: "events | count" },
    {
      name: "filtered count",
      sql: "SELECT count(*) AS n FROM events WHERE status >= 500 AND duration_ms > 500",
      kql: "events | where status >= 500 and duration_ms > 500 | count as n",
    },
    {
      name: "avg by service",
      sql: "SELECT service, count(*) AS n, avg(duration_ms) AS mean FROM events GROUP BY service",
      kql: "events | summarize n = count(), mean = avg(duration_ms) by service",
    },
    {
      name: "time histogram",
      sql: `SELECT make_timestamp_ns(epoch_ns("at") - epoch_ns("at") % 60000000000) AS minute, count(*) AS n
        FROM events GROUP BY minute ORDER BY minute`,
      kql: "events | summarize n = count() by minute = bin(at, 1m) | sort by minute asc",
      ordered: true,
    },
    {
      name: "distinct count",
      sql: "SELECT count(DISTINCT trace_id) AS n FROM events",
      kql: "events | summarize n = dcount(trace_id)",
    },
    {
      name: "needle by trace",
      sql: `SELECT * FROM events WHERE trace_id = '${traceId}'`,
      kql: `events | where trace_id == "${traceId}"`,
    },
    {
      name: "contains, rare word",
      sql: `SELECT count(*) AS n FROM events WHERE contains(body, '${RARE_WORD}')`,
      kql: `events | where body contains_cs "${RARE_WORD}" | count as n`,
    },
    {
      name: "newest 100",
      sql: `SELECT * FROM events ORDER BY "at" DESC LIMIT 100`,
      kql: "events | top 100 by at",
      ordered: true,
    },
    {
      name: "window, grouped",
      sql: `SELECT service, count(*) AS n, avg(duration_ms) AS mean FROM events WHERE ${inWindow} GROUP BY service`,
      kql: `events | where ${during} | summarize n = count(), mean = avg(duration_ms) by service`,
    },
    {
      name: "top hosts",
      sql: `SELECT host, sum(bytes) AS total FROM events WHERE label <> 'DEBUG'
        GROUP BY host ORDER BY total DESC LIMIT 10`,
      kql: 'events | where label != "DEBUG" | summarize total = sum(bytes) by host | top 10 by total',
      ordered: true,
    },
    {
      name: "join, small",
      sql: `SELECT s.team, count(*) AS n, avg(e.duration_ms) AS mean
        FROM events AS e JOIN services AS s ON e.service = s.service GROUP BY s.team`,
      kql: "events | join kind=inner services on service | summarize n = count(), mean = avg(duration_ms) by team",
    },
    {
      name: "JSON paths",
      sql: `SELECT props->>'$.user.plan' AS plan, count(*) AS n FROM events
        WHERE props->>'$.region' = 'eu-west' GROUP BY plan`,
      kql: 'events | where props.region == "eu-west" | summarize n = count() by plan = tostring(props.user.plan)',
    },
  ];
}

function bare(time: string): string {
  return time.replace("T", " ").replace("Z", "");
}

export async function main(args: readonly string[]): Promise<void> {
  const options = readArguments(args, OPTIONS);
  console.log(machine());
  await withTemporaryFolder(async (folder) => {
    const data = await queryData(join(folder, "data"), options.count("rows"));
    const plan = { format: "parquet", cut: { rows: options.count("extent-rows") } } as const;
    const { home } = await seedHome(join(folder, "home"), data, plan);
    await firstQueries(home);
    const server = await startBenchServer({ home });
    const [sql, kql] = [new QueryClient(server.url), new QueryClient(server.url, { language: "kql" })];
    try {
      console.log(`\n${options.text("rows")} rows (${shown(data.sizeBytes / MIB)} MiB of NDJSON), warm: milliseconds`);
      await compare(twins(data.facts), { sql, kql }, options.count("rounds"));
    } finally {
      sql.close();
      kql.close();
      await server.stop();
    }
  });
}

type Clients = { sql: QueryClient; kql: QueryClient };

async function compare(all: readonly Twin[], { sql, kql }: Clients, rounds: number): Promise<void> {
  const ratios: number[] = [];
  const rows: string[][] = [];
  for (const twin of all) {
    const [expected, actual] = [
      rowsOf((await sql.run(twin.sql, { keep: true })).body),
      rowsOf((await kql.run(twin.kql, { keep: true })).body),
    ];
    mustBeSame(twin.name, { actual, expected, ordered: twin.ordered === true });
    const bytes = await bytesRead(sql, [twin.sql, twin.kql]);
    const pairs: { sql: number; kql: number }[] = [];
    for (let round = -WARM_UPS; round < rounds; round++) {
      const pair = { sql: (await sql.run(twin.sql)).ms, kql: (await kql.run(twin.kql)).ms };
      if (round >= 0) pairs.push(pair);
    }
    const ratio = median(pairs.map((pair) => pair.kql / pair.sql));
    ratios.push(ratio);
    const medians = [median(pairs.map((pair) => pair.kql)), median(pairs.map((pair) => pair.sql))];
    rows.push([twin.name, ...medians.map(shown), `${shown(ratio)}×`, bytes]);
  }
  printTable(["", "KQL", "SQL", "ratio", "bytes read"], rows);
  const mean = Math.exp(ratios.reduce((sum, ratio) => sum + Math.log(ratio), 0) / ratios.length);
  console.log(`all: ${shown(mean)}× (geometric mean of ${ratios.length}), at most ${shown(Math.max(...ratios))}×`);
}

/** What the last run of each text took from the store or the cache, of whole extents: as the query log has it. */
async function bytesRead(client: QueryClient, texts: readonly string[]): Promise<string> {
  const found: string[] = [];
  for (const text of texts) {
    const quoted = text.replaceAll("'", "''");
    const { body } = await client.run(
      `SELECT extents_read, bytes_read FROM system.queries WHERE text = '${quoted}' ORDER BY started_at DESC LIMIT 1`,
      { keep: true },
    );
    found.push(body);
  }
  const [first, second] = found;
  if (first === second) return "equal";
  throw new Error(`one read ${first}, the other ${second}: ${texts.join("\n")}`);
}

/** The first query in KQL of a server: without and with a start-up snapshot of the translator from an earlier one. */
async function firstQueries(home: string): Promise<void> {
  const times: number[] = [];
  for (let round = 0; round <= FIRST_ROUNDS; round++) {
    const server = await startBenchServer({ home });
    const [sql, kql] = [new QueryClient(server.url), new QueryClient(server.url, { language: "kql" })];
    await sql.run("SELECT 1");
    times.push((await kql.run("events | take 1")).ms);
    if (round === 0) await snapshotIn(join(home, "cache", "kql"));
    sql.close();
    kql.close();
    await server.stop();
  }
  const [first = NaN, ...others] = times;
  console.log(`first query in KQL of a server: ${shown(first)} ms, and ${shown(median(others))} ms at the next starts`);
}

/** It is made some seconds after the first start. */
async function snapshotIn(folder: string): Promise<void> {
  for (let i = 0; i < SNAPSHOT_POLLS; i++) {
    const names = await readdir(folder).catch(() => []);
    if (names.some((name) => name.endsWith(".blob"))) return;
    await delay(SNAPSHOT_POLL_MS);
  }
  throw new Error("the translator made no start-up snapshot");
}

const SNAPSHOT_POLLS = 120;
const SNAPSHOT_POLL_MS = 500;

function rowsOf(body: string): Row[] {
  return body
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Row);
}

if (import.meta.main) await main(process.argv.slice(2));
