import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { eventually } from "../../src/core/waiting.test-kit.ts";
import { runHere } from "../../src/cli/cli.test-kit.ts";
import {
  bigints,
  failure,
  scriptedTrino,
  type Page,
  type ScriptedTrino,
} from "../../src/query/engines/trino/scripted-trino.test-kit.ts";
import { CalledServices, type Json } from "../api/services.test-kit.ts";
import { ndjson } from "../support/client.ts";

/** Queries that are sent to a query engine: here one that answers what the test says. */

type Who = "admin" | "writer" | "reader" | "limited" | "limitedAdmin";
const ENGINES = "/v1/admin/query-engines";
const KEY = Buffer.alloc(32, 7).toString("base64");

let services: CalledServices<Who>;
let trino: ScriptedTrino;
/** How a query was answered before anything was ingested. */
let beforeFirstRow: number;

beforeAll(async () => {
  trino = await scriptedTrino();
  services = await CalledServices.start<Who>(
    [
      ["admin", "admin"],
      ["writer", "write"],
      ["reader", "read"],
    ],
    { ENGINE_SECRET_KEY: KEY, ENGINE_COMPACTION_POLL_SECS: "86400" },
  );
  await services.limit("limited", "write", ["default"], "admin");
  await services.limit("limitedAdmin", "admin", ["default"], "admin");
  const made = await services.json("admin", "POST", ENGINES, {
    name: "trino",
    kind: "trino",
    url: trino.url,
    catalog: "lake",
  });
  expect(made).toMatchObject({ httpStatus: 201, name: "trino", user: null, credential_id: null });
  trino.answers.set("SELECT answer", ANSWER);
  beforeFirstRow = (await run("reader", "SELECT answer", { "X-Database": "DEFAULT" })).status;
  const headers = { "X-Table": "events", "Content-Type": "application/x-ndjson" };
  await services.send("writer", "POST", "/v1/ingest", ndjson([{ n: 1 }, { n: 2 }]), headers);
}, 120_000);
afterEach(() => {
  trino.requests.length = 0;
  trino.ended.length = 0;
});
afterAll(async () => {
  await services.close();
  await trino.close();
});

const run = (who: Who, text: string, headers: Record<string, string> = {}) =>
  services.send(who, "POST", "/v1/query", text, { "X-Engine-Run-On": "trino", ...headers });
async function refusal(answer: Promise<Response>): Promise<[number, string, string]> {
  const response = await answer;
  const { error } = (await response.json()) as { error: { code: string; message: string } };
  return [response.status, error.code, error.message];
}

const ANSWER: readonly Page[] = [
  {},
  {
    columns: [
      { name: "n", type: "bigint", typeSignature: { rawType: "bigint" } },
      { name: "n", type: "varchar", typeSignature: { rawType: "varchar" } },
      {
        name: "list",
        type: "array(bigint)",
        typeSignature: { rawType: "array", arguments: [{ kind: "TYPE", value: { rawType: "bigint" } }] },
      },
    ],
    data: [
      [1, 'a "b"\0', [1, null]],
      [null, null, null],
    ],
  },
];

test("an answer has our types, in each of our formats", async () => {
  trino.answers.set("SELECT answer", ANSWER);
  const accepted = async (type: string): Promise<[string | null, string]> => {
    const response = await run("reader", "SELECT answer", { Accept: type });
    expect([response.status, response.headers.get("X-Engine-Rows")]).toEqual([200, "2"]);
    return [response.headers.get("Content-Type"), Buffer.from(await response.arrayBuffer()).toString("latin1")];
  };
  const [, lines] = await accepted("application/x-ndjson");
  expect(lines).toBe('{"n":1,"n_1":"a \\"b\\"\\u0000","list":[1,null]}\n{"n":null,"n_1":null,"list":null}\n');
  expect((await accepted("text/csv"))[1]).toMatch(/^n,n_1,list\n1,"a ""b""\0","?\[1,null\]"?\n,,\n$/);
  expect((await accepted("application/vnd.apache.parquet"))[1]).toMatch(/^PAR1/);
  expect((await accepted("application/vnd.apache.arrow.stream"))[0]).toContain("arrow");
  expect(JSON.parse((await accepted("application/json"))[1])).toHaveLength(2);
});

