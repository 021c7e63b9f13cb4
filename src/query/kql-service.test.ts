import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Log } from "../core/log.ts";
import type { ColumnSpec } from "../format/types.ts";
import type { KqlRequest, KqlTranslation } from "./kql/contract.ts";
import { MACROS } from "./kql/macros.ts";
import { createQueryHarness, type QueryHarness } from "./query.test-kit.ts";
import { KqlRefusal, type Translator } from "./translator/translator.ts";

/** What becomes of a translation, whatever it says: the translator is the test's, the rest is real. */
let harness: QueryHarness;
let answers: (KqlTranslation | ((request: KqlRequest) => KqlTranslation))[];
let requests: KqlRequest[];
let logged: Record<string, unknown>[];

const translator: Translator = {
  warm: () => {},
  names: () => Promise.resolve({ tables: ["t"], needsAllTables: false }),
  async translate(request) {
    requests.push(request);
    const next = answers.shift() ?? answersUp();
    return typeof next === "function" ? next(request) : next;
  },
  pid: () => undefined,
  close: () => Promise.resolve(),
};

const COLUMNS = [
  { name: "at", type: { kind: "timestamp" } },
  { name: "label", type: { kind: "string" } },
  { name: "n", type: { kind: "long" } },
] as const;

const rowsFrom = (snapshot: number) => ({
  format: "tlm" as const,
  columns: COLUMNS,
  snapshot,
  rows: [{ at: BigInt(snapshot), label: `s${snapshot}`, n: BigInt(snapshot) }],
});

beforeAll(async () => {
  const note = (fields: object, message: string): void => void logged.push({ ...fields, message });
  const log = { debug: () => {}, info: () => {}, warn: note, error: note } as unknown as Log;
  harness = createQueryHarness({ service: { translator, log } });
  await harness.addTable("default", "t", COLUMNS, [rowsFrom(1), rowsFrom(2)]);
});

beforeEach(() => {
  answers = [];
  requests = [];
  logged = [];
});

afterAll(async () => harness.close());

function answersUp(): never {
  throw new Error("the translator was asked too often");
}

function translation(sql: string, columns: Record<string, string>, macros: string[] = []): KqlTranslation {
  const named = Object.entries(columns).map(([name, type]) => ({ name, type: type as "long" }));
  return { kind: "query", sql, columns: named, macros };
}

const ask = (text = "the user's text") => harness.text(text, { language: "kql" });
const failure = (text = "the user's text") => harness.failure(text, { language: "kql" });

test("the translator is given the columns of the tables, and one moment", async () => {
  answers = [translation("SELECT n FROM t ORDER BY n", { n: "long" })];
  expect(await ask()).toBe('{"n":1}\n{"n":2}\n');
  expect(requests).toEqual([
    {
      text: "the user's text",
      tables: [{ name: "t", columns: COLUMNS }],
      tableNames: ["t"],
      nowNs: expect.any(BigInt) as bigint,
      keys: [],
    },
  ]);
});

