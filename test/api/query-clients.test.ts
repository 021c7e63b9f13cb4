import { gunzipSync, zstdDecompressSync } from "node:zlib";
import { request as httpRequest } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loadDuckDb, runSql } from "../../src/io/duckdb/duckdb.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";

/** Queries as tools send them: addresses, parameters, compression, JSON, and the questions that they begin with. */
const ADMIN = "admin-token-of-the-test";
let engine: Engine;
let limited: string;
let remove: () => Promise<void>;

beforeAll(async () => {
  const temporary = await temporaryHome();
  remove = temporary.remove;
  const env = { ENGINE_AUTH_TOKENS: `${ADMIN}:admin`, ENGINE_SANDBOX_RUNTIME: "off" };
  engine = await startEngine({ home: temporary.home, env });
}, 120_000);

afterAll(async () => {
  await engine.stop();
  await remove();
});

type Asked = { token?: string; method?: string; headers?: Record<string, string>; body?: string };

async function ask(path: string, { token = ADMIN, method, headers = {}, body }: Asked = {}): Promise<Response> {
  return await fetch(engine.url + path, {
    method: method ?? (body === undefined ? "GET" : "POST"),
    headers: { Authorization: `Bearer ${token}`, ...headers },
    ...(body === undefined ? {} : { body }),
  });
}

async function ingest(database: string, table: string, rows: readonly object[]): Promise<void> {
  const body = rows.map((row) => JSON.stringify(row)).join("\n");
  const headers = { "X-Database": database, "X-Table": table };
  const answer = await ask("/v1/ingest", { body, headers });
  if (answer.status !== 200) throw new Error(await answer.text());
}

async function rowsOf(sql: string, asked: Asked = {}): Promise<Record<string, unknown>[]> {
  const headers = { ...asked.headers, Accept: "application/json" };
  const answer = await ask("/v1/query", { ...asked, headers, body: sql });
  const value: unknown = await answer.json();
  if (answer.status !== 200) throw new Error(JSON.stringify(value));
  return value as Record<string, unknown>[];
}

async function failureOf(answer: Response): Promise<{ status: number; code: string; message: string }> {
  const { error } = (await answer.json()) as { error: { code: string; message: string } };
  return { status: answer.status, code: error.code, message: error.message };
}

const get = (params: Record<string, string>, asked: Asked = {}): Promise<Response> =>
  ask(`/v1/query?${new URLSearchParams(params).toString()}`, asked);

describe("an engine without databases", () => {
  test("answers what it is asked about itself and what needs no table, and nothing else", async () => {
    expect(await rowsOf("SELECT 1 AS one")).toEqual([{ one: 1 }]);
    expect(await rowsOf("print one = 1", { headers: { "Content-Type": "application/x-kql" } })).toEqual([{ one: 1 }]);
    expect(await rowsOf("SELECT count(*) AS n FROM system.tables")).toEqual([{ n: 0 }]);
    expect(await rowsOf("SELECT count(*) AS n FROM system.queries, system.snapshots")).toHaveLength(1);
    expect(await rowsOf("FROM information_schema.schemata")).toEqual([]);
    expect(await rowsOf("SELECT * FROM information_schema.tables t, information_schema.columns c")).toEqual([]);
    expect(await rowsOf("SHOW DATABASES")).toEqual([]);
    expect(await rowsOf("SHOW TABLES")).toEqual([]);
    for (const [sql, database] of [
      ["SELECT 1", "nowhere"],
      ["FROM events", "default"],
      ["FROM system.tables", "nowhere"],
      ["SHOW TABLES", "nowhere"],
      ["SHOW TABLES FROM nowhere", "default"],
    ] as const) {
      const answer = await ask("/v1/query", { body: sql, headers: { "X-Database": database } });
      expect([sql, await failureOf(answer)]).toMatchObject([sql, { status: 404, code: "database_not_found" }]);
    }
  });
});

