import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";

/** What is said of a query that is not run, as editors ask while somebody types. */
const ADMIN = "admin-token-of-the-test";
const READER = "readers-token-of-the-test";

let engine: Engine;
let remove: () => Promise<void>;
let limited: string;
beforeAll(async () => {
  const temporary = await temporaryHome();
  remove = temporary.remove;
  const env = { ENGINE_AUTH_TOKENS: `${ADMIN}:admin,${READER}:read`, ENGINE_SANDBOX_RUNTIME: "off" };
  engine = await startEngine({ home: temporary.home, env });
  for (const [database, n] of [
    ["default", 1],
    ["other", 2],
    ["default", 3],
  ] as const) {
    const row = { at: `2026-01-0${n}T00:00:00Z`, label: `l${n}`, props: { n } };
    const headers = { Authorization: `Bearer ${ADMIN}`, "X-Database": database, "X-Table": "events" };
    const answer = await fetch(`${engine.url}/v1/ingest`, { method: "POST", headers, body: JSON.stringify(row) });
    expect(answer.status).toBe(200);
  }
  const made = await send("/v1/auth/tokens", { name: "limited", role: "read", databases: ["default"] }, ADMIN);
  limited = ((await made.json()) as { token: string }).token;
}, 120_000);
afterAll(async () => {
  await engine.stop();
  await remove();
});

const send = (path: string, body: unknown, token = READER): Promise<Response> =>
  fetch(engine.url + path, {
    method: "POST",
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });

type Place = { line: number; column: number; offset: number };
type Diagnostic = { code: string; message: string; from: Place; to: Place; suggestion?: string };
type Check = {
  ok: boolean;
  diagnostics: Diagnostic[];
  columns: { name: string; type: string }[] | null;
  tables: Record<string, unknown>[];
};

async function check(query: string, more: Record<string, unknown> = {}, token?: string): Promise<Check> {
  const answer = await send("/v1/query/check", { query, ...more }, token);
  const body = (await answer.json()) as Check;
  expect([query.slice(0, 200), answer.status, body]).toEqual([query.slice(0, 200), 200, body]);
  expect(body.ok).toBe(body.diagnostics.length === 0);
  return body;
}

/** The part of the text that is marked. */
async function marked(query: string, more: Record<string, unknown> = {}): Promise<[code: string, part: string]> {
  const [found] = (await check(query, more)).diagnostics;
  return [found?.code ?? "", query.slice(found?.from.offset, found?.to.offset)];
}

describe("a query that is right", () => {
  test("has the columns of its answer, with their types", async () => {
    const { columns } = await check(
      "SELECT at, label, props, count(*) AS n, avg(1.5) OVER () AS a FROM events GROUP BY ALL",
    );
    expect(columns).toEqual([
      { name: "at", type: "timestamp" },
      { name: "label", type: "string" },
      { name: "props", type: "dynamic" },
      { name: "n", type: "long" },
      { name: "a", type: "real" },
    ]);
    expect((await check("EXPLAIN FROM events")).columns).toHaveLength(2);
    expect((await check("SELECT $1 AS one", { params: [1] })).columns).toEqual([{ name: "one", type: "int" }]);
    expect(await check("PIVOT events ON label USING count(*)")).toMatchObject({ ok: true, columns: null });
  });

  test("says what it would read", async () => {
    const { tables } = await check("FROM events WHERE at < TIMESTAMP '2026-01-02'");
    expect(tables).toMatchObject([{ database: "default", table: "events", extents: 1, extents_total: 2, rows: 1 }]);
    expect(tables[0]?.["bytes"]).toBeGreaterThan(0);
    const both = await check("SELECT count(*) FROM events, other.events AS o", {}, ADMIN);
    expect(both.tables).toMatchObject([
      { database: "default", extents: 2, bytes: 0 },
      { database: "other", extents: 1, bytes: 0 },
    ]);
    expect((await check("FROM events", { database: "other" })).tables).toMatchObject([
      { database: "other", extents: 1 },
    ]);
  });

  test("may be about system tables, which are not read", async () => {
    const { columns, tables, ok } = await check(
      "SELECT text, started_at FROM system.queries, information_schema.tables",
    );
    expect([ok, tables, columns]).toEqual([
      true,
      [],
      [
        { name: "text", type: "string" },
        { name: "started_at", type: "timestamp" },
      ],
    ]);
  });

  test("may be in KQL", async () => {
    expect(await check("events | where at > ago(1d) | summarize count() by label", { language: "kql" })).toMatchObject({
      ok: true,
      columns: [
        { name: "label", type: "string" },
        { name: "count_", type: "long" },
      ],
      tables: [{ table: "events", extents_total: 2 }],
    });
    const pivoted = await check("events | project label, c = 1 | evaluate pivot(label)", { language: "kql" });
    expect(pivoted).toMatchObject({ ok: true, columns: null });
  });

  test("does not run, and is in no list", async () => {
    const started = performance.now();
    const never = `SELECT sum(hash(range)) AS never FROM range(1000000000000)`;
    expect((await check(never)).ok).toBe(true);
    expect(performance.now() - started).toBeLessThan(5_000);
    const answer = await fetch(`${engine.url}/v1/queries`, { headers: { Authorization: `Bearer ${ADMIN}` } });
    expect(await answer.text()).not.toContain("never");
  });
});

