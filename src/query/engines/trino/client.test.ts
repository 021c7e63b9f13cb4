import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "../../../core/clock.ts";
import { silentLog } from "../../../core/log.ts";
import type { Statement } from "../port.ts";
import { TrinoClient } from "./client.ts";
import { bigints, failure, scriptedTrino, type ScriptedTrino } from "./scripted-trino.test-kit.ts";

let trino: ScriptedTrino;
beforeEach(async () => {
  trino = await scriptedTrino();
});
afterEach(() => trino.close());

const SECRET = { header: "Authorization", value: "Bearer secret-of-the-test" };

function client(url = trino.url): TrinoClient {
  return new TrinoClient({ place: { url, user: "me", secret: SECRET }, clock: systemClock, log: silentLog });
}

function statement(text: string, signal = new AbortController().signal): Statement {
  return { text, catalog: "lake", schema: "web", onBehalfOf: "ann é", requestId: "r1", signal };
}

async function rowsOf(text: string, asked = client()): Promise<unknown[]> {
  const { pages } = await asked.begin(statement(text));
  const rows: unknown[] = [];
  for await (const page of pages) rows.push(...page.rows);
  return rows;
}

const asked = () => trino.requests.map(({ method, path, body }) => `${method} ${path}${body === "" ? "" : ` ${body}`}`);

test("a text runs between the beginning of a transaction that only reads and its end, for whom it says", async () => {
  trino.answers.set("SELECT a", [{}, { ...bigints("a"), data: [[1], [null]] }, { ...bigints("a"), data: [[3]] }, {}]);
  expect(await rowsOf("SELECT a")).toEqual([["1"], [undefined], ["3"]]);
  expect(asked()).toEqual([
    "POST /v1/statement START TRANSACTION READ ONLY",
    "GET /v1/statement/executing/q1/y/1",
    "POST /v1/statement SELECT a",
    ...[1, 2, 3, 4].map((number) => `GET /v1/statement/executing/q2/y/${number}`),
    "POST /v1/statement ROLLBACK",
    "GET /v1/statement/executing/q3/y/1",
  ]);
  const headers = trino.requests[2]?.headers ?? {};
  expect(headers).toMatchObject({
    authorization: "Bearer secret-of-the-test",
    "x-trino-user": "me",
    "x-trino-catalog": "lake",
    "x-trino-schema": "web",
    "x-trino-source": "engine",
    "x-trino-client-info": "ann%20%C3%A9",
    "x-trino-trace-token": "r1",
    "x-trino-transaction-id": "t1",
    "x-trino-client-capabilities": "PARAMETRIC_DATETIME",
  });
});

test("integers keep all their digits", async () => {
  const page =
    '"columns":[{"name":"a","type":"bigint","typeSignature":{"rawType":"bigint"}}],"data":[[9007199254740993],[1]]';
  trino.answers.set("SELECT big", (_asked, response) => {
    response.end(`{"id":"q","stats":{"state":"FINISHED"},${page}}`);
  });
  expect(await rowsOf("SELECT big")).toEqual([["9007199254740993"], ["1"]]);
});