describe("with databases", () => {
  beforeAll(async () => {
    const at = "2026-01-02T03:04:05Z";
    await ingest("default", "events", [
      { at, label: "a", ms: 12, body: "x" },
      { at, label: "b", ms: "abc", body: "it's" },
    ]);
    await ingest("sales", "orders", [{ at, label: "order", body: "first" }]);
    await ingest("sales", "Events", [{ at, label: "of sales", body: "sold" }]);
    await ingest("secret", "orders", [{ at, label: "hidden row", body: "canary" }]);
    const body = JSON.stringify({ name: "limited", role: "read", databases: ["default", "sales", "gone"] });
    const headers = { "Content-Type": "application/json" };
    const made = await ask("/v1/auth/tokens", { body, headers });
    limited = ((await made.json()) as { token: string }).token;
  });

  describe("GET /v1/query", () => {
    test("answers as POST does", async () => {
      const answer = await get({ q: "SELECT label FROM events ORDER BY label" });
      expect(answer.status).toBe(200);
      expect(answer.headers.get("content-type")).toBe("application/x-ndjson; charset=utf-8");
      expect(answer.headers.get("x-engine-rows")).toBe("2");
      expect(answer.headers.get("cache-control")).toBe("no-store");
      expect(answer.headers.get("vary")).toBe("Accept, Accept-Encoding");
      expect(await answer.text()).toBe('{"label":"a"}\n{"label":"b"}\n');
      const sum = await ask("/v1/query?q=SELECT+1%2B1+AS+n", { headers: { Accept: "text/csv" } });
      expect(await sum.text()).toBe("n\n2\n");
      const head = await get({ q: "SELECT 1" }, { method: "HEAD" });
      expect([head.status, await head.text()]).toEqual([200, ""]);
    });

    test("takes the database from the address or the header, not two", async () => {
      const q = "SELECT count(*) AS n FROM orders";
      expect(await (await get({ q, database: "sales" })).text()).toBe('{"n":1}\n');
      expect(await (await get({ q }, { headers: { "X-Database": "SALES" } })).text()).toBe('{"n":1}\n');
      const both = await get({ q, database: "sales" }, { headers: { "X-Database": "Sales" } });
      expect(both.status).toBe(200);
      const two = await get({ q, database: "sales" }, { headers: { "X-Database": "default" } });
      expect(await failureOf(two)).toMatchObject({ status: 400, code: "invalid_parameter" });
    });

    test("has the same access, limits and refusals", async () => {
      const bare = await fetch(`${engine.url}/v1/query?q=SELECT+1`);
      expect(bare.status).toBe(401);
      const other = await get({ q: "FROM orders", database: "secret" }, { token: limited });
      expect(await failureOf(other)).toMatchObject({ status: 404, code: "database_not_found" });
      expect(await failureOf(await ask("/v1/query"))).toMatchObject({ status: 400, code: "invalid_parameter" });
      expect(await failureOf(await get({ q: " " }))).toMatchObject({ status: 400, code: "parse_error" });
      expect(await failureOf(await get({ q: "DROP TABLE events" }))).toMatchObject({ code: "invalid_query" });
      const budget = { headers: { "X-Engine-Max-Wall-Clock-Ms": "5" } };
      expect(await failureOf(await get({ q: "SELECT 1" }, budget))).toMatchObject({ code: "invalid_header" });
      const long = await get({ q: `SELECT '${"x".repeat(200_000)}'` });
      expect(long.status).toBe(431);
    });
  });

  describe("parameters", () => {
    const json = { "Content-Type": "application/json" };

    test("come as headers, like quoted literals", async () => {
      const headers = { "X-Engine-Param-Label": "b", "x-engine-param-SINCE": "2026-01-01" };
      const q = "SELECT body FROM events WHERE label = $label AND at >= $since";
      expect(await (await get({ q }, { headers })).text()).toBe('{"body":"it\'s"}\n');
      expect(
        await rowsOf("SELECT body FROM events WHERE body = ?", { headers: { "X-Engine-Param-1": "it's" } }),
      ).toEqual([{ body: "it's" }]);
    });

    test("come in a JSON body, by name or by place, with their types", async () => {
      const named = JSON.stringify({
        query: "SELECT $a AS a, $b AS b, $c AS c, $d AS d",
        params: { a: 1, b: "x", c: null, d: true },
      });
      const answer = await ask("/v1/query", { body: named, headers: json });
      expect(await answer.text()).toBe('{"a":1,"b":"x","c":null,"d":true}\n');
      const exact =
        '{"query": "SELECT $1 AS a, typeof($2) AS t, len($3) AS l", "params": [9007199254740993, 2.0, ["a", "b"]]}';
      expect(await (await ask("/v1/query", { body: exact, headers: json })).text()).toBe(
        '{"a":9007199254740993,"t":"DOUBLE","l":2}\n',
      );
      const both = { ...json, "X-Engine-Param-b": "from a header" };
      const mixed = JSON.stringify({ query: "SELECT $a AS a, $b AS b", params: { a: "from the body" } });
      expect(await (await ask("/v1/query", { body: mixed, headers: both })).text()).toBe(
        '{"a":"from the body","b":"from a header"}\n',
      );
    });

    test.each<[string, string, Record<string, string>, string, string]>([
      ["none given", JSON.stringify({ query: "SELECT $x" }), json, "invalid_query", "$x"],
      ["one too many", JSON.stringify({ query: "SELECT 1", params: { x: 1 } }), json, "invalid_parameter", "$x"],
      ["a header too many", "SELECT 1", { "X-Engine-Param-x": "1" }, "invalid_parameter", "$x"],
      [
        "given twice",
        '{"query":"SELECT $x","params":{"x":1}}',
        { ...json, "X-Engine-Param-X": "1" },
        "invalid_parameter",
        "$x",
      ],
      ["a name that is none", '{"query":"SELECT 1","params":{"x y":1}}', json, "invalid_parameter", "x y"],
      ["an object", '{"query":"SELECT $x","params":{"x":{}}}', json, "invalid_parameter", '"x"'],
      ["no JSON", "{", json, "bad_request_body", "not JSON"],
      ["no object", "[1]", json, "bad_request_body", "JSON object"],
      ["no query", '{"params":{}}', json, "bad_request_body", "query"],
      ["another field", '{"query":"SELECT 1","parmas":{}}', json, "bad_request_body", "parmas"],
      ["params of no kind", '{"query":"SELECT 1","params":"x"}', json, "bad_request_body", "params"],
      [
        "a list that is too long",
        JSON.stringify({ query: "SELECT len($x)", params: { x: Array.from({ length: 10_001 }, () => 1) } }),
        json,
        "bad_request_body",
        "more than 10000 values",
      ],
      [
        "lists in lists without end",
        `{"query":"SELECT 1","params":{"x":${"[".repeat(200_000)}${"]".repeat(200_000)}}}`,
        json,
        "bad_request_body",
        "more than 10000 values",
      ],
      [
        "far too many names",
        JSON.stringify({
          query: "SELECT 1",
          params: Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`p${i}`, 1])),
        }),
        json,
        "invalid_parameter",
        "and 40 more",
      ],
      ["an empty query", '{"query":" "}', json, "parse_error", "empty"],
    ])("%s is a 400 that says so", async (_what, body, headers, code, named) => {
      const failure = await failureOf(await ask("/v1/query", { body, headers }));
      expect(failure).toMatchObject({ status: 400, code });
      expect(failure.message).toContain(named);
    });
  });

  describe("formats and compression", () => {
    test("JSON is for who asks for it, NDJSON for all others", async () => {
      for (const [accept, type, text] of [
        ["application/json", "application/json; charset=utf-8", '[{"a":1}]\n'],
        ["application/json, text/plain, */*", "application/json; charset=utf-8", '[{"a":1}]\n'],
        ["application/*;q=0.5, application/json", "application/json; charset=utf-8", '[{"a":1}]\n'],
        ["*/*", "application/x-ndjson; charset=utf-8", '{"a":1}\n'],
        ["application/*", "application/x-ndjson; charset=utf-8", '{"a":1}\n'],
      ] as const) {
        const answer = await get({ q: "SELECT 1 AS a" }, { headers: { Accept: accept } });
        expect([accept, answer.headers.get("content-type"), await answer.text()]).toEqual([accept, type, text]);
      }
      expect((await get({ q: "SELECT 1" }, { headers: { Accept: "text/html" } })).status).toBe(406);
    });

    /** Without what `fetch` decodes by itself. */
    function raw(path: string, coding: string): Promise<{ headers: NodeJS.Dict<string | string[]>; bytes: Buffer }> {
      return new Promise((resolve, reject) => {
        const headers = { authorization: `Bearer ${ADMIN}`, "accept-encoding": coding };
        httpRequest(engine.url + path, { headers }, (response) => {
          const parts: Buffer[] = [];
          response.on("data", (part: Buffer) => parts.push(part));
          response.on("end", () => resolve({ headers: response.headers, bytes: Buffer.concat(parts) }));
          response.on("error", reject);
        })
          .on("error", reject)
          .end();
      });
    }

    const LONG = `/v1/query?q=${encodeURIComponent("SELECT range AS n, 'the same text' AS s FROM range(20000)")}`;
    const LONGER = LONG.replace("20000", "300000");

    test.each([
      ["gzip", gunzipSync],
      ["zstd", zstdDecompressSync],
    ] as const)("answers are compressed with %s, and are the same", async (coding, decode) => {
      expect((await raw("/metrics", coding)).headers["content-encoding"]).toBe(coding);
      for (const path of [LONG, LONGER, "/v1/openapi.json"]) {
        const plain = await raw(path, "identity");
        const packed = await raw(path, `${coding};q=1, *;q=0`);
        expect([path, packed.headers["content-encoding"]]).toEqual([path, coding]);
        expect(packed.headers["vary"]).toContain("Accept-Encoding");
        expect(packed.bytes.length).toBeLessThan(plain.bytes.length / 2);
        expect(decode(packed.bytes).equals(plain.bytes)).toBe(true);
        // One that is streamed has none.
        const { "content-length": length = packed.bytes.length } = packed.headers;
        expect(Number(length)).toBe(packed.bytes.length);
      }
      const tiny = await raw("/v1/query?q=SELECT+1", coding);
      expect(tiny.headers["content-encoding"]).toBeUndefined();
      expect(tiny.headers["content-length"]).toBe(String(tiny.bytes.length));
    });

    test("no other route, and no error, is", async () => {
      for (const path of ["/v1/exports/nothing", "/v1/query?q=FROM+nowhere", "/v1/auth/me"]) {
        expect((await raw(path, "gzip, zstd")).headers["content-encoding"]).toBeUndefined();
      }
    });
  });

  describe("names of other databases", () => {
    test("reach the tables that the caller may read, at the same snapshot", async () => {
      for (const token of [ADMIN, limited]) {
        const sql = `SELECT e.label AS mine, o.label AS theirs, sales.events.body FROM events e, sales.orders AS o, Sales.EVENTS ORDER BY 1`;
        expect(await rowsOf(sql, { token })).toEqual([
          { mine: "a", theirs: "order", body: "sold" },
          { mine: "b", theirs: "order", body: "sold" },
        ]);
        expect(await rowsOf("SELECT count(*) AS n FROM engine.sales.orders", { token })).toEqual([{ n: 1 }]);
        expect(await rowsOf("SELECT engine.sales.orders.label FROM engine.sales.orders", { token })).toEqual([
          { label: "order" },
        ]);
        expect(await rowsOf('SELECT count(*) AS n FROM default.events, "default".events AS b', { token })).toEqual([
          { n: 4 },
        ]);
        expect(await rowsOf("SELECT count(*) AS n FROM sales.orders AT (TIMESTAMP => now())", { token })).toEqual([
          { n: 1 },
        ]);
        expect((await rowsOf("DESCRIBE sales.orders", { token })).map(({ column_name: name }) => name)).toContain(
          "body",
        );
        expect(await rowsOf("SHOW TABLES FROM default", { token })).toEqual([{ name: "events" }]);
        expect(await rowsOf("SHOW TABLES FROM sales", { token })).toEqual([{ name: "Events" }, { name: "orders" }]);
        expect((await rowsOf("SHOW TABLES FROM system", { token })).map(({ name }) => name)).toContain("queries");
        expect(JSON.stringify(await rowsOf("EXPLAIN FROM sales.orders", { token }))).toContain("sales.orders");
      }
      expect(await rowsOf("SELECT count(*) AS n FROM sales.orders AT (VERSION => 0)")).toEqual([{ n: 0 }]);
    });

    test("of a database that is somebody else's and of none are the same to a limited caller", async () => {
      const forms = [
        "SELECT * FROM NAME.orders",
        'SELECT * FROM "NAME"."orders"',
        "SELECT * FROM engine.NAME.orders",
        "SELECT * FROM NAME.main.orders",
        "SELECT * FROM NAME.nothing",
        "SELECT * FROM events, NAME.orders",
        "SELECT * FROM NAME.orders AT (VERSION => 1)",
        "SELECT * FROM NAME.orders AT (VERSION => 99999)",
        "SELECT * FROM NAME.orders AT (TIMESTAMP => TIMESTAMP '1999-01-01')",
        "WITH orders AS (SELECT 1) FROM NAME.orders",
        "WITH NAME AS (SELECT 1) FROM NAME.orders",
        "DESCRIBE NAME.orders",
        "SUMMARIZE NAME.orders",
        "SHOW NAME.orders",
        "SHOW TABLES FROM NAME",
        "SELECT * FROM (SHOW TABLES FROM NAME)",
        "EXPLAIN FROM NAME.orders",
        "PIVOT NAME.orders ON label USING count(*)",
        "SELECT NAME.orders.label FROM sales.orders",
        "SELECT (SELECT count(*) FROM NAME.orders)",
        "SELECT * FROM NAME",
        "SELECT * FROM information_schema.NAME",
        "SELECT * FROM information_schema.tables AT (VERSION => 1), NAME.orders",
        "SELECT count(*) AS n FROM information_schema.tables WHERE table_schema = 'NAME'",
        "SELECT count(*) AS n FROM information_schema.columns WHERE table_schema ILIKE '%NAME%'",
        "SELECT count(*) AS n FROM information_schema.schemata WHERE schema_name = 'NAME'",
        "SELECT * FROM NAME.information_schema.tables",
        "SELECT * FROM NAME.system.tables",
      ];
      for (const form of forms) {
        const outline = async (name: string): Promise<string> => {
          const answer = await ask("/v1/query", { token: limited, body: form.replaceAll("NAME", name) });
          const text = (await answer.text()).replace(/"request_id":"[^"]*"/, "");
          expect([form, text]).toEqual([form, expect.not.stringMatching(/canary|hidden row/)]);
          return `${answer.status} ${text.replaceAll(new RegExp(name, "gi"), "NAME")}`;
        };
        expect([form, await outline("secret")]).toEqual([form, await outline("absent")]);
      }
      // The same statements do reach it for who may.
      expect(await rowsOf("SELECT label FROM secret.orders")).toEqual([{ label: "hidden row" }]);
      expect(await rowsOf("SHOW TABLES FROM secret")).toEqual([{ name: "orders" }]);
    });

    test("suggest nothing that the caller may not read", async () => {
      const of = async (token: string) =>
        await failureOf(await ask("/v1/query", { token, body: "FROM secrets.orders" }));
      expect((await of(ADMIN)).message).toContain('did you mean "secret"?');
      expect((await of(limited)).message).not.toContain("did you mean");
      const near = await failureOf(await ask("/v1/query", { token: limited, body: "FROM sales.order" }));
      expect(near).toMatchObject({ code: "table_not_found" });
      expect(near.message).toContain('"orders"');
    });
  });

  describe("a tool that looks around", () => {
    /** What clients of the kind of Metabase and Superset ask, one after the other. */
    const SEQUENCE = {
      schemata: "SELECT schema_name FROM information_schema.schemata ORDER BY schema_name",
      tables:
        "SELECT table_catalog, table_schema, table_name, table_type FROM INFORMATION_SCHEMA.TABLES " +
        "WHERE table_type IN ('BASE TABLE', 'VIEW') ORDER BY table_schema, table_name",
      columns:
        'SELECT c."table_schema", c."table_name", c."column_name", c."ordinal_position", c."data_type", c."is_nullable", ' +
        "c.numeric_precision, c.numeric_precision_radix, c.numeric_scale, c.character_maximum_length, c.column_default " +
        'FROM "information_schema"."columns" c JOIN information_schema.tables t USING (table_schema, table_name) ' +
        "WHERE c.table_schema = $1 ORDER BY c.table_name, c.ordinal_position",
    };

    test("finds the databases, tables and columns that it may read", async () => {
      expect(await rowsOf("SHOW DATABASES")).toEqual(
        ["default", "sales", "secret"].map((name) => ({ database_name: name })),
      );
      expect(await rowsOf("SHOW DATABASES", { token: limited })).toEqual(
        ["default", "sales"].map((name) => ({ database_name: name })),
      );
      const names = async (token: string) =>
        (await rowsOf(SEQUENCE.schemata, { token })).map(({ schema_name: name }) => name);
      expect([await names(ADMIN), await names(limited)]).toEqual([
        ["default", "sales", "secret"],
        ["default", "sales"],
      ]);
      expect(await rowsOf(SEQUENCE.tables, { token: limited, headers: { "X-Database": "sales" } })).toEqual(
        [
          ["default", "events"],
          ["sales", "Events"],
          ["sales", "orders"],
        ].map(([schema, table]) => ({
          table_catalog: "engine",
          table_schema: schema,
          table_name: table,
          table_type: "BASE TABLE",
        })),
      );
      const hidden = await rowsOf("SELECT * FROM information_schema.columns WHERE table_schema = 'secret'", {
        token: limited,
      });
      expect(hidden).toEqual([]);
      // Every name that it is told can be put into a query, in two parts or three.
      for (const { table_catalog: c, table_schema: s, table_name: t } of await rowsOf(SEQUENCE.tables)) {
        for (const name of [`"${String(s)}"."${String(t)}"`, `"${String(c)}"."${String(s)}"."${String(t)}"`]) {
          expect(await rowsOf(`SELECT count(*) > 0 AS some FROM ${name}`)).toEqual([{ some: true }]);
        }
      }
    });

    test("hears of columns what DuckDB says of the same table", async () => {
      const told = await rowsOf(SEQUENCE.columns, { headers: { "X-Engine-Param-1": "default" } });
      const duckdb = await loadDuckDb();
      const connection = await duckdb.connect(await duckdb.open(":memory:"));
      await duckdb.query(connection, `CREATE SCHEMA "default"`);
      const tables = new Map<string, string[]>();
      for (const { table_name: table, column_name: name, data_type: type } of told) {
        const columns = tables.get(String(table)) ?? [];
        tables.set(String(table), [...columns, `"${String(name)}" ${String(type)}`]);
      }
      expect([...tables.keys()]).toEqual(["events"]);
      for (const [table, columns] of tables) {
        await duckdb.query(connection, `CREATE TABLE "default"."${table}" (${columns.join(", ")})`);
      }
      const sql = SEQUENCE.columns.replace("$1", "'default'");
      const rows = await runSql(duckdb, connection, `SELECT to_json(q)::VARCHAR FROM (${sql}) AS q`);
      expect(told).toEqual(rows.map(([row]) => JSON.parse(row ?? "") as unknown));
      const names = "SELECT string_agg(column_name || ' ' || column_type, ', ') AS shape FROM (DESCRIBE NAME)";
      for (const view of ["schemata", "tables", "columns"]) {
        const own = await rowsOf(names.replace("NAME", `information_schema.${view}`));
        const [[theirs] = []] = await runSql(duckdb, connection, names.replace("NAME", `information_schema.${view}`));
        expect(own).toEqual([{ shape: theirs }]);
      }
      duckdb.disconnect_sync(connection);
    });
  });
});
