import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tableFromIPC } from "apache-arrow";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loadDuckDb, quoteText, runSql } from "../../src/io/duckdb/duckdb.ts";
import { ingest, query, rowsOf, type ErrorBody } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";

/** Queries in KQL over HTTP: the ways in, what comes with the answer, and what is refused. */
let engine: Engine;
let removeHome: () => Promise<void>;
const folder = mkdtempSync(join(tmpdir(), "engine-kql-query-"));

beforeAll(async () => {
  const { home, remove } = await temporaryHome();
  removeHome = remove;
  engine = await startEngine({ home, env: { ENGINE_QUERY_WALL_MS: "60000" } });
  await ingest(engine.url, "events", '{"at":"2024-05-01T12:00:00.123456789Z","label":"a","props":{"n":[1]}}');
  await ingest(engine.url, "requests", '{"at":"2024-05-01T12:00:00Z","label":"b"}', { "X-Database": "logs" });
});

afterAll(async () => {
  await engine.stop();
  await removeHome();
  rmSync(folder, { recursive: true, force: true });
});

type Asked = { headers?: Record<string, string>; address?: string };

function post(text: string | Uint8Array<ArrayBuffer>, { headers = {}, address = "" }: Asked = {}): Promise<Response> {
  const all = { "Content-Type": "application/x-kql", ...headers };
  return fetch(`${engine.url}/v1/query${address}`, { method: "POST", headers: all, body: text });
}