describe("columns that DuckDB finds", () => {
  const ALL =
    "SELECT true AS b, 1::INT AS i, 1::BIGINT AS l, 1::DOUBLE AS r, 1::DECIMAL(10, 2) AS d, 'x' AS s, at, '0' AS ts, " +
    "uuid() AS g, '{}'::JSON AS j FROM t LIMIT 0";
  const TYPES = {
    b: "bool",
    i: "int",
    l: "long",
    r: "real",
    d: "decimal",
    s: "string",
    at: "datetime",
    ts: "timespan",
    g: "guid",
    j: "dynamic",
  };

  test("and are those that were predicted", async () => {
    answers = [translation(ALL, TYPES)];
    expect(await ask()).toBe("");
  });

  test.each([
    ["another type", "SELECT n FROM t", { n: "int" }],
    ["another name", "SELECT n AS m FROM t", { n: "long" }],
    ["another order", "SELECT n, label FROM t", { label: "string", n: "long" }],
    ["one more", "SELECT n, label FROM t", { n: "long" }],
    ["one fewer", "SELECT n FROM t", { n: "long", label: "string" }],
    ["text for JSON", "SELECT '{}' AS j", { j: "dynamic" }],
    ["a type that KQL has not", "SELECT 1::HUGEINT AS x", { x: "long" }],
    ["a timespan that is no text", "SELECT 1::BIGINT AS x", { x: "timespan" }],
    ["what does not bind", "SELECT nothing FROM t", { nothing: "long" }],
    ["what does not parse", "SELECT FROM", { n: "long" }],
    ["a function that no query may call", "SELECT read_text('/etc/passwd') AS x", { x: "string" }],
    ["a helper that it does not name", "SELECT kql_x(1) AS x", { x: "long" }],
    ["two statements", "SELECT 1 AS n; SELECT 2 AS n", { n: "int" }],
    ["a statement that is no query", "DROP TABLE t", { n: "int" }],
  ])("are not the predicted ones: %s", async (_what, sql, columns) => {
    answers = [translation(sql, columns)];
    const error = await failure();
    expect(error).toMatchObject({
      code: "query_failed",
      message: "the translation of this query is wrong: this is a bug of ours",
    });
    expect(error.details).toEqual({});
    expect(logged).toContainEqual(
      expect.objectContaining({ text: "the user's text", sql, message: "a KQL query was translated wrongly" }),
    );
    // It cost nobody a process.
    expect(await harness.rows("SELECT 1 AS a")).toEqual([{ a: 1 }]);
  });

  test("a macro that there is not", async () => {
    answers = [translation("SELECT 1::BIGINT AS n", { n: "long" }, ["kql_nothing_like_it"])];
    expect(await failure()).toMatchObject({ code: "query_failed" });
  });
});

describe("an error while it runs", () => {
  test.each([
    ["SELECT label::BIGINT AS n FROM t", /^Could not convert string 's1' to INT64$/],
    ["SELECT 9223372036854775807 + n AS n FROM t", /^Overflow in addition of INT64/],
    ["SELECT error('mine')::BIGINT AS n FROM t", /^mine$/],
  ])("has no place and no SQL: %s", async (sql, message) => {
    answers = [translation(sql, { n: "long" })];
    const error = await failure();
    expect(error).toMatchObject({ code: "execution_error", message: expect.stringMatching(message) as string });
    expect(error.details).toEqual({});
  });

  test("a query that is nested too deeply is the user's", async () => {
    answers = [translation(`SELECT ${"(1 + ".repeat(3_000)}1${")".repeat(3_000)} AS n`, { n: "int" })];
    expect(await failure()).toMatchObject({ code: "invalid_query", message: "the query is nested too deeply" });
  });

  test("a budget stays a budget", async () => {
    answers = [translation("SELECT len(range(1000000000)) AS n", { n: "long" })];
    expect(await failure()).toMatchObject({ code: "budget_exceeded" });
  });
});

describe("keys", () => {
  const asksKeys = (sql: string): KqlTranslation => ({ kind: "keys", sql, macros: [] });

  test("are read at the snapshot at which the query runs, in as many rounds as it asks for", async () => {
    answers = [
      asksKeys("SELECT DISTINCT label FROM t ORDER BY label"),
      (request) => {
        expect(request.keys).toEqual([["s1", "s2"]]);
        return asksKeys("SELECT DISTINCT n::TEXT AS n FROM t ORDER BY n");
      },
      ({ keys }) => translation(`SELECT count(*) AS n, '${keys.join("/")}' AS k FROM t`, { n: "long", k: "string" }),
    ];
    expect(await ask()).toBe('{"n":2,"k":"s1,s2/1,2"}\n');
  });

  test("and rows are of one snapshot, whatever is committed between", async () => {
    answers = [
      asksKeys("SELECT DISTINCT label FROM t"),
      () => {
        void harness.addTable("default", "other", COLUMNS, [rowsFrom(9)]);
        return translation("SELECT n FROM t", { n: "long" });
      },
    ];
    expect(await harness.text("x", { language: "kql", explain: true })).toContain("table t at snapshot 2");
    answers = [translation("SELECT n FROM t", { n: "long" })];
    expect(await harness.text("x", { language: "kql", explain: true })).toContain("table t at snapshot 9");
  });

  test("that are refused are refused to the user, with the place", async () => {
    answers = [
      asksKeys("SELECT DISTINCT label FROM t"),
      () => {
        throw new KqlRefusal({ code: "invalid_query", message: "too many keys", line: 3, column: 4 });
      },
    ];
    expect(await failure()).toMatchObject({
      code: "invalid_query",
      message: "too many keys",
      details: { line: 3, column: 4 },
    });
  });

  test("without rows are none", async () => {
    answers = [
      asksKeys("SELECT label FROM t WHERE n > 100"),
      ({ keys }) => translation(`SELECT ${keys[0]?.length} AS n`, { n: "int" }),
    ];
    expect(await ask()).toBe('{"n":0}\n');
  });
});

