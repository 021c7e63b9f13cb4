import { randomUUID } from "node:crypto";
import { createConnection } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../../src/core/waiting.test-kit.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";

/** Queries that run: who sees them, how far they are, and how they are ended. */
const ADMIN = "admin-token-of-the-test";
const ANN = "anns-token-of-the-test";
const BOB = "bobs-token-of-the-test";
const NEVER = "SELECT sum(hash(range)) AS n FROM range(1000000000000)";

let engine: Engine;
let remove: () => Promise<void>;
beforeAll(async () => {
  const temporary = await temporaryHome();
  remove = temporary.remove;
  const env = {
    ENGINE_AUTH_TOKENS: `${ADMIN}:admin,${ANN}:write,${BOB}:read`,
    ENGINE_SANDBOX_RUNTIME: "off",
    ENGINE_QUERY_WORKERS: "3",
  };
  engine = await startEngine({ home: temporary.home, env });
  for (const database of ["default", "other"]) {
    const headers = { "X-Database": database, "X-Table": "t" };
    const rows = Array.from({ length: 100 }, (_, n) => `{"n":"${n}"}`).join("\n");
    expect((await ask("/v1/ingest", { token: ADMIN, body: rows, headers })).status).toBe(200);
  }
}, 120_000);
afterAll(async () => {
  await engine.stop();
  await remove();
});

type Asked = { token?: string; method?: string; headers?: Record<string, string>; body?: string; signal?: AbortSignal };

async function ask(path: string, { token = ANN, method, headers = {}, body, signal }: Asked = {}): Promise<Response> {
  return await fetch(engine.url + path, {
    method: method ?? (body === undefined ? "GET" : "POST"),
    headers: { Authorization: `Bearer ${token}`, ...headers },
    ...(body !== undefined && { body }),
    ...(signal && { signal }),
  });
}

type Query = Record<string, unknown> & { id: string; text: string };
type Queries = { queries: Query[]; node: { id: string; name: string }; silent: unknown[] };

async function listed(token: string, query = ""): Promise<Query[]> {
  const answer = await ask(`/v1/queries${query}`, { token });
  expect(answer.status).toBe(200);
  const { queries, silent } = (await answer.json()) as Queries;
  expect(silent).toEqual([]);
  return queries;
}

async function failureOf(answer: Response): Promise<{ status: number; code: string; message: string }> {
  const { error } = (await answer.json()) as { error: { code: string; message: string } };
  return { status: answer.status, code: error.code, message: error.message };
}

async function isIn(stage: string, id: string, token?: string): Promise<boolean> {
  const queries = await listed(token ?? ANN, "?state=running");
  return queries.some((query) => query.id === id && query["stage"] === stage);
}

/** A query that goes on until it is ended, and runs by now. */
async function begin(id: string, asked: Asked = {}): Promise<{ answer: Promise<Response> }> {
  const headers = { "X-Engine-Query-ID": id, ...asked.headers };
  const answer = ask("/v1/query", { body: NEVER, ...asked, headers });
  answer.catch(() => {});
  await eventually(() => isIn("scan", id, asked.token));
  return { answer };
}

const end = (id: string, token = ANN): Promise<Response> => ask(`/v1/queries/${id}`, { token, method: "DELETE" });

describe("the id of a query", () => {
  test("is the client's, or made for it, and is said with answers and errors", async () => {
    const id = randomUUID();
    const own = await ask("/v1/query", { body: "SELECT 1", headers: { "X-Engine-Query-ID": id.toUpperCase() } });
    expect([own.status, own.headers.get("x-engine-query-id")]).toEqual([200, id]);
    const made = await ask("/v1/query?q=SELECT+1");
    expect(made.headers.get("x-engine-query-id")).toMatch(/^[0-9a-f-]{36}$/);
    const wrong = await ask("/v1/query", { body: "SELECT nothing", headers: { "X-Engine-Query-ID": id } });
    expect([wrong.status, wrong.headers.get("x-engine-query-id")]).toEqual([400, id]);
    const kql = { "X-Engine-Query-ID": id, "Content-Type": "application/x-kql" };
    expect((await ask("/v1/query", { body: "t | count", headers: kql })).headers.get("x-engine-query-id")).toBe(id);
    expect(await listed(ANN, "?state=ended")).toContainEqual(expect.objectContaining({ id, language: "kql" }));
  });

  test("is refused when it is none", async () => {
    for (const id of ["", "1", "x".repeat(36), `${randomUUID()}0`, `{${randomUUID()}}`, "../../../etc/passwd"]) {
      const answer = await ask("/v1/query", { body: "SELECT 1", headers: { "X-Engine-Query-ID": id } });
      expect([id, answer.status]).toEqual([id, 400]);
      expect(answer.headers.get("x-engine-query-id")).toBeNull();
    }
    for (const id of ["1", "%0d%0aX-Evil:%201", "..%2f..%2fetc", "x".repeat(5_000)]) {
      expect([id, (await end(id)).status]).toEqual([id, 400]);
      expect([id, (await ask(`/v1/queries/${id}`)).status]).toEqual([id, 400]);
    }
  });

  test("is of one running query of its caller, and nobody else's", async () => {
    const id = randomUUID();
    const anns = await begin(id);
    const again = await ask("/v1/query", { body: "SELECT 1", headers: { "X-Engine-Query-ID": id } });
    expect(await failureOf(again)).toMatchObject({ status: 409, code: "conflict" });
    // To others it is an id like any other.
    const others = await ask("/v1/query", { token: BOB, body: "SELECT 1", headers: { "X-Engine-Query-ID": id } });
    expect(others.status).toBe(200);
    expect((await ask(`/v1/queries/${id}`)).status).toBe(200);
    expect((await end(id, BOB)).status).toBe(204);
    expect(await (await ask(`/v1/queries/${id}`)).json()).toMatchObject({ state: "running", is_own: true });
    expect((await end(id)).status).toBe(204);
    expect((await anns.answer).status).toBe(499);
    const reused = await ask("/v1/query", { body: "SELECT 1", headers: { "X-Engine-Query-ID": id } });
    expect(reused.status).toBe(200);
  });
});