test("what goes wrong there is said in its words", async () => {
  const cases: [string, string, string, RegExp][] = [
    ["SYNTAX_ERROR", "USER_ERROR", "invalid_query", /^the query engine says: so it is$/],
    ["READ_ONLY_VIOLATION", "USER_ERROR", "invalid_query", /^the query writes; query engines are read-only from here$/],
    ["USER_CANCELED", "USER_ERROR", "engine_failed", /^the query was ended at the query engine$/],
    [
      "EXCEEDED_TIME_LIMIT",
      "INSUFFICIENT_RESOURCES",
      "engine_failed",
      /^the query engine says: so it is \(EXCEEDED_TIME/,
    ],
    ["GENERIC_INTERNAL_ERROR", "INTERNAL_ERROR", "engine_failed", /^the query engine says: so it is \(GENERIC/],
  ];
  for (const [name, type, code, message] of cases) {
    trino.answers.set("SELECT x", [failure(name, type, "so it is")]);
    const thrown = await rowsOf("SELECT x").catch((error: unknown) => error);
    expect(thrown).toMatchObject({ code, message: expect.stringMatching(message) as unknown });
    expect(asked().at(-2)).toBe("POST /v1/statement ROLLBACK");
  }
});

test("the secret goes nowhere else, whatever an answer names as the next address", async () => {
  const elsewhere: string[] = [];
  const other = createServer((request, response) => {
    elsewhere.push(String(request.headers.authorization));
    response.end("{}");
  });
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  const { port } = other.address() as AddressInfo;
  const own = new URL(trino.url).port;
  for (const nextUri of [
    `http://127.0.0.1:${port}/v1/statement/x`,
    `//127.0.0.1:${port}/x`,
    `http://127.0.0.1:${own}//127.0.0.1:${port}/x`,
    `x:@127.0.0.1:${port}/x`,
    `x:.example.com/x`,
    `data:@127.0.0.1:${port}/x`,
    `javascript:@127.0.0.1:${port}/`,
    "not an address \0",
    "",
  ]) {
    trino.answers.set("SELECT next", (_asked, response) => {
      response.end(JSON.stringify({ id: "q", stats: { state: "RUNNING" }, nextUri }));
    });
    const outcome = await rowsOf("SELECT next").then(
      () => "rows",
      (error: unknown) => (error as { code: string }).code,
    );
    expect(["rows", "engine_failed"]).toContain(outcome);
  }
  trino.answers.set("SELECT moved", (_asked, response) => {
    response.writeHead(307, { Location: `http://127.0.0.1:${port}/v1/statement` }).end();
  });
  await expect(rowsOf("SELECT moved")).rejects.toThrow("the query engine answers 307");
  expect(elsewhere).toEqual([]);
  other.closeAllConnections();
  other.close();
});

test("a busy engine is asked again, a request that may have arrived is not sent twice", async () => {
  let busy = 2;
  trino.answers.set("SELECT busy", (_asked, response) => {
    if (busy-- > 0) response.writeHead(503).end();
    else response.end(JSON.stringify({ id: "q", stats: { state: "FINISHED" }, ...bigints("a"), data: [[1]] }));
  });
  expect(await rowsOf("SELECT busy")).toEqual([["1"]]);
  trino.answers.set("SELECT torn", (_asked, response) => void response.destroy());
  await expect(rowsOf("SELECT torn")).rejects.toThrow(/^the query engine does not answer: /);
  expect(asked().filter((line) => line.endsWith("SELECT torn"))).toHaveLength(1);
});

test("whatever else answers there is no Trino", async () => {
  const said = async (respond: (body: string) => [number, string], text: string): Promise<string> => {
    trino.answers.set(text, ({ body }, response) => {
      const [status, sent] = respond(body);
      response.writeHead(status).end(sent);
    });
    return await rowsOf(text).then(
      () => "rows",
      (error: Error) => error.message,
    );
  };
  expect(await said(() => [200, "<html>"], "a")).toBe(
    "the server at the query engine's address does not speak the Trino protocol",
  );
  expect(await said(() => [200, '{"id":"../../x","stats":{"state":"F"}}'], "b")).toBe(
    "the server at the query engine's address does not speak the Trino protocol",
  );
  expect(await said(() => [401, "who are you"], "c")).toBe(
    "the query engine refuses the credential that it is sent (401)",
  );
  expect(await said(() => [404, "no\r\nsuch\x1b[31m path"], "d")).toBe(
    "the query engine answers 404: no such [31m path",
  );
  const closed = client("http://127.0.0.1:1");
  await expect(rowsOf("SELECT 1", closed)).rejects.toThrow(/^the query engine does not answer: /);
});

test("who stops reading, or is aborted, has the query there ended", async () => {
  trino.answers.set("SELECT long", [{ ...bigints("a"), data: [[1]] }, {}, {}, {}]);
  const { queryId, pages } = await client().begin(statement("SELECT long"));
  let seen = 0;
  for await (const page of pages) if ((seen += page.rows.length) === 1) break;
  expect(trino.ended).toEqual([queryId]);

  const stop = new AbortController();
  const run = await client().begin(statement("SELECT long", stop.signal));
  const reading = (async () => {
    for await (const _page of run.pages) stop.abort(new Error("nobody waits"));
  })();
  await expect(reading).rejects.toThrow("nobody waits");
  expect(trino.ended).toEqual([queryId, run.queryId]);

  // One that nobody ever read, and one by its id alone.
  const unread = await client().begin(statement("SELECT long"));
  await unread.pages[Symbol.asyncIterator]().return?.();
  await client().cancel("q77");
  expect(trino.ended).toEqual([queryId, run.queryId, unread.queryId, "q77"]);
});

test("nothing is sent to an engine that begins no transaction", async () => {
  const refusing = createServer((_request, response) => {
    response.end(JSON.stringify({ id: "q", stats: { state: "FINISHED" } }));
  });
  await new Promise<void>((resolve) => refusing.listen(0, "127.0.0.1", resolve));
  const { port } = refusing.address() as AddressInfo;
  const began = client(`http://127.0.0.1:${port}`).begin(statement("DROP TABLE t"));
  await expect(began).rejects.toThrow(
    "the query engine did not start a read-only transaction, so the query was not sent",
  );
  refusing.closeAllConnections();
  refusing.close();
});
