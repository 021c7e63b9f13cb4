import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sharedTestServer, type TestDatabases } from "../../src/catalog/postgres/postgres.test-kit.ts";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { Remembering } from "../api/recall.test-kit.ts";
import { startServices, type RunningServices } from "../edge/run.test-kit.ts";
import { startEngine, temporaryHome } from "../support/engine.ts";

/** Two servers and an edge before them, on one PostgreSQL: whoever is asked knows what any of them took. */
describe.skipIf(lacks("PostgreSQL"))("memories of a cluster", () => {
  const closers: (() => Promise<unknown>)[] = [];
  let postgres: TestDatabases;
  let catalog: string;
  let edge: RunningServices;
  let nodes: Remembering[];
  let second: Remembering;

  beforeAll(async () => {
    postgres = await sharedTestServer();
    closers.push(() => postgres.stop());
    catalog = await postgres.createDatabase();
    const { home, remove } = await temporaryHome();
    closers.push(remove);
    const start = async () => {
      const env = { ENGINE_ROLES: "query,ingest", ENGINE_CATALOG_URL: catalog };
      const engine = await startEngine({ home, env });
      closers.push(() => engine.stop("SIGKILL"));
      return { url: engine.url, memory: Remembering.open(engine.url) };
    };
    const first = await start();
    await first.memory.save([{ id: "old", content: "An old boat" }]);
    const later = await start();
    const peers = `${first.url},${later.url}`;
    edge = await startServices({
      ENGINE_HOME: home,
      ENGINE_ROLES: "edge",
      ENGINE_QUERY_PEERS: peers,
      ENGINE_INGEST_PEERS: peers,
    });
    closers.push(() => edge.stop());
    second = later.memory;
    nodes = [first.memory, second, Remembering.open(edge.url)];
  });
  afterAll(async () => {
    for (const close of closers.toReversed()) await close();
  });

  test("a node that comes later has its index before it is asked", async () => {
    const index = async () => (await second.done("GET", "overview"))["index"];
    await expect.poll(index).toMatchObject({ state: "ready", commits: 1 });
    expect(await second.texts("boat")).toEqual(["An old boat"]);
  });

  test("each node finds at once what another one has saved, changed and erased", async () => {
    const writers = nodes.map(async (writer, w) => {
      for (let i = 0; i < 4; i++) {
        const id = `z${"bcd"[w]}${"fghj"[i]}x`;
        await writer.save([{ id, content: `The boat ${id} is red` }]);
        const reader = nodes[(w + i) % nodes.length] ?? writer;
        expect(await reader.texts(id)).toEqual([`The boat ${id} is red`]);
        await writer.done("POST", `nodes/${id}/invalidate`);
        expect(await reader.texts(id)).toEqual([]);
        expect(await reader.texts(id, { include_invalidated: true })).toHaveLength(1);
        if (i === 0) continue;
        await reader.done("DELETE", `nodes/${id}`);
        expect(await writer.texts(id, { include_invalidated: true })).toEqual([]);
      }
    });
    await Promise.all(writers);
    // All rank alike.
    const answers = await Promise.all(nodes.map((node) => node.recall("boat", { include_invalidated: true })));
    const ranked = answers.map(({ memories }) => memories.map(({ id, version }) => [id, version]));
    expect(ranked[0]).toHaveLength(4);
    expect(ranked).toEqual(nodes.map(() => ranked[0]));
  });

  test("a question that waits for an index in vain is told when to come back", async () => {
    await fetch(`${edge.url}/v1/admin/databases/late/tables/t`, { method: "POST" });
    const late = Remembering.open(edge.url, "late");
    await late.save(["A late boat"]);
    const table = "engine.memory_records";
    const lock = `LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`;
    // Ended below.
    const held = postgres.query(catalog, `DO $$ BEGIN ${lock}; PERFORM pg_sleep(60); END $$`).catch(() => undefined);
    const locks = `FROM pg_locks WHERE relation = '${table}'::regclass AND mode = 'AccessExclusiveLock' AND granted`;
    await expect.poll(() => postgres.query(catalog, `SELECT pid ${locks}`)).toHaveLength(1);
    try {
      const answer = await fetch(`${edge.url}/v1/agent/memory/query`, {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-Database": "late" },
        body: '{"query":"boat"}',
      });
      expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "5"]);
      expect(await answer.json()).toMatchObject({ error: { code: "unavailable" } });
    } finally {
      await postgres.query(catalog, `SELECT pg_terminate_backend(pid) ${locks}`);
      await held;
    }
    expect(await late.texts("boat")).toEqual(["A late boat"]);
  });

  test("an edge tells what a node has refused", async () => {
    const refused = { httpStatus: 400, error: { code: "bad_request_body" } };
    expect(await nodes[2]?.ask("POST", "query", { query: "" })).toMatchObject(refused);
  });
});