describe("queries that run", () => {
  test("say whose they are, where they are, and how much they take", async () => {
    const id = randomUUID();
    const { answer } = await begin(id, { headers: { "X-Database": "other" } });
    const found = (await (await ask(`/v1/queries/${id}`)).json()) as Query;
    expect(found).toMatchObject({
      id,
      database: "other",
      text: NEVER,
      language: "sql",
      is_own: true,
      state: "running",
      stage: "scan",
      outcome: "running",
      bytes_planned: 0,
      bytes_ready: 0,
      rows: null,
    });
    expect(found["elapsed_ms"]).toBeGreaterThan(0);
    expect(found["node"]).toMatchObject({ id: expect.stringMatching(/^[0-9a-f-]{36}$/) as unknown });
    await eventually(async () => ((await (await ask(`/v1/queries/${id}`)).json()) as Query)["spill_bytes"] === 0);
    await end(id);
    expect((await answer).status).toBe(499);
    expect(await (await ask(`/v1/queries/${id}`)).json()).toMatchObject({
      state: "ended",
      stage: null,
      outcome: "cancelled",
    });
  });

  test("are shown to their caller and to admins, with their text", async () => {
    const id = randomUUID();
    const marker = `/* ${randomUUID()} */ ${NEVER}`;
    const { answer } = await begin(id, { body: marker });
    expect(JSON.stringify(await listed(BOB))).not.toContain(id);
    expect((await ask(`/v1/queries/${id}`, { token: BOB })).status).toBe(404);
    expect(await listed(ADMIN, "?state=running")).toContainEqual(
      expect.objectContaining({ id, text: marker, is_own: false }),
    );
    expect(JSON.stringify(await listed(ADMIN, "?scope=mine"))).not.toContain(id);
    expect(JSON.stringify(await listed(ANN, "?database=other"))).not.toContain(id);
    expect(JSON.stringify(await listed(ANN, "?state=ended"))).not.toContain(id);
    expect(JSON.stringify(await listed(ANN, "?limit=0"))).toContain(id);
    // Not even that there is such a query.
    const unknown = randomUUID();
    expect((await failureOf(await end(id, BOB))).message.replace(id, "")).toBe(
      (await failureOf(await end(unknown, BOB))).message.replace(unknown, ""),
    );
    expect((await end(id, ADMIN)).status).toBe(204);
    expect(await failureOf(await answer)).toMatchObject({
      status: 499,
      code: "cancelled",
      message: expect.stringContaining("ended by") as unknown,
    });
    const entries = async (): Promise<Record<string, unknown>[]> => {
      const answer = await ask("/v1/admin/audit?action=query.end&limit=10", { token: ADMIN });
      return ((await answer.json()) as { entries: Record<string, unknown>[] }).entries;
    };
    await eventually(async () => (await entries()).some(({ target }) => target === id));
    const entry = (await entries()).find(({ target }) => target === id);
    expect(entry).toMatchObject({ outcome: "ok", details: { database: "default" } });
    expect(JSON.stringify(entry)).not.toContain(marker);
  });

  test("free their process at once when they are ended, and can be ended in a row", async () => {
    for (let i = 0; i < 8; i++) {
      const id = randomUUID();
      const { answer } = await begin(id);
      expect((await end(id)).status).toBe(204);
      expect((await answer).status).toBe(499);
      // What is over stays so.
      expect((await end(id)).status).toBe(204);
    }
    expect((await ask("/v1/query", { body: "SELECT 1" })).status).toBe(200);
  });

  test("can be ended while their answer is read, or is not", async () => {
    const id = randomUUID();
    const head = [
      "POST /v1/query HTTP/1.1",
      "Host: localhost",
      `Authorization: Bearer ${ANN}`,
      `X-Engine-Query-ID: ${id}`,
    ];
    const body = "SELECT repeat('x', 1000) AS x FROM range(200000)";
    const socket = createConnection(Number(new URL(engine.url).port), "127.0.0.1");
    socket.write(`${[...head, `Content-Length: ${body.length}`].join("\r\n")}\r\n\r\n${body}`);
    socket.pause();
    await eventually(() => isIn("stream", id));
    expect((await end(id, ADMIN)).status).toBe(204);
    const expected = { state: "ended", outcome: "cancelled", ended_by: expect.stringMatching(/./) as unknown };
    const record = (await (await ask(`/v1/queries/${id}`)).json()) as Query;
    expect(record).toMatchObject(expected);
    expect(record["ended_by"]).not.toBe(record["subject"]);
    const kept = { body: `SELECT ended_by FROM system.queries WHERE query_id = '${id}'` };
    expect(await (await ask("/v1/query", kept)).text()).toContain(JSON.stringify(record["ended_by"]));
    // Read on, it is torn.
    let received = "";
    socket.on("data", (piece: Buffer) => (received = received.slice(-5) + piece.toString("latin1").slice(-5)));
    socket.resume();
    await new Promise((resolve) => socket.once("close", resolve));
    expect(received.endsWith("0\r\n\r\n")).toBe(false);
  });

  test("refuse parameters that mean nothing", async () => {
    for (const query of ["?limit=-1", "?limit=1001", "?limit=x", "?scope=others", "?state=no", "?node=other"]) {
      expect([query, (await ask(`/v1/queries${query}`)).status]).toEqual([query, 400]);
    }
    expect((await fetch(`${engine.url}/v1/queries`)).status).toBe(401);
  });

  test("do not pile up, however many ids there are", async () => {
    for (let round = 0; round < 10; round++) {
      const answers = await Promise.all(
        Array.from({ length: 20 }, () =>
          ask("/v1/query", { token: BOB, body: "SELECT 1", headers: { "X-Engine-Query-ID": randomUUID() } }),
        ),
      );
      await Promise.all(answers.map((answer) => answer.text()));
    }
    await eventually(async () => (await listed(BOB, "?state=running")).length === 0);
    expect((await listed(BOB, "?limit=7")).length).toBe(7);
  });
});