test("the text goes as it is, on behalf of who sent it, into the database as a schema", async () => {
  trino.answers.set("SELECT 'ä' -- \n", ANSWER);
  const response = await run("reader", "SELECT 'ä' -- \n");
  await response.text();
  const sent = trino.requests.find(({ body }) => body.includes("ä"));
  expect(sent?.headers).toMatchObject({
    "x-trino-schema": "default",
    "x-trino-catalog": "lake",
    "x-trino-user": "engine",
    "x-trino-trace-token": response.headers.get("X-Request-ID"),
  });
  expect(sent?.headers["authorization"]).toBeUndefined();
});

test("an answer without rows has columns, and what gives none is no query", async () => {
  trino.answers.set("SELECT none", [bigints("a")]);
  const response = await run("reader", "SELECT none", { Accept: "text/csv" });
  expect([response.status, await response.text()]).toEqual([200, "a\n"]);
  trino.answers.set("SET SESSION x = 1", [{}]);
  expect(await refusal(run("reader", "SET SESSION x = 1"))).toEqual([
    400,
    "invalid_query",
    "the text has no rows for an answer: only queries are sent to an engine",
  ]);
});

test("who is limited to databases sends nothing, and adds nothing", async () => {
  trino.answers.set("SELECT answer", ANSWER);
  const sees = "query engines read with their own credential: use a token that is not limited to databases";
  for (const who of ["limited", "limitedAdmin"] as const) {
    expect(await refusal(run(who, "SELECT answer"))).toEqual([403, "forbidden", sees]);
    const asked = { query: "SELECT answer", run_on: "trino" };
    expect(await services.json(who, "POST", "/v1/exports", asked)).toMatchObject({ error: { message: sees } });
    // The same by way of the jobs, where only who has it says it.
    const job = { kind: "query.export", database: "default", payload: { ...asked, database: "default" } };
    const { job_id: id } = await services.json(who, "POST", "/v1/jobs", job);
    await eventually(async () => (await services.json(who, "GET", `/v1/exports/${String(id)}`))["status"] === "failed");
    expect((await services.json(who, "GET", `/v1/exports/${String(id)}`))["error"]).toContain(sees);
  }
  expect(await services.json("limitedAdmin", "GET", ENGINES)).toMatchObject({ httpStatus: 403 });
  expect(await services.json("writer", "GET", ENGINES)).toMatchObject({ httpStatus: 403 });
  expect(trino.requests).toEqual([]);
});

test("what an engine cannot take is refused before anything is sent", async () => {
  expect(await refusal(run("reader", "SELECT 1", { "X-Engine-Param-a": "1" }))).toEqual([
    400,
    "invalid_parameter",
    "a query engine is sent the text as it is: without parameters, KQL or explain",
  ]);
  const kql = { "Content-Type": "application/x-kql" };
  expect((await refusal(run("reader", "events | take 1", kql)))[1]).toBe("invalid_parameter");
  expect((await refusal(run("reader", "SELECT 1", { "X-Database": "nosuch" })))[1]).toBe("database_not_found");
  expect(await refusal(run("reader", "SELECT 1", { "X-Engine-Run-On": "nosuch" }))).toEqual([
    404,
    "not_found",
    'there is no query engine "nosuch"; there are: trino',
  ]);
  const asks: [Json, number, string][] = [
    [{ query: "q", run_on: "nosuch" }, 404, 'there is no query engine "nosuch"; there are: trino'],
    [
      { query: "q", publish: ["events"] },
      400,
      "publish needs run_on: queries on this server read unpublished rows anyway",
    ],
    [
      { query: "q", run_on: "trino", language: "kql" },
      400,
      "language: a query engine is sent the text as it is, and knows no KQL",
    ],
    [{ query: "q", run_on: "trino", publish: ["events"] }, 403, "publishing rows takes the role write"],
  ];
  for (const [asked, httpStatus, message] of asks) {
    expect(await services.json("reader", "POST", "/v1/exports", asked)).toMatchObject({
      httpStatus,
      error: { message },
    });
  }
  const missing = { query: "q", run_on: "trino", publish: ["default.nosuch"] };
  expect(await services.json("writer", "POST", "/v1/exports", missing)).toMatchObject({ httpStatus: 404 });
  expect(trino.requests).toEqual([]);
});