async function answer(text: string, asked?: Asked): Promise<Record<string, unknown>[]> {
  const response = await post(text, asked);
  const body = await response.text();
  if (response.status !== 200) throw new Error(`${response.status}: ${body}`);
  const lines = body.split("\n").filter((line) => line !== "");
  expect(response.headers.get("x-engine-rows")).toBe(String(lines.length));
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

async function refusal(text: string | Uint8Array<ArrayBuffer>, asked?: Asked): Promise<ErrorBody["error"]> {
  const response = await post(text, asked);
  const { error } = (await response.json()) as ErrorBody;
  expect(error).toMatchObject({ request_id: response.headers.get("x-request-id") });
  return error;
}

describe("the ways in", () => {
  const ROW = { at: "2024-05-01T12:00:00.123456789Z", label: "a", props: { n: [1] } };

  test("a body of the media type", async () => {
    expect(await answer("events | take 1")).toMatchObject([ROW]);
    const parameters = { headers: { "Content-Type": "application/x-kql; charset=utf-8" } };
    expect(await answer("events | take 1", parameters)).toMatchObject([ROW]);
    expect(await answer("requests | take 1", { headers: { "X-Database": "logs" } })).toMatchObject([{ label: "b" }]);
  });

  test("a body of JSON", async () => {
    const headers = { "Content-Type": "application/json" };
    const asJson = (body: object) => answer(JSON.stringify(body), { headers });
    expect(await asJson({ query: "events | take 1", language: "kql" })).toMatchObject([ROW]);
    expect(await asJson({ query: "SELECT label FROM events", language: "sql" })).toEqual([{ label: "a" }]);
    const wrong = [
      { query: "events", language: "KQL" },
      { query: "events", language: 1 },
      { query: "events", lang: "kql" },
    ];
    for (const body of wrong) {
      expect(await refusal(JSON.stringify(body), { headers })).toMatchObject({ code: "bad_request_body" });
    }
  });

  test("an address", async () => {
    const address = (params: Record<string, string>) =>
      `${engine.url}/v1/query?${new URLSearchParams(params).toString()}`;
    const response = await fetch(address({ q: "events | take 1", language: "kql" }));
    expect(await response.json()).toMatchObject(ROW);
    expect(response.headers.get("cache-control")).toBe("no-store");
    const wrong = (await (await fetch(address({ q: "events", language: "gql" }))).json()) as ErrorBody;
    expect(wrong.error).toMatchObject({ code: "invalid_parameter" });
  });

  test("every format", async () => {
    const bytes = async (accept: string) =>
      Buffer.from(await (await post("events | take 1", { headers: { Accept: accept } })).arrayBuffer());
    expect(await (await post("print x = 1", { headers: { Accept: "application/json" } })).text()).toBe('[{"x":1}]\n');
    expect(String(await bytes("text/csv"))).toContain("2024-05-01T12:00:00.123456789Z,a,");
    const table = tableFromIPC(await bytes("application/vnd.apache.arrow.stream"));
    expect(table.getChild("label")?.get(0)).toBe("a");
    expect(String((await bytes("application/vnd.apache.parquet")).subarray(0, 4))).toBe("PAR1");
    expect((await post("print x = 1", { headers: { Accept: "image/png" } })).status).toBe(406);
  });

  test("every type in every format", async () => {
    const text =
      "print b = true, i = int(1), l = 9007199254740993, r = 0.5, d = decimal(1.25), s = 'ä', t = datetime(2024-05-01), " +
      "ts = 1d + 1s, g = guid(74be27de-1e4e-49d9-b579-fe0b331d3642), j = dynamic({'a': [1]}), nothing = long(null)";
    const get = async (accept: string) => {
      const response = await post(text, { headers: { Accept: accept } });
      return Buffer.from(await response.arrayBuffer());
    };
    const guid = "74be27de-1e4e-49d9-b579-fe0b331d3642";
    // A decimal has the digits of its type.
    const plain = (written: Buffer) => String(written).replace(/1\.250*/, "1.25");
    expect(plain(await get("application/x-ndjson"))).toBe(
      `{"b":true,"i":1,"l":9007199254740993,"r":0.5,"d":1.25,"s":"ä","t":"2024-05-01T00:00:00Z","ts":"1.00:00:01",` +
        `"g":"${guid}","j":{"a":[1]},"nothing":null}\n`,
    );
    expect(plain(await get("text/csv")).split("\n")[1]).toBe(
      `true,1,9007199254740993,0.5,1.25,ä,2024-05-01T00:00:00Z,1.00:00:01,${guid},"{""a"":[1]}",`,
    );
    const arrow = tableFromIPC(await get("application/vnd.apache.arrow.stream"));
    expect(arrow.schema.fields.map(({ name, type }) => `${name}: ${String(type)}`)).toEqual([
      "b: Bool",
      "i: Int32",
      "l: Int64",
      "r: Float64",
      expect.stringMatching(/^d: Decimal/) as string,
      "s: Utf8",
      "t: Timestamp<NANOSECOND, UTC>",
      "ts: Utf8",
      "g: Utf8",
      "j: Utf8",
      "nothing: Int64",
    ]);
    const file = join(folder, "types.parquet");
    writeFileSync(file, await get("application/vnd.apache.parquet"));
    const duckdb = await loadDuckDb();
    const connection = await duckdb.connect(await duckdb.open(":memory:"));
    const from = `read_parquet(${quoteText(file)})`;
    const columns = await runSql(duckdb, connection, `SELECT column_name, column_type FROM (DESCRIBE FROM ${from})`);
    expect(columns.map((column) => column.join(": "))).toEqual([
      "b: BOOLEAN",
      "i: INTEGER",
      "l: BIGINT",
      "r: DOUBLE",
      expect.stringMatching(/^d: DECIMAL/) as string,
      "s: VARCHAR",
      "t: TIMESTAMP_NS",
      "ts: VARCHAR",
      "g: UUID",
      "j: JSON",
      "nothing: BIGINT",
    ]);
    expect(await runSql(duckdb, connection, `SELECT l::TEXT, ts, g::TEXT, j::TEXT FROM ${from}`)).toEqual([
      ["9007199254740993", "1.00:00:01", guid, '{"a":[1]}'],
    ]);
  });

  test("an export", async () => {
    const body = JSON.stringify({ query: "events | take 1", language: "kql" });
    const headers = { "Content-Type": "application/json" };
    const made = await fetch(`${engine.url}/v1/exports`, { method: "POST", headers, body });
    const { id } = (await made.json()) as { id: string };
    const status = async () =>
      (await (await fetch(`${engine.url}/v1/exports/${id}`)).json()) as Record<string, unknown>;
    await expect.poll(status).toMatchObject({ status: "done", rows: 1 });
    expect((await status())["columns"]).toContain("label");
  });
});

describe("what comes with the answer", () => {
  test("render travels beside the rows, and changes none", async () => {
    const plain = await post("events | take 1");
    const drawn = await post("events | take 1 | render timechart");
    expect(plain.headers.get("x-engine-render")).toBeNull();
    const render = JSON.parse(decodeURIComponent(drawn.headers.get("x-engine-render") ?? "")) as unknown;
    expect(render).toMatchObject({ kind: "timechart" });
    expect(await drawn.text()).toBe(await plain.text());
  });

  test("explain answers with the SQL and its plan", async () => {
    const rows = await answer("events | take 1", { address: "?explain=true" });
    expect(rows.map((row) => row["explain_key"])).toEqual(["sql", "physical_plan", "extents"]);
    expect(rows[0]?.["explain_value"]).toMatch(/FROM "events"/);
    const sql = await query(engine.url, String(rows[0]?.["explain_value"]));
    expect(sql.rows).toEqual(await answer("events | take 1"));
    expect(await answer("events | take 1", { address: "?explain=false" })).toHaveLength(1);
    const asSql = { headers: { "Content-Type": "application/sql" }, address: "?explain=true" };
    expect(await refusal("SELECT 1", asSql)).toMatchObject({ code: "invalid_parameter" });
  });

  test("system.queries has the text of the user, with its language", async () => {
    await answer("events | take 1 // mark");
    const log = await rowsOf(
      engine.url,
      "SELECT language, translate_ms >= 0 AS took FROM system.queries WHERE text LIKE '%// mark%'",
    );
    expect(log).toEqual([
      { language: "kql", took: true },
      { language: "sql", took: null },
    ]);
  });
});

test("an edge forwards all of it unchanged", async () => {
  const { home, remove } = await temporaryHome();
  const peers = { ENGINE_QUERY_PEERS: engine.url, ENGINE_INGEST_PEERS: engine.url };
  const edge = await startEngine({ home, env: { ENGINE_ROLES: "edge", ...peers } });
  const texts = ["events | take 1 | render timechart", "events | tak 1", "nothing_like_it | take 1", ""];
  const asked: [address: string, method: string, body: string | null][] = texts.map((text) => ["", "POST", text]);
  asked.push(["?explain=true", "POST", "events | take 1"]);
  asked.push([`?${new URLSearchParams({ q: "events | take 1", language: "kql" }).toString()}`, "GET", null]);
  try {
    for (const [address, method, body] of asked) {
      const answers = [engine.url, edge.url].map(async (url) => {
        const headers = { "Content-Type": "application/x-kql" };
        const response = await fetch(`${url}/v1/query${address}`, { method, headers, body });
        const kept = ["content-type", "x-engine-render", "x-engine-rows"].map((name) => response.headers.get(name));
        const text = (await response.text()).replace(/"request_id":"[^"]+"/, "");
        return { status: response.status, kept, text };
      });
      const [direct, forwarded] = await Promise.all(answers);
      expect(forwarded).toEqual(direct);
    }
  } finally {
    await edge.stop();
    await remove();
  }
});

describe("what is refused", () => {
  test.each([
    ["", "parse_error", /empty/],
    [" \n\t", "parse_error", /empty/],
    ["events | take", "parse_error", /./],
    ["events | tak 1", "parse_error", /./],
    ["nothing_like_it | take 1", "invalid_query", /nothing_like_it/],
    ["events\0 | take 1", "parse_error", /./],
    ["print x = '\u0000'", "parse_error", /./],
  ])("%j", async (text, code, message) => {
    const error = await refusal(text);
    expect([error.code, error.message]).toEqual([code, expect.stringMatching(message)]);
    expect(error.message).not.toMatch(/SELECT|LINE \d|translation/);
    expect(error.line ?? "empty").toBe(text.trim() === "" ? "empty" : 1);
  });

  test("an unknown table, with the one that was meant", async () => {
    expect(await refusal("\n evens | take 1")).toMatchObject({
      code: "invalid_query",
      line: 2,
      column: 2,
      suggestion: "events",
    });
  });

  test("parameters", async () => {
    const header = { headers: { "X-Engine-Param-since": "2024-01-01" } };
    const json = { headers: { "Content-Type": "application/json" } };
    const body = { query: "events | take 1", language: "kql", params: { since: 1 } };
    const refused = { code: "invalid_parameter", message: expect.stringMatching(/no parameters.*`let`/) as string };
    expect(await refusal("events | take 1", header)).toMatchObject(refused);
    expect(await refusal(JSON.stringify(body), json)).toMatchObject(refused);
    const address = `${engine.url}/v1/query?q=events&language=kql`;
    expect(((await (await fetch(address, header)).json()) as ErrorBody).error).toMatchObject(refused);
  });

  test("a text that is not UTF-8", async () => {
    expect(await refusal(Uint8Array.from([0x70, 0xff]))).toMatchObject({ code: "parse_error", message: /UTF-8/ });
  });

  test("a database that is not there", async () => {
    for (const text of ["print x = 1", "events | take 1"]) {
      const error = await refusal(text, { headers: { "X-Database": "nowhere" } });
      expect(error.code).toBe("database_not_found");
    }
  });

  test("a helper of translated queries, in SQL", async () => {
    const { json } = await query(engine.url, "SELECT kql_bin(1, 2)");
    expect(json.error).toMatchObject({
      code: "invalid_query",
      message: expect.stringMatching(/no function kql_bin/) as string,
    });
  });
});
