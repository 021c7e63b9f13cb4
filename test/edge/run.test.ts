import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { ask, startPeer, stopAll } from "./edge.test-kit.ts";
import { loadConfig } from "../../src/config/load.ts";
import { startServices } from "./run.test-kit.ts";
import { placesOf } from "../../roles/run.ts";

const closers: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
  await stopAll();
});

async function run(env: Record<string, string>): Promise<{ url: string; names: string[] }> {
  const home = await mkdtemp(join(tmpdir(), "engine-roles-"));
  closers.push(() => rm(home, { recursive: true, force: true, maxRetries: 3 }));
  const services = await startServices({ ...env, ENGINE_HOME: home });
  closers.push(() => services.stop());
  return services;
}

const QUERY = { body: "SELECT 40 + 2 AS n" };
/** What it answers: the process has run it. */
const ANSWER = '{"n":42}';
const INGEST = { headers: { "x-table": "t" }, body: '{"body":"x"}\n' };
const statusOf = async (url: string, path: string, options: Parameters<typeof ask>[1]) =>
  (await ask(`${url}${path}`, options)).status;

test("edge,query answers queries itself and forwards ingest", async () => {
  const peer = await startPeer();
  const { url, names } = await run({ ENGINE_ROLES: "edge,query", ENGINE_INGEST_PEERS: peer.url });
  expect(names).toEqual(["heart-beat", "ingest peers", "recall", "mcp", "agent", "sandbox gateways", "http"]);
  expect((await ask(`${url}/v1/query`, QUERY)).body.toString()).toContain(ANSWER);
  expect((await ask(`${url}/v1/catalog/schema`, { method: "GET" })).body.toString()).toContain('"databases"');
  expect(peer.begun).toBe(0);
  expect((await ask(`${url}/v1/ingest`, INGEST)).body.toString()).toBe("ok");
  const logs = { headers: { "content-type": "application/x-protobuf" }, body: "" };
  expect((await ask(`${url}/v1/logs`, logs)).body.toString()).toBe("ok");
  expect(peer.seen.map(({ url }) => url)).toEqual(["/v1/ingest", "/v1/logs"]);
});

test("an edge answers itself what it has no peers for", async () => {
  const peer = await startPeer();
  const { url, names } = await run({ ENGINE_ROLES: "edge", ENGINE_QUERY_PEERS: peer.url });
  expect(names).toEqual(["heart-beat", "query peers", "http"]);
  expect((await ask(`${url}/v1/query`, QUERY)).body.toString()).toBe("ok");
  expect((await ask(`${url}/v1/ingest`, INGEST)).body.toString()).toContain('"rows_ingested":1');
});

test.each([
  ["query", true, false, false],
  ["ingest", false, true, false],
  ["query,ingest", true, true, false],
  ["compaction", false, false, true],
  ["worker", false, false, true],
  ["all_in_one", true, true, true],
])("%s has its own routes and services, and health and metrics", async (roles, queries, ingests, background) => {
  const { url, names } = await run({ ENGINE_ROLES: roles });
  // The door opens last.
  expect(names.at(-1)).toBe("http");
  // Whoever opens a catalog says there that it runs.
  expect(names).toContain("heart-beat");
  expect(names.length > 2).toBe(background || queries);
  // Nodes connect to it, or a node in it has to know to whom.
  expect(names.includes("sandbox gateways")).toBe(queries || roles === "worker");
  expect(names.includes("recall")).toBe(queries);
  expect(names.includes("ledger sweep")).toBe(background && roles !== "worker");
  const isWorker = roles === "worker" || roles === "all_in_one";
  expect([names.includes("job sweep"), names.includes("schedules")]).toEqual([isWorker, isWorker]);
  expect(await statusOf(url, "/v1/jobs", { method: "GET" })).toBe(queries ? 200 : 404);
  const queried = (await ask(`${url}/v1/query`, QUERY)).body.toString();
  expect(queried).toContain(queries ? ANSWER : "there is no route");
  expect(await statusOf(url, "/v1/catalog/schema", { method: "GET" })).toBe(queries ? 200 : 404);
  expect(await statusOf(url, "/v1/ingest", INGEST)).toBe(ingests ? 200 : 404);
  expect(await statusOf(url, "/health", { method: "GET" })).toBe(200);
  expect((await ask(`${url}/metrics`, { method: "GET" })).body.toString()).toContain("engine_process_cpu");
});

test.each([
  ["query", true],
  ["all_in_one", true],
  ["edge,query", true],
  ["edge", false],
  ["ingest", false],
  ["committer", false],
])("%s serves Arrow Flight: %s", async (roles, serves) => {
  const { names } = await run({ ENGINE_ROLES: roles, ENGINE_GRPC_ADDR: "127.0.0.1:0" });
  expect(names.includes("Arrow Flight")).toBe(serves);
});

test("the log says where the data is, and what is not used is not named", () => {
  const places = (env: Record<string, string>) => placesOf(loadConfig({ env: { ENGINE_HOME: "/h", ...env } }));
  const s3 = { ENGINE_OBJSTORE_BUCKET: "events", ENGINE_PATH_PREFIX: "prod/eu" };
  expect(places({})).toEqual({ catalog: "/h/catalog.db", data: "/h/data" });
  expect(places(s3)).toEqual({ catalog: "/h/catalog.db", data: "s3://events/prod/eu" });
  expect(places({ ...s3, ENGINE_LOCAL_MODE: "true", ENGINE_LOCAL_DATA: "/d" }).data).toBe("/d");
  const secret = "postgres://user:hunter2@db/engine";
  expect(places({ ENGINE_CATALOG_URL: secret }).catalog).toBe("postgres");
});
