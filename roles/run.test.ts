import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { ask, startPeer, stopAll } from "../src/api/edge/edge.test-kit.ts";
import { loadConfig } from "../src/config/load.ts";
import { Cleanup } from "../src/core/lifecycle.ts";
import { createLog } from "../src/core/log.ts";
import { createParts } from "./parts.ts";
import { planOf } from "./plan.ts";
import { buildServices } from "./run.ts";

const closers: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
  await stopAll();
});

/**
 * The services of a process with these roles, running in this one. They are planned for a cluster and then put on a
 * catalog of this machine, which serves one process as well.
 */
async function run(env: Record<string, string>): Promise<{ url: string; names: string[] }> {
  const home = await mkdtemp(join(tmpdir(), "engine-roles-"));
  closers.push(() => rm(home, { recursive: true, force: true, maxRetries: 3 }));
  const local = loadConfig({ env: { ...env, ENGINE_HOME: home } });
  const clustered = loadConfig({ env: { ...env, ENGINE_HOME: home, ENGINE_CATALOG_URL: "postgres://db/engine" } });
  const lines: string[] = [];
  const log = createLog("info", { write: (line: string) => void lines.push(line) });
  const cleanup = new Cleanup();
  closers.push(() => cleanup.run());
  const listen = { host: "127.0.0.1", port: 0 };
  const services = await buildServices(planOf(clustered), createParts(local, log, cleanup), listen);
  for (const service of services) {
    await service.run();
    closers.push(() => service.stop());
  }
  const url = /"url":"(http:[^"]+)"/.exec(lines.join(""))?.[1];
  if (url === undefined) throw new Error(`no address in ${lines.join("")}`);
  return { url, names: services.map(({ name }) => name) };
}

const QUERY = { body: "SELECT 40 + 2 AS n" };
/** What a query finds on a new catalog: the process has looked. */
const LOOKED = "database_not_found";
const INGEST = { headers: { "x-table": "t" }, body: '{"body":"x"}\n' };
const statusOf = async (url: string, path: string, options: Parameters<typeof ask>[1]) =>
  (await ask(`${url}${path}`, options)).status;

test("edge,query answers queries itself and forwards ingest", async () => {
  const peer = await startPeer();
  const { url, names } = await run({ ENGINE_ROLES: "edge,query", ENGINE_INGEST_PEERS: peer.url });
  expect(names).toEqual(["ingest peers", "http"]);
  expect((await ask(`${url}/v1/query`, QUERY)).body.toString()).toContain(LOOKED);
  expect((await ask(`${url}/v1/catalog/schema`, { method: "GET" })).body.toString()).toContain('"databases"');
  expect(peer.begun).toBe(0);
  expect((await ask(`${url}/v1/ingest`, INGEST)).body.toString()).toBe("ok");
  expect(peer.seen.map(({ url }) => url)).toEqual(["/v1/ingest"]);
});

test("an edge answers itself what it has no peers for", async () => {
  const peer = await startPeer();
  const { url, names } = await run({ ENGINE_ROLES: "edge", ENGINE_QUERY_PEERS: peer.url });
  expect(names).toEqual(["query peers", "http"]);
  expect((await ask(`${url}/v1/query`, QUERY)).body.toString()).toBe("ok");
  expect((await ask(`${url}/v1/ingest`, INGEST)).body.toString()).toContain('"rows_ingested":1');
});

test.each([
  ["query", true, false, false],
  ["ingest", false, true, false],
  ["query,ingest", true, true, false],
  ["compaction", false, false, true],
  ["all_in_one", true, true, true],
])("%s has its own routes and services, and health and metrics", async (roles, queries, ingests, background) => {
  const { url, names } = await run({ ENGINE_ROLES: roles });
  // The door opens last.
  expect(names.at(-1)).toBe("http");
  expect(names.length > 1).toBe(background);
  expect(names.includes("ledger sweep")).toBe(background);
  const queried = (await ask(`${url}/v1/query`, QUERY)).body.toString();
  expect(queried).toContain(queries ? LOOKED : "there is no route");
  expect(await statusOf(url, "/v1/catalog/schema", { method: "GET" })).toBe(queries ? 200 : 404);
  expect(await statusOf(url, "/v1/ingest", INGEST)).toBe(ingests ? 200 : 404);
  expect(await statusOf(url, "/health", { method: "GET" })).toBe(200);
  expect((await ask(`${url}/metrics`, { method: "GET" })).body.toString()).toContain("engine_process_cpu");
});
