import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createQueryHarness, type QueryHarness } from "../query.test-kit.ts";

/** Names that are not there: what the message says, where, and what it suggests. */
let harness: QueryHarness;

const failure = (sql: string) => harness.failure(sql);

beforeAll(async () => {
  harness = createQueryHarness();
  const columns = [
    { name: "at", type: { kind: "timestamp" } },
    { name: "label", type: { kind: "string" } },
    { name: "amount", type: { kind: "long" } },
  ] as const;
  const rows = [{ at: 1n, label: "x", amount: 1n }];
  for (const name of ["logs", "users"]) {
    await harness.addTable("default", name, columns, [{ format: "tlm", columns, rows }]);
  }
});

afterAll(() => harness.close());

type Case = [sql: string, place: { line?: number; column?: number }, suggestion: string | undefined];

const at = (column: number, line = 1) => ({ line, column });

describe("misspelt columns", () => {
  test.each<Case>([
    ["SELECT lable FROM logs", at(8), "label"],
    ["FROM logs SELECT lable", at(18), "label"],
    ["SELECT max(amuont) FROM logs", at(12), "amount"],
    ["SELECT *\nFROM logs\nWHERE 'é' <> '' AND lable = 'x'", at(21, 3), "label"],
    ["SELECT * FROM logs ORDER BY lable", at(29), "label"],
    ["SELECT label FROM logs GROUP BY lable", at(33), "label"],
    ["SELECT row_number() OVER (ORDER BY lable) FROM logs", at(36), "label"],
    ["SELECT l.lable FROM logs l", at(8), "label"],
    ["SELECT logs.lable FROM logs", at(8), "label"],
    ["SELECT * FROM Logs l WHERE l.Lable = 1", at(28), "label"],
    ["SELECT * FROM logs l JOIN users u ON l.lable = u.label", at(38), "label"],
    ["SELECT * FROM logs JOIN users USING (lable)", {}, "label"],
    ["WITH c AS (SELECT lable FROM logs) SELECT * FROM c", at(19), "label"],
    ["WITH c AS (SELECT label AS name FROM logs) SELECT nmae FROM c", at(51), "name"],
    ["SELECT * EXCLUDE (lable) FROM logs", {}, "label"],
    ["SELECT * REPLACE (1 AS lable) FROM logs", {}, "label"],
    ["PIVOT logs ON lable USING count(*)", {}, "label"],
    ["UNPIVOT logs ON lable INTO NAME n VALUE v", {}, "label"],
    ["SELECT at + INTERVAL 1 HOUR, lable FROM logs", at(30), "label"],
    ["SELECT lable FROM logs AT (VERSION => 1)", {}, "label"],
    ["SELECT nothing_like_it FROM logs", at(8), undefined],
    ["SELECT user FROM logs", {}, undefined],
  ])("%s", async (sql, place, suggestion) => {
    const { code, message, details } = await failure(sql);
    expect(code).toBe("invalid_query");
    expect(message).toMatch(/^there is no column /);
    expect(details).toMatchObject(place);
    expect(details.suggestion).toBe(suggestion);
  });
});

describe("misspelt tables", () => {
  test.each<Case>([
    ["FROM lgos", at(6), "logs"],
    ["SELECT * FROM logs, uesrs", at(21), "users"],
    ["DESCRIBE lgos", at(10), "logs"],
    ["SUMMARIZE lgos", at(11), "logs"],
    ["SHOW lgos", at(6), "logs"],
    ["WITH events AS (SELECT 1) SELECT * FROM evnets", at(41), "events"],
    ['SELECT * FROM "default".lgos', at(15), "logs"],
    ["FROM nothing_like_it", at(6), undefined],
  ])("%s", async (sql, place, suggestion) => {
    const { code, details } = await failure(sql);
    expect(code).toBe("table_not_found");
    expect(details).toMatchObject(place);
    expect(details.suggestion).toBe(suggestion);
  });
});

describe("other names", () => {
  test.each<[sql: string, message: RegExp, suggestion: string | undefined]>([
    ["SELECT lgos.label FROM logs", /no table "lgos" in the FROM clause/, "logs"],
    ["SELECT date_trnc('day', at) FROM logs", /no function date_trnc/, "date_trunc"],
    ["SELECT * FROM rnage(10)", /no function rnage/, "range"],
    ["SELECT 'x'::timestmap", /no type "timestmap"/, "timestamp"],
    ["SELECT label FROM logs, users", /Ambiguous.*"logs.label" or "users.label"/, undefined],
    ["SELECT l.label FROM logs l, logs l", /duplicate alias "l"/, undefined],
    ["SELECT 1e400", /beyond the range of DOUBLE/, undefined],
    [
      `SELECT ${"(".repeat(2_000)}1${")".repeat(2_000)} + ${"abs(".repeat(2_000)}1${")".repeat(2_000)}`,
      /nested/,
      undefined,
    ],
  ])("%s", async (sql, message, suggestion) => {
    const error = await failure(sql);
    expect(["invalid_query", "parse_error"]).toContain(error.code);
    expect(error.message).toMatch(message);
    expect(error.details.suggestion).toBe(suggestion);
  });
});

describe("errors in texts that are printed anew are placed in the user's own", () => {
  test.each<[sql: string, column: number, code?: string]>([
    ["SELECT  label, CAST(label AS INTEGER) FROM logs", 16, "execution_error"],
    ["WITH c AS (SELECT label::INTEGER AS n FROM logs) FROM c", 24, "execution_error"],
    ["SELECT at + INTERVAL 1 HOUR, CAST(label AS INTEGER) FROM logs", 30, "execution_error"],
    ["SELECT label FROM logs AT (VERSION => 1) WHERE lable = 1", 48],
    ['SELECT "we ird".lable FROM logs AS "we ird" WHERE at > now()::TIMESTAMPTZ', 8],
  ])("%s", async (sql, column, expected = "invalid_query") => {
    const { code, details } = await failure(sql);
    expect(code).toBe(expected);
    expect(details).toMatchObject({ line: 1, column });
  });
});