describe("a table that changes after the translation", () => {
  const changed = COLUMNS.map((column) =>
    column.name === "n" ? { ...column, type: { kind: "real" } as const } : column,
  );
  const sql = "SELECT n FROM t WHERE n = 2";

  beforeEach(() => harness.setColumns("t", COLUMNS));
  afterAll(() => harness.setColumns("t", COLUMNS));

  const then = (columns: readonly ColumnSpec[], type: string) => () => {
    harness.setColumns("t", columns);
    return translation(sql, { n: type });
  };

  test("in a column that it names is translated again", async () => {
    answers = [then(changed, "long"), ({ tables }) => translation(sql, { n: tables[0]?.columns[2]?.type.kind ?? "" })];
    expect(await ask()).toBe('{"n":2.0}\n');
    expect(requests).toHaveLength(2);
  });

  test("again and again is given up, and nobody's mistake", async () => {
    answers = [then(changed, "long"), then(COLUMNS, "real")];
    expect(await failure()).toMatchObject({
      code: "unavailable",
      message: "the table t was changed while a query over it was translated; try again",
    });
  });

  test("by a new column is read without it", async () => {
    answers = [then([...COLUMNS, { name: "more", type: { kind: "string" } }], "long")];
    expect(await ask()).toBe('{"n":2}\n');
  });
});

test("the answer says how it is to be drawn", async () => {
  const render = { kind: "piechart", properties: { title: "ä" } };
  answers = [{ kind: "query", sql: "SELECT n FROM t", columns: [{ name: "n", type: "long" }], macros: [], render }];
  const { signal } = new AbortController();
  const { ANONYMOUS } = await import("../auth/caller.ts");
  const asked = {
    caller: ANONYMOUS,
    database: "default",
    text: "x",
    language: "kql",
    requestId: "test",
    signal,
  } as const;
  const { body, ...answer } = await harness.service.run(asked);
  for await (const _chunk of body);
  expect(answer).toMatchObject({ rows: 2, columns: ["n"], render });
});

test("what it becomes and its plan are the answer of a query that asks for them", async () => {
  answers = [translation("SELECT n FROM t WHERE n > 1", { n: "long" })];
  const rows = (await harness.text("x", { language: "kql", explain: true })).trimEnd().split("\n");
  const parts = rows.map((row) => JSON.parse(row) as { explain_key: string; explain_value: string });
  expect(parts.map(({ explain_key }) => explain_key)).toEqual(["sql", "physical_plan", "extents"]);
  expect(parts[0]?.explain_value).toBe("SELECT n FROM t WHERE n > 1");
  expect(parts[2]?.explain_value).toMatch(/pruned by min\/max +1 extents/);
});

test("helpers of translated queries are for those alone", async () => {
  for (const name of [...MACROS.keys(), "kql_x"]) {
    expect(await harness.failure(`SELECT ${name}(1)`)).toMatchObject({
      code: "invalid_query",
      message: expect.stringContaining(`there is no function ${name}`) as string,
    });
  }
});