describe("a query that is wrong", () => {
  test("has what is wrong marked", async () => {
    expect(await marked("SELECT lable FROM events")).toEqual(["invalid_query", "lable"]);
    expect(await marked("SELECT *\r\nFROM event")).toEqual(["table_not_found", "event"]);
    expect(await marked("SELECT '😀', nothing FROM events")).toEqual(["invalid_query", "nothing"]);
    expect((await marked("SELECT 1 FORM events WHERE"))[0]).toBe("parse_error");
    expect((await marked("DELETE FROM events"))[0]).toBe("invalid_query");
    expect((await marked("SELECT at FROM events WHERE lower(at, 1)"))[0]).toBe("invalid_query");
    expect((await marked("SELECT $1"))[0]).toBe("invalid_query");
    expect(await marked("FROM events AT (VERSION => 999999)")).not.toEqual(["", ""]);
    expect(await marked("  ")).toEqual(["parse_error", ""]);
  });

  test("has lines and columns in characters, and offsets in UTF-16 units", async () => {
    const text = "SELECT\n  '😀' AS face,\n  '😀', nothing\nFROM events";
    const [found] = (await check(text)).diagnostics;
    expect(found).toMatchObject({
      severity: "error",
      from: { line: 3, column: 8, offset: text.indexOf("nothing") },
      to: { line: 3, column: 15, offset: text.indexOf("nothing") + 7 },
    });
  });

  test("has a suggestion, and what it would read as far as it was planned", async () => {
    expect((await check("FROM event")).diagnostics).toMatchObject([{ suggestion: "events" }]);
    expect((await check("SELECT lable FROM events")).tables).toMatchObject([{ table: "events", extents: 2 }]);
  });

  test("is marked in KQL as the language service says", async () => {
    const kql = { language: "kql" };
    expect(await marked("events | where lable == 'x'", kql)).toEqual(["invalid_query", "lable"]);
    expect(await marked("events\n| summarize nothing(label)", kql)).toEqual(["invalid_query", "nothing"]);
    expect(await marked("event | count", kql)).toEqual(["invalid_query", "event"]);
    expect((await marked("events | where", kql))[0]).toBe("parse_error");
    expect((await marked("😀", kql))[0]).toBe("parse_error");
    expect((await marked(".drop table events", kql))[0]).toBe("invalid_query");
    expect((await marked("", kql))[0]).toBe("parse_error");
  });

  test("says nothing of tables of others", async () => {
    const theirs = (await check("FROM other.events", {}, limited)).diagnostics;
    const nobodys = (await check("FROM nowhere.events", {}, limited)).diagnostics;
    expect(theirs.map(({ message }) => message.replace("other", "nowhere"))).toEqual(
      nobodys.map(({ message }) => message),
    );
    for (const database of ["other", "nowhere"]) {
      const answer = await send("/v1/query/check", { query: "FROM events", database }, limited);
      expect([database, answer.status]).toEqual([database, 404]);
    }
  });
});

describe("a request that is wrong", () => {
  test("is refused", async () => {
    for (const body of [
      {},
      { query: 1 },
      { query: "SELECT 1", language: "prql" },
      { query: "SELECT 1", database: 1 },
      { query: "SELECT 1", limit: 1 },
      { query: "SELECT 1", params: "x" },
      [],
      "SELECT 1",
    ]) {
      expect([body, (await send("/v1/query/check", body)).status]).toEqual([body, 400]);
    }
    expect((await send("/v1/query/check", { query: "SELECT 1" }, "no-token")).status).toBe(401);
  });

  test("ends within its time, whatever the text", async () => {
    const texts = [
      `SELECT ${Array.from({ length: 100_000 }, () => "1").join(" + ")}`,
      `SELECT ${"(".repeat(20_000)}1${")".repeat(20_000)}`,
      `SELECT 1 WHERE ${Array.from({ length: 200_000 }, () => "true").join(" AND ")}`,
      "SELECT len(range(1000000000))",
      `WITH ${Array.from({ length: 25 }, (_, i) => `t${i + 1} AS (SELECT * FROM t${i}, t${i} AS u)`).join(", ")} FROM t25`,
      "\0".repeat(1_000),
      `SELECT '${"x".repeat(1_000_000)}`,
    ];
    for (const query of texts) {
      for (const language of ["sql", "kql"]) {
        const started = performance.now();
        const { status } = await send("/v1/query/check", { query, language });
        expect([query.slice(0, 40), language, [200, 429].includes(status)]).toEqual([
          query.slice(0, 40),
          language,
          true,
        ]);
        expect(performance.now() - started).toBeLessThan(20_000);
      }
    }
    expect((await check("SELECT 1")).ok).toBe(true);
  }, 200_000);
});
