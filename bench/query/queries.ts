import { RARE_WORD, type DataFacts } from "./data.ts";

/**
 * The queries. `sql` runs as it stands on the engine and on DuckDB; `chdb` is the same question in ClickHouse's
 * dialect.
 */
export type BenchQuery = {
  name: string;
  sql: string;
  chdb: string;
  /** What the targets tell apart. */
  kind: "scan" | "needle" | "window";
  /** Whether rows come in an order that the query asks for. */
  ordered: boolean;
};

type Draft = { name: string; sql: string; chdb?: string; kind?: BenchQuery["kind"] };

/** Rows that the widest query answers with, when there are as many. */
const WIDE_ROWS = 100_000;
/** Values of `bytes` are spread evenly below it. */
const BYTES_BOUND = 1_000_000;

export function benchQueries(facts: DataFacts): BenchQuery[] {
  return drafts(facts).map(({ name, sql, chdb = sql, kind = "scan" }) => ({
    name,
    sql,
    chdb,
    kind,
    ordered: /\bORDER BY [^)]*$/.test(sql),
  }));
}

function drafts({ rows, traceId, window }: DataFacts): Draft[] {
  const inWindow = `"at" >= '${withoutZone(window.from)}' AND "at" < '${withoutZone(window.to)}'`;
  const wide = Math.min(BYTES_BOUND, Math.ceil((BYTES_BOUND * WIDE_ROWS) / rows));
  return [
    { name: "count", sql: "SELECT count(*) AS n FROM events" },
    { name: "filtered count", sql: "SELECT count(*) AS n FROM events WHERE status >= 500 AND duration_ms > 500" },
    {
      name: "sum, min, max, avg",
      sql: `SELECT sum(bytes) AS total, min(duration_ms) AS least, max(duration_ms) AS most, avg(duration_ms) AS mean
        FROM events`,
    },
    {
      name: "percentiles by group",
      sql: `SELECT service, count(*) AS n, quantile_cont(duration_ms, 0.5) AS p50, quantile_cont(duration_ms, 0.99) AS p99
        FROM events GROUP BY service`,
      chdb: `SELECT service, count(*) AS n, quantileExactInclusive(0.5)(duration_ms) AS p50,
        quantileExactInclusive(0.99)(duration_ms) AS p99 FROM events GROUP BY service`,
    },
    {
      name: "top k",
      sql: `SELECT host, sum(bytes) AS total FROM events WHERE label <> 'DEBUG'
        GROUP BY host ORDER BY total DESC, host LIMIT 10`,
    },
    { name: "distinct", sql: "SELECT count(DISTINCT trace_id) AS n FROM events" },
    {
      name: "time histogram",
      sql: `SELECT date_trunc('minute', "at") AS minute, count(*) AS n FROM events GROUP BY minute ORDER BY minute`,
    },
    { name: "LIKE, common word", sql: "SELECT count(*) AS n FROM events WHERE body LIKE '%retry after timeout%'" },
    {
      name: "LIKE, rare word",
      sql: `SELECT count(*) AS n FROM events WHERE body LIKE '%${RARE_WORD}%'`,
      kind: "needle",
    },
    { name: "needle by trace", sql: `SELECT * FROM events WHERE trace_id = '${traceId}'`, kind: "needle" },
    { name: "newest 100", sql: `SELECT * FROM events ORDER BY "at" DESC LIMIT 100` },
    {
      name: "window, grouped",
      sql: `SELECT service, count(*) AS n, avg(duration_ms) AS mean FROM events WHERE ${inWindow} GROUP BY service`,
      kind: "window",
    },
    {
      name: "window, errors",
      sql: `SELECT "at", service, host, body FROM events WHERE ${inWindow} AND label = 'ERROR' ORDER BY "at" LIMIT 100`,
      kind: "window",
    },
    {
      name: "join, small",
      sql: `SELECT s.team, count(*) AS n, avg(e.duration_ms) AS mean
        FROM events AS e JOIN services AS s ON e.service = s.service GROUP BY s.team`,
    },
    {
      name: "join, many keys",
      sql: `SELECT s.kind, count(*) AS n, sum(e.bytes) AS total, avg(s.span_ms) AS mean
        FROM events AS e JOIN spans AS s ON e.trace_id = s.trace_id GROUP BY s.kind`,
    },
    {
      name: "JSON paths",
      sql: `SELECT props->>'$.user.plan' AS plan, count(*) AS n, sum(CAST(props->>'$.cart.total' AS DOUBLE)) AS total
        FROM events WHERE props->>'$.region' = 'eu-west' GROUP BY plan`,
      chdb: `SELECT JSONExtractString(props, 'user', 'plan') AS plan, count(*) AS n,
        sum(JSONExtractFloat(props, 'cart', 'total')) AS total
        FROM events WHERE JSONExtractString(props, 'region') = 'eu-west' GROUP BY plan`,
    },
    {
      name: "string functions",
      sql: `SELECT upper(substring(path, 2, 4)) AS area, avg(length(body)) AS mean, count(*) AS n
        FROM events WHERE lower(service) <> 'auth' GROUP BY area`,
    },
    {
      name: "three columns",
      sql: `SELECT service, host, status, count(*) AS n, max(duration_ms) AS most FROM events
        GROUP BY service, host, status ORDER BY n DESC, service, host, status LIMIT 1000`,
    },
    {
      name: "window function",
      sql: `SELECT service, host, total FROM (SELECT service, host, sum(bytes) AS total,
        row_number() OVER (PARTITION BY service ORDER BY sum(bytes) DESC, host) AS place
        FROM events GROUP BY service, host) AS ranked WHERE place <= 3`,
      chdb: `SELECT service, host, total FROM (SELECT service, host, total,
        row_number() OVER (PARTITION BY service ORDER BY total DESC, host) AS place
        FROM (SELECT service, host, sum(bytes) AS total FROM events GROUP BY service, host)) WHERE place <= 3`,
    },
    {
      name: "CASE in sums, HAVING",
      sql: `SELECT path, sum(CASE WHEN status >= 500 THEN 1 ELSE 0 END) AS errors,
        sum(CASE WHEN duration_ms > 900 THEN bytes ELSE 0 END) AS slow_bytes FROM events
        GROUP BY path HAVING count(*) > 10 ORDER BY errors DESC, path`,
    },
    { name: "100k wide rows", sql: `SELECT * FROM events WHERE bytes < ${wide}` },
  ];
}

/** A literal that all sides compare with their times; UTC. */
function withoutZone(time: string): string {
  return time.replace("T", " ").replace("Z", "");
}