test("the database that is meant without a name is there before its first row", () => {
  expect(beforeFirstRow).toBe(200);
});

test("a query that reads more than it may says how to send it to an engine, where that can be done", async () => {
  const refused = /^the query reads \d+ bytes from the object store, and its budget is 0 bytes/;
  const hint = (by: string) => `a query engine can take it, in its own SQL: send it with ${by}: trino`;
  const headers = { "X-Engine-Max-Object-Store-Bytes": "0" };
  const said = async (answer: Promise<Response>): Promise<Json> =>
    ((await (await answer).json()) as { error: Json }).error;
  const sql = "SELECT max(n) AS n FROM events";
  const posted = await said(services.send("reader", "POST", "/v1/query", sql, headers));
  expect(posted).toMatchObject({ code: "budget_exceeded", hint: hint("X-Engine-Run-On") });
  expect(posted["message"]).toMatch(refused);
  expect(posted["message"]).toMatch(
    /; a query engine can take it, in its own SQL: send it with X-Engine-Run-On: trino$/,
  );

  const path = `/v1/query?q=${encodeURIComponent(sql)}`;
  for (const answer of [
    services.send("reader", "GET", path, undefined, headers),
    services.send("limited", "POST", "/v1/query", sql, headers),
  ]) {
    const other = await said(answer);
    expect(other["code"]).toBe("budget_exceeded");
    expect(other).not.toHaveProperty("hint");
    expect(other["message"]).toMatch(/and its budget is 0 bytes$/);
  }

  const asked = { query: sql, budgets: { max_object_store_bytes: 0 } };
  const { id } = await services.json("reader", "POST", "/v1/exports", asked);
  const exported = () => services.json("reader", "GET", `/v1/exports/${String(id)}`);
  await eventually(async () => (await exported())["status"] === "failed");
  expect((await exported())["error"]).toContain(`; ${hint("run_on")}`);
});

test("an answer that is too large is refused, and the query there is ended", async () => {
  const page = { ...ANSWER[1], data: Array.from({ length: 9 }, () => [1, "x".repeat(1024 * 1024), null]) };
  trino.answers.set(
    "SELECT large",
    Array.from({ length: 20 }, () => page),
  );
  expect(await refusal(run("reader", "SELECT large"))).toEqual([
    429,
    "budget_exceeded",
    "the answer has more than 67108864 bytes: keep it as a file, with POST /v1/exports",
  ]);
  expect(trino.ended).toHaveLength(1);
});

test("a client that leaves, or whose time is up, has the query there ended", async () => {
  trino.answers.set(
    "SELECT for ever",
    Array.from({ length: 100_000 }, () => ({})),
  );
  const stop = new AbortController();
  const left = fetch(`${services.url}/v1/query`, {
    method: "POST",
    body: "SELECT for ever",
    headers: { Authorization: `Bearer ${services.tokens.get("reader")}`, "X-Engine-Run-On": "trino" },
    signal: stop.signal,
  });
  await eventually(() => trino.requests.length > 5);
  stop.abort();
  await expect(left).rejects.toThrow("abort");
  await eventually(() => trino.ended.length === 1);
  const [status, code] = await refusal(run("reader", "SELECT for ever", { "X-Engine-Max-Wall-Clock-Ms": "300" }));
  expect([status, code]).toEqual([429, "budget_exceeded"]);
  expect(trino.ended).toHaveLength(2);
  expect(trino.requests.some(({ body }) => body === "ROLLBACK")).toBe(true);
});

