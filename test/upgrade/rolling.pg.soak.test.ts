import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findPostgresPrograms } from "../../src/db/postgres/server-programs.ts";
import { NO_FSYNC, startTestServer, type TestServer } from "../../src/catalog/postgres/postgres.test-kit.ts";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";
import { removeUnmounted } from "../../src/sandbox/runtime/removal.test-kit.ts";
import { ingest, query, rowsOf } from "../support/client.ts";
import { startEngine, type Engine } from "../support/engine.ts";
import { keepSending } from "../support/steady-client.test-kit.ts";
import { checkOut } from "./check-out.ts";
import { EARLIER } from "./earlier.ts";

const LAST = EARLIER.at(-1);

/** The first to be replaced leaves what it stages, and its jobs, to the one of the earlier version. */
const REPLACEMENTS: readonly Record<string, string>[] = [
  { ENGINE_ROLES: "query,ingest", ENGINE_INGEST_MODE: "staged" },
  {},
];
const STAGED_ROWS = 3;
const WITHIN_MS = 60_000;

/** A committer commits what a newer version has staged, and a worker runs the jobs that it enqueues. */
async function earlierDoesWhatNewerAsks(newer: string): Promise<void> {
  for (let i = 0; i < STAGED_ROWS; i++) {
    const { status, json } = await ingest(newer, "staged", `{"id":"${i}"}\n`);
    expect({ status, json }).toMatchObject({ status: 200, json: { staged: true } });
  }
  const count = async (): Promise<string> => (await query(newer, "SELECT count(*) AS n FROM staged")).text;
  await eventually(async () => (await count()) === `{"n":${STAGED_ROWS}}\n`, WITHIN_MS);
  for (const [kind, payload] of Object.entries(JOBS)) {
    const headers = { "Content-Type": "application/json" };
    const body = JSON.stringify({ kind, database: "default", payload });
    const enqueued = await fetch(`${newer}/v1/jobs`, { method: "POST", headers, body });
    const { job_id: id } = (await enqueued.json()) as { job_id?: string };
    let job: Record<string, unknown> = {};
    await eventually(async () => {
      job = (await (await fetch(`${newer}/v1/jobs/${id}`)).json()) as typeof job;
      return job["status"] === "done" || job["status"] === "failed";
    }, WITHIN_MS);
    expect({ kind, ...job }).toMatchObject({ status: "done", attempt: 1 });
  }
}

const JOBS = {
  "maintenance.verify_extents": { database: "default", table: "staged" },
  "query.export": { database: "default", query: "SELECT * FROM staged" },
};

/** What `docs/operations.md` says of an upgrade: servers of two versions work on one catalog, and no client notices. */
describe.skipIf(lacks("PostgreSQL", "git"))("two versions at once", () => {
  const folder = mkdtempSync(join(tmpdir(), "engine-rolling-"));
  let server: TestServer;
  beforeAll(async () => {
    server = await startTestServer(findPostgresPrograms()?.folder ?? "", NO_FSYNC);
  });
  afterAll(async () => {
    await server.stop();
    await removeUnmounted(folder);
  });

  test(
    "write and read each other's rows while one server after the other is replaced",
    { timeout: 240_000 },
    async () => {
      const catalog = await server.createDatabase();
      const earlier = checkOut(LAST?.commit ?? "", join(folder, "earlier"));
      const start = (name: string, env: Record<string, string> = {}, entry?: string): Promise<Engine> =>
        startEngine({
          home: join(folder, name),
          env: {
            ENGINE_CATALOG_URL: catalog,
            ENGINE_LOCAL_DATA: join(folder, "data"),
            ENGINE_SANDBOX_RUNTIME: "off",
            ENGINE_COMPACTION_POLL_SECS: "1",
            ENGINE_COMPACTION_MIN_EXTENTS: "4",
            ...env,
          },
          ...(entry === undefined ? {} : { entry }),
        });
      const servers = [await start("a", {}, earlier), await start("b", {}, earlier)];
      const clients = servers.map((_server, i) => keepSending(() => servers[i]?.url ?? "", `client-${i}`));
      const each = (more: number) => {
        const marks = clients.map(({ acknowledged }) => acknowledged + more);
        return eventually(() => clients.every(({ acknowledged }, i) => acknowledged >= (marks[i] ?? 0)));
      };
      await each(20);
      const schema = async () => (await server.query(catalog, "SELECT schema_version AS v FROM engine.meta"))[0]?.["v"];
      expect(Number(await schema())).toBe(LAST?.schema.postgres);

      for (const i of servers.keys()) {
        const others = clients.filter((_client, of) => of !== i);
        const failures = others.map((client) => client.failures.length);
        await servers[i]?.stop();
        servers[i] = await start(`new-${i}`, REPLACEMENTS[i]);
        await each(20);
        // Who was not replaced answered all the time, also while the new version changed the schema.
        expect(others.map((client) => client.failures.length)).toEqual(failures);
        for (const { url } of servers) {
          const [row] = await rowsOf(url, "SELECT count(DISTINCT split_part(id, '-', 2)) AS clients FROM t");
          expect(row).toEqual({ clients: clients.length });
        }
        if (i === 0) await earlierDoesWhatNewerAsks(servers[0]?.url ?? "");
      }

      await Promise.all(clients.map((client) => client.stop()));
      const rows = clients.reduce((sum, { acknowledged }) => sum + acknowledged, 0);
      for (const { url } of servers) {
        const counted = async () => await query(url, "SELECT count(*) AS n, count(DISTINCT id) AS ids FROM t");
        // What was staged last is committed soon.
        await eventually(async () => (await counted()).text === `{"n":${rows},"ids":${rows}}\n`, WITHIN_MS);
      }
      for (const one of servers) expect((await one.stop()).code).toBe(0);
    },
  );
});
