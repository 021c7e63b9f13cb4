import { delay } from "../../src/core/waiting.test-kit.ts";
import { ingest, ndjson, rowsOf } from "../support/client.ts";

/**
 * Two clients, each at a node of its own where there are two, that never agree on the types of their fields: what one
 * sends as text, the other sends as a number at that moment, and the next time it is the other way round. One table gets
 * all of it, another one is new from time to time. What must hold: every request is acknowledged, every value is in its
 * column or in `props`, and once a table has seen values of all kinds neither its schema version nor the number of
 * conflicts grows any more.
 */
export type AlternatingOptions = {
  /** One for each client. */
  urls: readonly [string, string];
  seconds: number;
  /** How long one of the tables is in use that are new from time to time. */
  secondsPerTable: number;
  /** The version of a table's schema, of which nothing outside tells: read from the catalog. */
  schemaVersion: (table: string) => number | Promise<number>;
};

export type AlternatingReport = {
  tables: number;
  rows: number;
  conflicts: number;
  slowestMs: number;
  problems: string[];
};

const KINDS: readonly ((n: number) => unknown)[] = [
  (n) => n,
  (n) => n + 0.5,
  (n) => `text ${n}`,
  (n) => new Date(Date.UTC(2026, 0, 1) + n).toISOString(),
  (n) => n % 2 === 0,
  (n) => ({ n }),
  (n) => [n],
];
const FIELDS = KINDS.map((_, i) => `f${i}`);
const ROWS_PER_BODY = 5;
const REST_MS = 20;
const STEADY = "steady";
/** After so many requests of each client its table has seen every kind in every field, from both. */
const REQUESTS_UNTIL_SETTLED = 2 * KINDS.length;
const INFER = { "X-Engine-Infer-Types": "true" };

export async function alternateTypes(options: AlternatingOptions): Promise<AlternatingReport> {
  const report: AlternatingReport = { tables: 0, rows: 0, conflicts: 0, slowestMs: 0, problems: [] };
  const endMs = performance.now() + options.seconds * 1_000;
  let steadyRows = 0;
  let steadyVersion: number | undefined;
  while (performance.now() < endMs) {
    const table = `t${report.tables++}`;
    const send = (requests: (n: number) => boolean) => sendBoth(options.urls, [table, STEADY], requests, report);
    let rows = await send((n) => n < REQUESTS_UNTIL_SETTLED);
    const conflicts = await schemaConflicts(options.urls);
    const version = await options.schemaVersion(table);
    steadyVersion ??= await options.schemaVersion(STEADY);
    const untilMs = Math.min(endMs, performance.now() + options.secondsPerTable * 1_000);
    rows += await send(() => performance.now() < untilMs);
    steadyRows += rows;
    report.rows += 2 * rows;
    report.conflicts = await schemaConflicts(options.urls);
    report.problems.push(
      ...differing(`conflicts while ${table} was settled`, report.conflicts, conflicts),
      ...differing(`version of ${table}`, await options.schemaVersion(table), version),
      ...differing(`version of ${STEADY}`, await options.schemaVersion(STEADY), steadyVersion),
      ...(await missing(options.urls[0], table, rows)),
    );
  }
  report.problems.push(...(await missing(options.urls[1], STEADY, steadyRows)));
  return report;
}

/** Both clients, each sending one request after the other to both tables; the rows that each table got. */
async function sendBoth(
  urls: readonly [string, string],
  tables: readonly string[],
  goesOn: (n: number) => boolean,
  report: AlternatingReport,
): Promise<number> {
  const sent = urls.map(async (url, client) => {
    let n = 0;
    for (; goesOn(n); n++) {
      const startedMs = performance.now();
      const body = bodyOf(client, n);
      const answers = await Promise.all(tables.map((table) => ingest(url, table, body, INFER)));
      report.slowestMs = Math.max(report.slowestMs, performance.now() - startedMs);
      for (const { status, text } of answers) if (status !== 200) report.problems.push(`${status}: ${text}`);
      await delay(REST_MS);
    }
    return n * ROWS_PER_BODY;
  });
  return (await Promise.all(sent)).reduce((sum, rows) => sum + rows, 0);
}

/** One kind for each field in all of a body; the two clients are never at the same one. */
function bodyOf(client: number, n: number): string {
  const value = (field: number, row: number) =>
    KINDS[(n + field + client * (1 + (n % (KINDS.length - 1)))) % KINDS.length]?.(n * ROWS_PER_BODY + row);
  return ndjson(
    Array.from({ length: ROWS_PER_BODY }, (_, row) =>
      Object.fromEntries(FIELDS.map((name, field) => [name, value(field, row)])),
    ),
  );
}

function differing(what: string, now: number, before: number): string[] {
  return now === before ? [] : [`${what}: ${now}, was ${before}`];
}

/** What is neither in its column nor in `props`, by field. */
async function missing(url: string, table: string, rows: number): Promise<string[]> {
  const found = FIELDS.map(
    (name) => `count(*) FILTER (${name} IS NOT NULL OR (props->'${name}') IS NOT NULL) AS ${name}`,
  );
  const [counts] = await rowsOf(url, `SELECT count(*) AS rows, ${found.join(", ")} FROM ${table}`);
  return Object.entries(counts ?? {}).flatMap(([name, n]) => differing(`${name} of ${table}`, Number(n), rows));
}

async function schemaConflicts(urls: readonly string[]): Promise<number> {
  const counts = [...new Set(urls)].map(async (url) => {
    const text = await (await fetch(`${url}/metrics`)).text();
    return Number(/^engine_catalog_commit_conflicts_total\{reason="schema"\} (\d+)$/m.exec(text)?.[1] ?? 0);
  });
  return (await Promise.all(counts)).reduce((sum, n) => sum + n, 0);
}
