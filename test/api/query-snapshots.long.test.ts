import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ingest, ndjson, query, rowsOf } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";

/** What queries see of a table that four clients are writing to, its columns growing on the way. */

const CLIENTS = 4;
const REQUESTS = 60;

let engine: Engine;
let removeHome: () => Promise<void>;

beforeAll(async () => {
  const { home, remove } = await temporaryHome();
  removeHome = remove;
  engine = await startEngine({ home });
});

afterAll(async () => {
  await engine.stop();
  await removeHome();
});

const one = async (sql: string): Promise<Record<string, unknown>> => {
  const [row] = await rowsOf(engine.url, sql);
  if (row === undefined) throw new Error(`no row: ${sql}`);
  return row;
};

/** The snapshot that holds the rows. */
async function write(table: string, rows: readonly unknown[]): Promise<number> {
  const { status, json, text } = await ingest(engine.url, table, ndjson(rows));
  if (status !== 200) throw new Error(text);
  return Number(json.snapshot_id);
}

/** Rows of one request: some requests bring a column that nobody has seen yet. */
function rowsOfRequest(client: number, request: number): Record<string, unknown>[] {
  const field = request % 10 === 0 ? { [`new_${client}_${request}`]: "x" } : {};
  const rowOf = (n: number) => ({ client, id: `${client}/${request}/${n}`, value: "v".repeat(20) });
  return [0, 1, 2].map((n) => Object.assign(rowOf(n), field));
}

/** The first row of `table` and of `<table>_after`. */
async function newTable(table: string): Promise<void> {
  for (const name of [table, `${table}_after`]) await write(name, [{ client: -1, id: "first" }]);
}

/** Runs the check over and over while the clients write to `table` and then, each time, to `<table>_after`. */
async function whileWriting(table: string, check: () => Promise<void>): Promise<void> {
  const [before] = await rowsOf(engine.url, `SELECT count(*) AS n FROM ${table}`);
  const writing = new AbortController();
  const clients = Array.from({ length: CLIENTS }, async (_, client) => {
    for (let request = 0; request < REQUESTS; request++) {
      const rows = rowsOfRequest(client, request);
      await write(table, rows);
      await write(`${table}_after`, rows);
    }
  });
  const written = Promise.all(clients).finally(() => writing.abort());
  let checks = 0;
  try {
    for (; !writing.signal.aborted; checks++) await check();
  } finally {
    await written;
  }
  expect(checks).toBeGreaterThan(5);
  const rows = Number(before?.["n"]) + CLIENTS * REQUESTS * 3;
  expect(await one(`SELECT count(*) AS n, count(DISTINCT id) AS ids FROM ${table}`)).toEqual({ n: rows, ids: rows });
}

describe("while four clients write", { timeout: 120_000 }, () => {
  test("reads at one snapshot are the same bytes every time", async () => {
    await newTable("pinned");
    for (let request = 0; request < 5; request++) await write("pinned", rowsOfRequest(99, request));
    const pinned = await write("pinned", rowsOfRequest(99, 10));
    const at = `pinned AT (VERSION => ${pinned})`;
    const texts = [
      `SELECT * FROM ${at}`,
      `SELECT client, count(*) AS n, max(at) AS newest FROM ${at} GROUP BY client ORDER BY ALL`,
      `DESCRIBE FROM ${at}`,
    ];
    const answers = (): Promise<string[]> => Promise.all(texts.map(async (sql) => (await query(engine.url, sql)).text));
    const first = await answers();
    expect(first[0]?.trimEnd().split("\n")).toHaveLength(1 + 6 * 3);
    expect(first[0]).toContain("new_99_10");
    await whileWriting("pinned", async () => expect(await answers()).toEqual(first));
    expect(await answers()).toEqual(first);
    // Columns that came later are there for whoever reads the newest rows.
    const columns = (await rowsOf(engine.url, "DESCRIBE pinned")).map((row) => row["column_name"]);
    expect(columns).toContain(`new_0_${REQUESTS - 10}`);
    const late = await query(engine.url, `SELECT new_0_0 FROM ${at}`);
    expect(late).toMatchObject({ status: 400, json: { error: { code: "invalid_query" } } });
    expect(late.json.error.suggestion).not.toBe("new_0_0");
  });

  test("a query sees its tables at one snapshot, and each of them once", async () => {
    await newTable("same");
    const sql = `
      SELECT (SELECT count(*) FROM same) AS one, (SELECT count(id) FROM same) AS two, count(*) AS three,
        count(*) FILTER (WHERE b.id IS NULL) AS a_alone, count(*) FILTER (WHERE a.id IS NULL) AS b_alone,
        (SELECT count(*) FROM same_after WHERE id NOT IN (SELECT id FROM same)) AS too_early
      FROM same a FULL JOIN (SELECT * FROM same) b USING (id)`;
    await whileWriting("same", async () => {
      const { one: count, ...others } = await one(sql);
      expect(others).toEqual({ two: count, three: count, a_alone: 0, b_alone: 0, too_early: 0 });
    });
  });

  test("rows never go away again, and a request is seen as a whole", async () => {
    await newTable("growing");
    let newest = 0;
    await whileWriting("growing", async () => {
      const { n, torn } = await one(
        `SELECT coalesce(sum(n), 0)::BIGINT AS n, count(*) FILTER (n <> 3) AS torn FROM
           (SELECT count(*) AS n FROM growing WHERE client <> '-1' GROUP BY split_part(id, '/', 1), split_part(id, '/', 2))`,
      );
      expect(torn).toBe(0);
      expect(Number(n)).toBeGreaterThanOrEqual(newest);
      newest = Number(n);
    });
  });

  test("what was acknowledged is seen by the next query, at its snapshot and not before", async () => {
    await newTable("acked");
    await write("acked_mine", [{ id: "first" }]);
    let writes = 0;
    await whileWriting("acked", async () => {
      const id = `mine/${writes++}`;
      const snapshot = await write("acked_mine", [{ id }]);
      const count = (at: string): string => `(SELECT count(*) FROM acked_mine ${at} WHERE id = '${id}')`;
      const sql = `SELECT ${count("")} AS now, ${count(`AT (VERSION => ${snapshot})`)} AS at,
        ${count(`AT (VERSION => ${snapshot - 1})`)} AS before`;
      expect(await one(sql)).toEqual({ now: 1, at: 1, before: 0 });
    });
  });
});

test("a query that has begun sees no later rows", async () => {
  const table = "begun";
  await write(table, [{ id: "early" }]);
  // Long enough for rows to come while it runs, and reads the table once more at the very end.
  const slow = `
    WITH busy AS MATERIALIZED (SELECT sum(hash(a.range) % 7) AS s FROM range(200_000_000) AS a)
    SELECT (SELECT count(*) FROM ${table} WHERE busy.s > 0) AS n FROM busy`;
  const finished: string[] = [];
  const answer = one(slow).then((row) => {
    finished.push("query");
    return row;
  });
  await new Promise((resolve) => setTimeout(resolve, 300));
  await write(table, [{ id: "late" }]);
  finished.push("write");
  expect(await answer).toEqual({ n: 1 });
  expect(finished).toEqual(["write", "query"]);
  expect(await one(`SELECT count(*) AS n FROM ${table}`)).toEqual({ n: 2 });
});
