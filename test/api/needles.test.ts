import { afterAll, beforeAll, expect, test } from "vitest";
import { ingest, query } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";

/** A needle in a table is looked for in the extents that may hold it: what ingest seals, the planner asks. */
const EXTENTS = 20;
const ROWS = 1_000;

let engine: Engine;
let removeHome: () => Promise<void>;

const traceOf = (extent: number, row: number): string =>
  (Math.imul(extent * ROWS + row, 0x9e3779b1) >>> 0).toString(16).padStart(32, "f");

beforeAll(async () => {
  const { home, remove } = await temporaryHome();
  removeHome = remove;
  engine = await startEngine({ home });
  for (let extent = 0; extent < EXTENTS; extent++) {
    const rows = Array.from({ length: ROWS }, (_, row) => JSON.stringify({ trace: traceOf(extent, row), extent }));
    await ingest(engine.url, "spans", rows.join("\n"));
  }
});
afterAll(async () => {
  await engine.stop();
  await removeHome();
});

/** How many extents the query reads, as EXPLAIN tells. */
async function extentsRead(sql: string): Promise<number> {
  const explained = JSON.stringify(await query(engine.url, `EXPLAIN ${sql}`));
  const read = /\bread +([0-9]+) extents/.exec(explained)?.[1];
  if (read === undefined) throw new Error(explained);
  return Number(read);
}

test("one extent is read for a trace, and its row found", async () => {
  const sql = `SELECT extent FROM spans WHERE trace = '${traceOf(13, 500)}'`;
  expect(await query(engine.url, sql)).toMatchObject({ rows: [{ extent: "13" }] });
  expect(await extentsRead(sql)).toBe(1);
});

test("a list reads as many, a join what any side needs", async () => {
  const [first, second] = [traceOf(2, 7), traceOf(17, 8)];
  expect(await extentsRead(`SELECT * FROM spans WHERE trace IN ('${first}', '${second}')`)).toBe(2);
  const join = `SELECT * FROM spans a JOIN spans b USING (extent) WHERE a.trace = '${first}' AND b.trace = '${second}'`;
  expect(await extentsRead(join)).toBe(2);
  expect(await extentsRead(`SELECT * FROM spans a, spans b WHERE a.trace = '${first}'`)).toBe(EXTENTS);
});

test("everything is read where filters have no say", async () => {
  expect(await extentsRead(`SELECT * FROM spans WHERE lower(trace) = '${traceOf(3, 3)}'`)).toBe(EXTENTS);
  expect(await extentsRead(`SELECT * FROM spans WHERE trace <> '${traceOf(3, 3)}'`)).toBe(EXTENTS);
  expect(await extentsRead("SELECT * FROM spans WHERE trace LIKE '%fff%'")).toBe(EXTENTS);
});
