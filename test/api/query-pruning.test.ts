import { afterAll, beforeAll, expect, test } from "vitest";
import { ingest, ndjson, rowsOf } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";

/** Statistics as ingest writes them, the catalog keeps them and the planner reads them; snapshots by their times. */
const EXTENTS = 6;

let engine: Engine;
let removeHome: () => Promise<void>;
/** When each extent was visible. */
const visibleAt: string[] = [];

beforeAll(async () => {
  const { home, remove } = await temporaryHome();
  removeHome = remove;
  engine = await startEngine({ home });
  for (let n = 0; n < EXTENTS; n++) {
    const rows = ["", "-middle", "-\u{1f600}"].map((end) => ({
      label: "same ".repeat(20),
      body: `body ${n}${end}`,
    }));
    const extra = n === 3 ? [{ body: "body 3", late: "here" }] : [];
    const { status, text } = await ingest(engine.url, "events", ndjson([...rows, ...extra]));
    if (status !== 200) throw new Error(text);
    const [row] = await rowsOf(engine.url, "SELECT CAST(now() AS VARCHAR) AS now");
    visibleAt.push(String(row?.["now"]));
  }
});
afterAll(async () => {
  await engine.stop();
  await removeHome();
});

async function extentsRead(where: string): Promise<number> {
  const rows = await rowsOf(engine.url, `EXPLAIN SELECT * FROM events WHERE ${where}`);
  const text = String(rows.find((row) => row["explain_key"] === "extents")?.["explain_value"]);
  return Number(/\bread +(\d+) extents/.exec(text)?.[1]);
}

test.each([
  ["body >= 'body 4'", 2],
  ["body < 'body 1'", 1],
  ["body > 'body 5-\u{1f601}'", 0],
  ["body LIKE 'body 2%'", 1],
  ["body BETWEEN 'body 1' AND 'body 2'", 2],
  ["body IN ('body 0', 'body 5-middle')", 2],
  [`label < '${"same ".repeat(13)}'`, EXTENTS],
  [`label > '${"same ".repeat(21)}'`, EXTENTS],
  ["label > 'sbme'", 0],
  ["late IS NOT NULL", 1],
  ["late IS NULL", EXTENTS],
  ["late > 'a'", 1],
  ["late > 'z'", 0],
  ["at < '2000-01-01'", 0],
])("WHERE %s reads %i extents", async (where, extents) => {
  expect(await extentsRead(where)).toBe(extents);
});

test("a moment shows what was visible then", async () => {
  for (const [n, moment] of visibleAt.entries()) {
    const sql = `SELECT count(DISTINCT body[:6]) AS n FROM events AT (TIMESTAMP => TIMESTAMP_NS '${moment}')`;
    expect(await rowsOf(engine.url, sql)).toEqual([{ n: n + 1 }]);
  }
});