test("values that are none of their type, rows that do not match, and errors there are said in a sentence", async () => {
  const cases: [string, Page, number, RegExp][] = [
    ["v1", { ...bigints("a"), data: [["x"]] }, 400, /^the query engine sent a value that cannot be taken: .*'x'/],
    ["v2", { ...bigints("a"), data: [[1, 2]] }, 502, /^the query engine sent a row of 2 values for 1 columns$/],
    ["v3", { data: [[1]] }, 502, /^the query engine sent rows before columns$/],
    [
      "v4",
      failure("SYNTAX_ERROR", "USER_ERROR", "line 1:1: so it is"),
      400,
      /^the query engine says: line 1:1: so it is$/,
    ],
    ["v5", { ...bigints(...Array.from({ length: 3 }, () => 'x"; DROP')), data: [] }, 200, /^$/],
  ];
  for (const [text, page, status, message] of cases) {
    trino.answers.set(text, [page]);
    const response = await run("reader", text);
    const body = await response.text();
    const said = response.status === 200 ? body : (JSON.parse(body) as { error: { message: string } }).error.message;
    expect([response.status, said]).toEqual([status, expect.stringMatching(message)]);
  }
  // The process that read them is good for others.
  expect((await services.send("reader", "POST", "/v1/query", "SELECT 42 AS a")).status).toBe(200);
});

test("an engine with a credential is shown it, over https or on this machine, and the use is on record", async () => {
  const value = { kind: "basic", username: "ann", password: "pass" };
  const { id } = await services.json("admin", "POST", "/v1/credentials", { label: "trino", value });
  const url = { kind: "url", url: "https://example.com/x" };
  const other = await services.json("admin", "POST", "/v1/credentials", { label: "no key", value: url });
  const add = (more: Json) =>
    services.json("admin", "POST", ENGINES, { name: "keyed", kind: "trino", catalog: "lake", ...more });
  const refused: [Json, number, RegExp][] = [
    [
      { url: "http://trino.example.com", credential_id: id },
      400,
      /^url: must be https, because a credential is sent to it$/,
    ],
    [
      { url: "http://127.0.0.1.example.com", credential_id: id },
      400,
      /^url: must be https, because a credential is sent to it$/,
    ],
    [{ url: "https://user:pass@trino.example.com" }, 400, /^url: accepted is/],
    [{ url: "https://trino.example.com/path" }, 400, /^url: accepted is/],
    [{ url: "ftp://trino.example.com" }, 400, /^url: accepted is/],
    [{ url: trino.url, catalog: "a\r\nb" }, 400, /catalog/],
    [{ url: trino.url, name: "Bad Name" }, 400, /name/],
    [
      { url: trino.url, credential_id: other["id"] },
      400,
      /^credential_id: accepted are the kinds basic, pat, api_key$/,
    ],
    [{ url: trino.url, credential_id: "01977f3e-7c3a-7d2e-9d6f-0d5b0f4b6a11" }, 404, /^there is no credential/],
    [{ url: trino.url, name: "trino" }, 409, /^there is a query engine trino already: remove it first$/],
  ];
  for (const [more, httpStatus, message] of refused) {
    const answer = await add(more);
    const said = (answer["error"] as Json)["message"];
    expect([more, answer.httpStatus, said]).toEqual([more, httpStatus, expect.stringMatching(message)]);
  }
  expect((await add({ url: trino.url, credential_id: id })).httpStatus).toBe(201);
  trino.answers.set("SELECT answer", ANSWER);
  await (await run("reader", "SELECT answer", { "X-Engine-Run-On": "keyed" })).text();
  expect(trino.requests.at(0)?.headers).toMatchObject({
    authorization: `Basic ${Buffer.from("ann:pass").toString("base64")}`,
    "x-trino-user": "ann",
  });
  const audit = await services.json("admin", "GET", "/v1/admin/audit?limit=50");
  expect(JSON.stringify(audit)).toContain('"query_engine":"keyed"');
  expect(JSON.stringify(audit)).not.toContain("pass");
  await services.json("admin", "DELETE", `/v1/credentials/${String(id)}`);
  expect((await refusal(run("reader", "SELECT answer", { "X-Engine-Run-On": "keyed" })))[0]).toBe(404);
  expect((await services.send("admin", "DELETE", `${ENGINES}/keyed`)).status).toBe(200);
});

