import { FEATURE_ROWS } from "./features.test-kit.ts";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { loadConfig } from "../src/config/load.ts";
import { Cleanup } from "../src/core/lifecycle.ts";
import { createLog } from "../src/core/log.ts";
import { standInJob, type StandInJob } from "../src/fabric/running-job.test-kit.ts";
import { AuditLog } from "../src/auth/audit.ts";
import { Credentials } from "../src/credentials/credentials.ts";
import type { QueryProcesses } from "../src/query/contract/engines.ts";
import type { QueryRequest } from "../src/query/contract/query.ts";
import type { EngineRegistry } from "../src/query/engines/registry.ts";
import { jobKindsOf } from "../src/feature/collect.ts";
import { engineHandlers } from "./fabric-handlers.ts";
import { FEATURES } from "./features.ts";
import { createParts, type Parts } from "./parts.ts";
import { queryEngines } from "./query-engines.ts";
import { openStorage, type Storage } from "./storage.ts";

let home: string;
let parts: Parts;
let storage: Storage;
let cleanup: Cleanup;
const lines: string[] = [];
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "engine-handlers-"));
  const env = { ENGINE_HOME: home, ENGINE_CATALOG_URL: `sqlite://${join(home, "catalog.db")}` };
  const log = createLog("info", { write: (line: string) => void lines.push(line) });
  cleanup = new Cleanup();
  parts = createParts({ ...loadConfig({ env, rows: FEATURE_ROWS }), isLocal: false }, log, cleanup);
  storage = await openStorage(parts);
  await storage.catalog.createDatabase("a");
});
afterEach(async () => {
  await cleanup.run();
  await rm(home, { recursive: true, force: true, maxRetries: 3 });
});

const exportJob = (fence: number): StandInJob =>
  standInJob({
    kind: "query.export",
    database: "a",
    fence,
    payload: { query: "SELECT 40 + 2 AS n", database: "a" },
  });

const engines = (): EngineRegistry => {
  const audit = new AuditLog(storage.records, parts.newId);
  return queryEngines(parts, storage, {
    audit,
    credentials: new Credentials({ ...parts, ...storage, audit, keyring: undefined }),
  });
};

function handlerOf(kind: string, query?: QueryProcesses) {
  const handler = engineHandlers(parts, { ...storage, query, engines: engines() }).find((one) => one.kind === kind);
  if (handler === undefined) throw new Error(`nothing runs ${kind}`);
  return handler;
}

const servicesMade = (): number => lines.filter((line) => line.includes("memory of queries")).length;

test("every kind of the engine has a handler, and none of them is for workers", async () => {
  const handled = engineHandlers(parts, { ...storage, query: undefined, engines: engines() }).map(({ kind }) => kind);
  const kinds = await jobKindsOf(FEATURES, parts.config);
  // What runs these comes with their feature.
  const ofFeatures = ["backup", "maintenance.rewrite_extents"];
  const ours = kinds.filter(({ claim }) => claim === "engine").map(({ name }) => name);
  expect([...handled, ...ofFeatures].toSorted()).toEqual(ours.toSorted());
  expect(handled).toEqual(["maintenance.verify_extents", "maintenance.delete_rows", "query.export"]);
});

test("a process that answers no queries makes a query service with its first export, and one only", async () => {
  const handler = handlerOf("query.export");
  const before = servicesMade();
  const results = await Promise.all([1, 2].map((fence) => handler.run(exportJob(fence))));
  expect(results).toMatchObject([
    { rows: 1, columns: ["n"] },
    { rows: 1, columns: ["n"] },
  ]);
  expect(servicesMade() - before).toBe(1);
});

test("one that answers queries has its exports share the service, and with it all budgets", async () => {
  const asked: QueryRequest[] = [];
  const run: QueryProcesses["run"] = (request) => {
    asked.push(request);
    return Promise.reject(new Error("the service of this process was asked"));
  };
  const before = servicesMade();
  const job = exportJob(1);
  await expect(
    handlerOf("query.export", { run, convert: () => Promise.reject(new Error("not asked")) }).run(job),
  ).rejects.toThrow("the service of this process was asked");
  expect(asked).toMatchObject([{ caller: job.owner, database: "a", format: "parquet", signal: job.signal }]);
  expect(servicesMade() - before).toBe(0);
});
