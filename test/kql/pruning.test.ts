import { afterAll, beforeAll, expect, test } from "vitest";
import { ingest, rowsOf } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { kqlRows } from "./ask.test-kit.ts";

/** A query in KQL reads as many extents and bytes as the same query that somebody wrote in SQL, and gives the same rows. */
const EXTENTS = 20;
const ROWS = 1_000;
const MINUTE_MS = 60_000;
const START_MS = Date.parse("2026-01-01T00:00:00Z");

let engine: Engine;
let removeHome: () => Promise<void>;

const traceOf = (extent: number, row: number): string =>
  (Math.imul(extent * ROWS + row, 0x9e3779b1) >>> 0).toString(16).padStart(32, "f");
const momentOf = (extent: number): string => new Date(START_MS + extent * MINUTE_MS).toISOString();

beforeAll(async () => {
  const { home, remove } = await temporaryHome();
  removeHome = remove;
  engine = await startEngine({ home });
  for (let extent = 0; extent < EXTENTS; extent++) {
    const rows = Array.from({ length: ROWS }, (_, row) => {
      const at = new Date(START_MS + extent * MINUTE_MS + row).toISOString();
      const body = `request ${extent * ROWS + row + 10_000_000} of ${traceOf(extent, row)}: done ${"well ".repeat(20)}`;
      return JSON.stringify({ at, n: extent * ROWS + row, trace: traceOf(extent, row), body });
    });
    await ingest(engine.url, "spans", rows.join("\n"), { "X-Engine-Infer-Types": "true" });
  }
});
afterAll(async () => {
  await engine?.stop();
  await removeHome();
});

async function figuresOf(text: string): Promise<unknown> {
  const quoted = text.replaceAll("'", "''");
  const figures = "language, extents_total, extents_pruned, extents_read, bytes_read, rows_read";
  const sql = `SELECT ${figures} FROM system.queries WHERE text = '${quoted}' ORDER BY started_at DESC LIMIT 1`;
  const [row] = await rowsOf(engine.url, sql);
  return row;
}

const trace = traceOf(13, 250);

test.for<[kql: string, sql: string, read: number]>([
  [`spans | where at > datetime(${momentOf(17)}) | project n`, `SELECT n FROM spans WHERE "at" > '${momentOf(17)}'`, 3],
  [
    `spans | where at between (datetime(${momentOf(3)}) .. 30s) | project n`,
    `SELECT n FROM spans WHERE "at" BETWEEN '${momentOf(3)}' AND '${momentOf(3).replace(":00.", ":30.")}'`,
    1,
  ],
  [
    `spans | extend m = n + 1 | where at < datetime(${momentOf(2)}) | project m`,
    `SELECT n + 1 AS m FROM spans WHERE "at" < '${momentOf(2)}'`,
    2,
  ],
  [
    `union spans, (spans | where n < 0) | where at > datetime(${momentOf(17)}) | project n`,
    `SELECT n FROM (SELECT n FROM spans WHERE "at" > '${momentOf(17)}'
       UNION ALL SELECT n FROM spans WHERE n < 0 AND "at" > '${momentOf(17)}')`,
    3,
  ],
  [
    `spans | join kind=inner (spans | where n >= 19500 | project n) on n | where at > datetime(${momentOf(17)}) | project n`,
    `SELECT l.n FROM (SELECT n FROM spans WHERE "at" > '${momentOf(17)}') l JOIN (SELECT n FROM spans WHERE n >= 19500) r ON l.n = r.n`,
    3,
  ],
  [`spans | where n >= 19500 | project n`, `SELECT n FROM spans WHERE n >= 19500`, 1],
  [`spans | where trace == "${trace}" | project n`, `SELECT n FROM spans WHERE trace = '${trace}'`, 1],
  [
    `spans | where trace in ("${trace}", "${traceOf(2, 2)}") | project n`,
    `SELECT n FROM spans WHERE trace IN ('${trace}', '${traceOf(2, 2)}')`,
    2,
  ],
  [
    `spans | where trace has_cs "${trace}" | project n`,
    `SELECT n FROM spans WHERE contains(trace, '${trace}')`,
    EXTENTS,
  ],
  [
    `spans | where trace contains_cs "${trace}" | project n`,
    `SELECT n FROM spans WHERE contains(trace, '${trace}')`,
    EXTENTS,
  ],
  // A term without letters is the same in upper and lower case. Filters of what is inside of texts come with compaction.
  [`spans | where body has "10005450" | project n`, `SELECT n FROM spans WHERE contains(body, '10005450')`, EXTENTS],
  [`spans | where body has "${trace}" | project n`, `SELECT n FROM spans WHERE lower(body) LIKE '%${trace}%'`, EXTENTS],
  [`spans | top 100 by at | project n`, `SELECT n FROM (SELECT * FROM spans ORDER BY "at" DESC LIMIT 100)`, 1],
  [
    `let from = datetime(${momentOf(18)}); spans | where at >= from | summarize n = count() by bin(at, 1m) | project n`,
    `SELECT count(*) AS n FROM spans WHERE "at" >= '${momentOf(18)}' GROUP BY date_trunc('minute', "at")`,
    2,
  ],
])("%s", async ([kql, sql, read]) => {
  const byNumber = (rows: readonly Record<string, unknown>[]): unknown[] =>
    rows.map((row) => Object.values(row)[0]).toSorted((a, b) => Number(a) - Number(b));
  const [found, expected] = [await kqlRows(engine.url, kql), await rowsOf(engine.url, sql)];
  expect(found.length).toBeGreaterThan(0);
  expect(byNumber(found)).toEqual(byNumber(expected));
  const [own, twin] = [await figuresOf(kql), await figuresOf(sql)];
  expect(own).toEqual({ ...(twin as object), language: "kql" });
  expect(own).toMatchObject({ extents_read: read });
});