test("an export runs there with its tables published before, and keeps a Parquet file", async () => {
  trino.answers.set("SELECT kept", ANSWER);
  const asked = { query: "SELECT kept", run_on: "trino", publish: ["events"] };
  const made = await services.json("writer", "POST", "/v1/exports", asked);
  expect(made).toMatchObject({ httpStatus: 202 });
  const path = `/v1/exports/${String(made["id"])}`;
  await eventually(async () => (await services.json("writer", "GET", path))["status"] === "done");
  expect(await services.json("writer", "GET", path)).toMatchObject({
    rows: 2,
    columns: ["n", "n", "list"],
    error: null,
  });
  const file = Buffer.from(await (await services.send("writer", "GET", `${path}/download`)).arrayBuffer());
  expect(file.subarray(0, 4).toString()).toBe("PAR1");
  const { unpublished_rows: left } = await services.json("writer", "GET", "/v1/admin/databases/default/tables/events");
  expect(left).toBe(0);
});

test("an export that is cancelled ends its query there; one that fails says why", async () => {
  trino.answers.set(
    "SELECT for ever",
    Array.from({ length: 100_000 }, () => ({})),
  );
  const made = await services.json("writer", "POST", "/v1/exports", { query: "SELECT for ever", run_on: "trino" });
  const path = `/v1/exports/${String(made["id"])}`;
  const progressOf = async () => ((await services.json("writer", "GET", path))["progress"] ?? {}) as Json;
  await eventually(async () => (await progressOf())["state"] === "RUNNING");
  expect(await progressOf()).toMatchObject({ phase: "query", engine: "trino", percent: 50, rows_read: 7, rows: 0 });
  const { query_id: queryId } = await progressOf();
  await services.json("writer", "DELETE", path);
  await eventually(async () => (await services.json("writer", "GET", path))["status"] === "cancelled");
  expect(trino.ended).toContain(queryId);

  trino.answers.set("SELECT wrong", [failure("SYNTAX_ERROR", "USER_ERROR", "line 1:1: so it is")]);
  const wrong = await services.json("reader", "POST", "/v1/exports", { query: "SELECT wrong", run_on: "trino" });
  const wrongPath = `/v1/exports/${String(wrong["id"])}`;
  await eventually(async () => (await services.json("reader", "GET", wrongPath))["status"] === "failed");
  expect((await services.json("reader", "GET", wrongPath))["error"]).toContain(
    "the query engine says: line 1:1: so it is",
  );
});

test("the command line adds, lists, tests and removes them, and sends a query", async () => {
  trino.answers.set("SELECT answer", ANSWER);
  const env = { ENGINE_SERVER_URL: services.url, ENGINE_TOKEN: services.tokens.get("admin") ?? "" };
  const engine = async (...args: string[]) => await runHere(args, { env });
  const added = await engine("query-engine", "add", "other", "--url", trino.url, "--catalog", "lake", "--user", "me");
  expect(added).toMatchObject({ code: 0, stdout: expect.stringContaining("query engine other named") as unknown });
  expect((await engine("query-engine", "list")).stdout).toMatch(/other +trino +http:\/\/127\.0\.0\.1:\d+ +lake +me/);
  expect((await engine("query-engine", "test", "other")).stdout).toMatch(/^other answered in \d+ ms\n$/);
  const answer = await engine("sql", "--run-on", "other", "-o", "ndjson", "SELECT answer");
  expect(answer.stdout.split("\n")).toHaveLength(3);
  expect(trino.requests.some(({ headers }) => headers["x-trino-user"] === "me")).toBe(true);
  expect((await engine("query-engine", "remove", "other")).stdout).toBe("query engine other is removed\n");
  const gone = await engine("query-engine", "test", "other");
  expect(gone.code).not.toBe(0);
  expect(gone.stderr).toContain('there is no query engine "other"; there are: trino');
});