describe("a limit of rows over HTTP", () => {
  const limited = (limit: string, headers: Record<string, string> = {}): Promise<Response> =>
    ask("/v1/query", { body: "SELECT n FROM t", headers: { "X-Engine-Row-Limit": limit, ...headers } });

  test("says how many rows are there, and whether there are more", async () => {
    for (const [limit, rows, truncated] of [
      ["0", "0", "true"],
      ["99", "99", "true"],
      ["100", "100", null],
      ["101", "100", null],
      ["9007199254740990", "100", null],
    ]) {
      const answer = await limited(limit ?? "");
      const headers = ["x-engine-rows", "x-engine-truncated"].map((name) => answer.headers.get(name));
      expect([limit, answer.status, ...headers]).toEqual([limit, 200, rows, truncated]);
    }
    const byAddress = await ask("/v1/query?q=FROM+t", { headers: { "X-Engine-Row-Limit": "1" } });
    expect(byAddress.headers.get("x-engine-truncated")).toBe("true");
  });

  test("is a number of rows", async () => {
    for (const limit of ["-1", "1.5", "1e3", "x", "", "9007199254740993", "99999999999999999999", "0x10", "1,2"]) {
      const answer = await limited(limit);
      expect([limit, (await failureOf(answer)).code]).toEqual([limit, "invalid_header"]);
    }
  });

  test("can be read by pages of other origins, as the id can", async () => {
    const answer = await limited("1", { Origin: "https://pages.example" });
    const exposed = answer.headers.get("access-control-expose-headers") ?? "";
    expect(exposed).toContain("X-Engine-Truncated");
    expect(exposed).toContain("X-Engine-Query-ID");
    const preflight = await fetch(`${engine.url}/v1/query`, {
      method: "OPTIONS",
      headers: { Origin: "https://pages.example", "Access-Control-Request-Method": "POST" },
    });
    const allowed = preflight.headers.get("access-control-allow-headers") ?? "";
    expect(allowed).toContain("X-Engine-Row-Limit");
    expect(allowed).toContain("X-Engine-Query-ID");
  });
});
