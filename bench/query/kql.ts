import { join } from "node:path";
import { z } from "zod";
import { defineBenchmark, type Measure } from "../suite/benchmark.ts";
import { startBenchServer } from "../support/server.ts";
import { queryData, RARE_WORD, type DataFacts } from "./data.ts";
import { geometricMean, measureOf, NO_FACTS, timesOf } from "./pass.ts";
import { QueryClient } from "./query-client.ts";
import { mustBeSame } from "./same-rows.ts";
import { seedHome } from "./seed.ts";
import { rowsOf, type Row } from "./side.ts";

const count = z.coerce.number().int().positive();

export const benchmark = defineBenchmark({
  name: "query/kql",
  question: "What does a query in KQL cost against the same query written by hand in SQL, over HTTP and warm?",
  notMeasured:
    "The first query of a server (query/kql-start), and how long translation takes by itself (query/kql-corpus). Both " +
    "texts of a query must read the same extents and bytes.",
  options: z.strictObject({
    rows: count.default(1_000_000).describe("of events"),
    extentRows: count.default(50_000).describe("of one extent"),
    times: count.default(5).describe("each query in one round, of which the median counts"),
    each: z
      .stringbool()
      .default(true)
      .describe("false leaves out what single queries take, whose noise then does not count either"),
  }),
  measures: {
    all: { unit: "ms", better: "less", doc: "a query: geometric mean of all" },
    ...Object.fromEntries(
      twins(NO_FACTS).map(({ name }): [string, Measure] => [
        measureOf(name),
        { unit: "ms", better: "less", doc: `the query ${name}` },
      ]),
    ),
  },
  rounds: 9,
  open: async ({ rows, extentRows, times, each }, { folder }) => {
    const data = await queryData(join(folder, "data"), rows);
    const all = twins(data.facts);
    const { home } = await seedHome(join(folder, "home"), data, { format: "parquet", cut: { rows: extentRows } });
    const server = await startBenchServer({ home });
    const clients = { sql: new QueryClient(server.url), kql: new QueryClient(server.url, { language: "kql" }) };
    const sideOf = (language: "kql" | "sql") => ({
      name: language.toUpperCase(),
      round: async () => {
        const taken = await timesOf(all, times, async (twin) => (await clients[language].run(twin[language])).ms);
        return { all: geometricMean(Object.values(taken)), ...(each && taken) };
      },
      processes: () => ({ server: server.pid }),
    });
    return {
      sides: [{ ...sideOf("kql"), answers: () => checkTwins(all, clients) }, sideOf("sql")],
      close: async () => {
        for (const client of Object.values(clients)) client.close();
        await server.stop();
      },
    };
  },
});

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

type Clients = { sql: QueryClient; kql: QueryClient };

/** Rejects unless both texts of each query have the same rows and read the same bytes. */
async function checkTwins(all: readonly Twin[], { sql, kql }: Clients): Promise<void> {
  for (const twin of all) {
    const [expected, actual] = [await answerOf(sql, twin.sql), await answerOf(kql, twin.kql)];
    mustBeSame(twin.name, { actual, expected, ordered: twin.ordered === true });
    await checkBytesRead(sql, twin);
  }
}

async function answerOf(client: QueryClient, text: string): Promise<Row[]> {
  return rowsOf((await client.run(text, { keep: true })).body);
}

/** What the last run of each text took from the store or the cache, of whole extents: as the query log has it. */
async function checkBytesRead(client: QueryClient, twin: Twin): Promise<void> {
  const found: string[] = [];
  for (const text of [twin.sql, twin.kql]) {
    const quoted = text.replaceAll("'", "''");
    const { body } = await client.run(
      `SELECT extents_read, bytes_read FROM system.queries WHERE text = '${quoted}' ORDER BY started_at DESC LIMIT 1`,
      { keep: true },
    );
    found.push(body);
  }
  const [first, second] = found;
  if (first !== second) throw new Error(`${twin.name}: SQL read ${first}, KQL ${second}`);
}
