import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sharedTestServer, type TestDatabases } from "../../src/catalog/postgres/postgres.test-kit.ts";
import { signalProcess } from "../../src/core/signals.test-kit.ts";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { eventually, freePort } from "../../src/core/waiting.test-kit.ts";
import { signInWith } from "../api/web.test-kit.ts";
import { startEngine, type Engine } from "../support/engine.ts";

/** Queries of several servers on one catalog: listed and ended through whichever is asked, an edge included. */
const ADMIN = "admin-token-of-the-test";
const ANN = "anns-token-of-the-test";
const BOB = "bobs-token-of-the-test";
const NEVER = "SELECT sum(hash(range)) AS n FROM range(1000000000000)";

type Query = {
  id: string;
  state: string;
  stage: string | null;
  node: { id: string };
  is_own: boolean;
  outcome: string;
};
type Sent = { method?: string; body?: string; headers?: Record<string, string> };

type Queries = { queries: Query[]; node: { id: string; name: string }; silent: { id: string; reason: string }[] };

describe.skipIf(lacks("PostgreSQL"))("queries of several servers", () => {
  let databases: TestDatabases;
  let folder: string;
  let one: Engine;
  let two: Engine;
  let edge: Engine;
  let catalogUrl: string;
  const engines: Engine[] = [];

  async function start(name: string, env: Record<string, string>, port = 0): Promise<Engine> {
    const auth = { ENGINE_AUTH_TOKENS: `${ADMIN}:admin,${ANN}:write,${BOB}:read`, ENGINE_SANDBOX_RUNTIME: "off" };
    const engine = await startEngine({ home: join(folder, name), env: { ...auth, ...env }, port });
    engines.push(engine);
    return engine;
  }

  beforeAll(async () => {
    databases = await sharedTestServer();
    folder = await mkdtemp(join(tmpdir(), "engine-queries-"));
    catalogUrl = await databases.createDatabase();
    const shared = {
      ENGINE_CATALOG_URL: catalogUrl,
      ENGINE_LOCAL_DATA: join(folder, "data"),
      ENGINE_ROLES: "query,ingest",
    };
    one = await start("one", shared);
    two = await start("two", shared);
    edge = await start("edge", { ENGINE_ROLES: "edge", ENGINE_QUERY_PEERS: one.url, ENGINE_INGEST_PEERS: one.url });
    const headers = { Authorization: `Bearer ${ANN}`, "X-Table": "t" };
    expect((await fetch(`${one.url}/v1/ingest`, { method: "POST", body: '{"a":"1"}\n', headers })).status).toBe(200);
  }, 180_000);
  afterAll(async () => {
    await Promise.all(engines.map((engine) => engine.stop("SIGKILL")));
    await rm(folder, { recursive: true, force: true });
    await databases.stop();
  });

  const ask = (at: Engine, path: string, token = ANN, more: Sent = {}): Promise<Response> =>
    fetch(at.url + path, { ...more, headers: { Authorization: `Bearer ${token}`, ...more.headers } });

  async function listed(at: Engine, token = ANN, query = ""): Promise<Queries> {
    const answer = await ask(at, `/v1/queries${query}`, token);
    expect(answer.status).toBe(200);
    return (await answer.json()) as Queries;
  }

  /** Runs until it is ended; the server that is asked first sees it. */
  async function begin(at: Engine, seenAt: Engine): Promise<{ id: string; answer: Promise<Response> }> {
    const id = randomUUID();
    const answer = ask(at, "/v1/query", ANN, { method: "POST", body: NEVER, headers: { "X-Engine-Query-ID": id } });
    answer.catch(() => {});
    const isSeen = ({ queries }: Queries): boolean =>
      queries.some((query) => query.id === id && query.stage === "scan");
    await eventually(async () => isSeen(await listed(seenAt)));
    return { id, answer };
  }

  test("are listed by each of them, to who may see them", async () => {
    const { id, answer } = await begin(two, one);
    for (const at of [one, two, edge]) {
      const own = await listed(at, ANN, "?state=running");
      expect(own.silent).toEqual([]);
      expect(own.queries).toMatchObject([{ id, state: "running", is_own: true }]);
      expect((await listed(at, ADMIN, "?state=running")).queries).toMatchObject([{ id, is_own: false }]);
      expect(await listed(at, BOB)).toMatchObject({ queries: [], silent: [] });
      expect((await ask(at, `/v1/queries/${id}`)).status).toBe(200);
      expect((await ask(at, `/v1/queries/${id}`, BOB)).status).toBe(404);
      expect((await ask(at, `/v1/queries/${id}`, BOB, { method: "DELETE" })).status).toBe(404);
    }
    const ids = [await listed(one), await listed(two)].map(({ node }) => node.id);
    expect(new Set(ids).size).toBe(2);
    expect((await listed(one, ANN, "?node=self&state=running")).queries).toEqual([]);
    expect((await ask(one, `/v1/queries/${id}`, ANN, { method: "DELETE" })).status).toBe(204);
    expect((await answer).status).toBe(499);
  });

  test("are ended through each of them, and their client hears by whom", async () => {
    for (const [at, through, by] of [
      [two, one, ANN],
      [one, two, ADMIN],
      [two, edge, ADMIN],
      [edge, two, ANN],
    ] as const) {
      const { id, answer } = await begin(at, through);
      expect((await ask(through, `/v1/queries/${id}`, by, { method: "DELETE" })).status).toBe(204);
      const ended = await answer;
      expect(ended.status).toBe(499);
      expect(((await ended.json()) as { error: { message: string } }).error.message).toContain("was ended by");
      expect(await (await ask(through, `/v1/queries/${id}`)).json()).toMatchObject({ outcome: "cancelled" });
    }
    const unknown = await ask(one, `/v1/queries/${randomUUID()}`, ADMIN, { method: "DELETE" });
    expect(unknown.status).toBe(404);
  });

  test("are listed and ended by a browser that signed in at another of them", async () => {
    for (const door of [one, edge]) {
      const browser = await signInWith(door.url, "token", { token: ANN });
      const { id, answer } = await begin(two, one);
      const { status, json } = await browser.ask("GET", "/v1/queries?state=running");
      expect([status, json]).toMatchObject([200, { queries: [{ id, is_own: true }], silent: [] }]);
      // Another origin's page has the cookie sent along, and is nobody to any of them.
      const strange = { "sec-fetch-site": "same-site" };
      expect((await browser.ask("DELETE", `/v1/queries/${id}`, { headers: strange })).status).toBe(401);
      expect((await browser.ask("DELETE", `/v1/queries/${id}`)).status).toBe(204);
      expect((await answer).status).toBe(499);
    }
  });

  test("name a server that does not answer, within about a second", async () => {
    const third = await start("three", {
      ENGINE_CATALOG_URL: catalogUrl,
      ENGINE_LOCAL_DATA: join(folder, "data"),
      ENGINE_ROLES: "query",
    });
    const { id: node } = (await listed(third)).node;
    await eventually(async () => (await listed(one)).silent.length === 0);
    // It holds its connections and says nothing.
    signalProcess(third.pid, "SIGSTOP");
    const started = performance.now();
    const { silent } = await listed(one);
    expect(silent).toMatchObject([{ id: node, reason: expect.stringContaining("did not answer") as unknown }]);
    expect(performance.now() - started).toBeLessThan(10_000);
    const unknown = await ask(one, `/v1/queries/${randomUUID()}`, ADMIN, { method: "DELETE" });
    expect(unknown.status).toBe(503);
    await third.stop("SIGKILL");
    // Killed, it is named for as long as it may have missed its heart-beats, and then forgotten.
    expect((await listed(one)).silent).toMatchObject([{ id: node }]);
    await eventually(async () => (await listed(one)).silent.length === 0);
  });

  test("give no credentials to who is at an address that is another machine's own", async () => {
    const seen: (string | undefined)[] = [];
    const port = await freePort();
    const stranger: Server = createServer((request, response) => {
      seen.push(request.headers.authorization);
      response.writeHead(200, { "Content-Type": "application/json" });
      response.end('{"queries":"all of them"}');
    });
    await new Promise<void>((resolve) => void stranger.listen(port, "127.0.0.1", resolve));
    const insert = (id: string, name: string): Promise<unknown> =>
      databases.query(
        catalogUrl,
        `INSERT INTO engine.servers (id, name, roles, version, known_schema, started_at_ms, seen_at_ms, beats, url)
          VALUES ('${id}', '${name}', 'query', '0', 1000, 0, 0, 1, 'http://127.0.0.1:${port}')`,
      );
    await insert("elsewhere", "another-machine");
    expect((await listed(one, ADMIN)).silent).toMatchObject([
      { id: "elsewhere", reason: expect.stringContaining("ADVERTISE") as unknown },
    ]);
    // Where servers are is not for everybody.
    expect((await listed(one, BOB)).silent).toEqual([
      { id: "elsewhere", name: "another-machine", reason: "it did not answer" },
    ]);
    expect(seen).toEqual([]);
    await databases.query(catalogUrl, "DELETE FROM engine.servers WHERE id = 'elsewhere'");
    stranger.close();
  });
});
