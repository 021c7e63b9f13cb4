import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";
import { sharedTestServer, type TestDatabases } from "../../src/catalog/postgres/postgres.test-kit.ts";
import { storeEnvironment } from "../../src/io/objectstore/s3/s3.test-kit.ts";
import { findVersitygw, sharedVersitygw, type Versitygw } from "../../src/io/objectstore/s3/versitygw.test-kit.ts";
import { ingest, query, rowsOf } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { backup, backupJson } from "./command.test-kit.ts";

const WITHIN_MS = 60_000;
const versitygw = await findVersitygw();

/** A cluster's backup, made under load, opened on a laptop; and the laptop's, opened by a cluster. */
describe.skipIf(lacks("PostgreSQL") || versitygw === undefined)("a cluster on PostgreSQL and S3", () => {
  let databases: TestDatabases;
  let s3: Versitygw;
  beforeAll(async () => {
    databases = await sharedTestServer();
    s3 = await sharedVersitygw();
  });
  afterAll(async () => {
    await databases.stop();
    await s3.stop();
  });

  test("comes back on SQLite, with everything acknowledged before the start", { timeout: 400_000 }, async () => {
    const { home, remove } = await temporaryHome();
    const destination = `s3://${await s3.makeBucket()}/engine`;
    const cluster = {
      ...storeEnvironment(s3, await s3.makeBucket()),
      ENGINE_CATALOG_URL: await databases.createDatabase(),
      ENGINE_BACKUP_DESTINATIONS: destination,
      ENGINE_COMPACTION_POLL_SECS: "1",
      ENGINE_COMPACTION_MIN_EXTENTS: "4",
      ENGINE_PHYSICAL_GC_GRACE_SECS: "1",
      ENGINE_PHYSICAL_GC_POLL_SECS: "1",
    };
    const engine = await startEngine({ home: join(home, "one"), env: cluster });
    const staging = await startEngine({ home: join(home, "two"), env: { ...cluster, ENGINE_INGEST_MODE: "staged" } });
    const load = startLoad(engine, staging);
    const client = { ...cluster, ENGINE_HOME: join(home, "client"), ENGINE_SERVER_URL: engine.url };
    const underLoad = async () => {
      await eventually(() => load.acknowledged() > 30 && load.staged() > 5, WITHIN_MS);
      const [least, leastStaged] = [load.acknowledged(), load.staged()];
      const made = await backupJson(["create", destination], client);
      const most = load.sent();
      // What the backup is compared with: the same snapshot, where it is.
      const kept = await backupJson(["create", destination], client);
      return { least, leastStaged, made, most, kept };
    };
    // Stopped in any case: what it sends to servers that are gone would fail some other test.
    const { least, leastStaged, made, most, kept } = await underLoad().finally(() => load.stop());
    expect(kept["objects_copied"]).toBeLessThan(Number(kept["objects"]) + 1);
    const refused = await backup(["create", `${destination}-elsewhere`], client);
    expect(refused.stderr).toMatch(/ENGINE_BACKUP_DESTINATIONS/);
    await engine.stop();
    await staging.stop();

    // On a laptop: SQLite and a folder.
    const laptop = { ...backupEnvironment(s3), ENGINE_HOME: join(home, "laptop") };
    expect(await backupJson(["verify", destination], laptop)).toMatchObject({ backups: 2, problems: [] });
    await backupJson(["restore", destination, String(made["backup_id"])], laptop);
    const restored = await startEngine({ home: laptop.ENGINE_HOME });
    await eventually(async () => {
      const [counted] = await rowsOf(restored.url, "SELECT count(*) AS rows FROM staged");
      return Number(counted?.["rows"]) >= leastStaged;
    }, WITHIN_MS);
    const [counted] = await rowsOf(restored.url, "SELECT count(*) AS rows, count(DISTINCT id) AS ids FROM t");
    const rows = Number(counted?.["rows"]);
    expect(counted, `sent before its end: ${most}`).toEqual({ rows, ids: rows });
    expect(rows).toBeGreaterThanOrEqual(least);
    expect(rows).toBeLessThanOrEqual(most);
    const [staged] = await rowsOf(restored.url, "SELECT count(*) AS rows, count(DISTINCT id) AS ids FROM staged");
    expect(staged?.["rows"]).toBe(staged?.["ids"]);
    expect((await ingest(restored.url, "t", '{"id":"key"}\n', { "X-Idempotency-Key": "first" })).json.replayed).toBe(
      true,
    );
    expect((await ingest(restored.url, "t", '{"id":"new"}\n')).status).toBe(200);

    // And back: the laptop's own backup, into a new cluster.
    const folder = join(laptop.ENGINE_HOME, "backups");
    await backupJson(["create", folder], { ...laptop, ENGINE_SERVER_URL: restored.url });
    await restored.stop();
    const second = {
      ...storeEnvironment(s3, await s3.makeBucket()),
      ENGINE_CATALOG_URL: await databases.createDatabase(),
    };
    await backupJson(["restore", folder], { ...second, ENGINE_HOME: join(home, "restorer") });
    const again = await startEngine({ home: join(home, "three"), env: second });
    expect(await rowsOf(again.url, "SELECT count(*) AS rows, count(DISTINCT id) AS ids FROM t")).toEqual([
      { rows: rows + 1, ids: rows + 1 },
    ]);
    await again.stop();
    await remove();
  });
});

/** Credentials for `s3://` destinations, of one whose objects are in a folder. */
function backupEnvironment({ endpoint, region, credentials }: Versitygw): Record<string, string> {
  return {
    ENGINE_BACKUP_ENDPOINT: endpoint,
    ENGINE_BACKUP_REGION: region,
    ENGINE_BACKUP_ACCESS_KEY_ID: credentials.accessKeyId,
    ENGINE_BACKUP_SECRET_ACCESS_KEY: credentials.secretAccessKey,
  };
}

/** Rows into two tables, sync and staged, all the time; and a third one, whose rows are deleted meanwhile. */
function startLoad(engine: Engine, staging: Engine) {
  const state = { isRunning: true, sent: 1, acknowledged: 0, staged: 0 };
  const put = async (url: string, table: string, body: string, headers?: Record<string, string>): Promise<void> => {
    const { status, text } = await ingest(url, table, body, headers);
    if (status !== 200 && status !== 202) throw new Error(`ingest: ${status} ${text}`);
  };
  const rows = (async () => {
    await put(engine.url, "t", '{"id":"key"}\n', { "X-Idempotency-Key": "first" });
    state.acknowledged = 1;
    while (state.isRunning) {
      await put(engine.url, "t", `{"id":"${state.sent++}"}\n`);
      state.acknowledged++;
    }
  })();
  const staged = (async () => {
    for (let i = 0; state.isRunning; i++) {
      await put(staging.url, "staged", `{"id":"${i}"}\n`, { "X-Idempotency-Key": `staged-${i}` });
      state.staged++;
    }
  })();
  const deleted = (async () => {
    while (state.isRunning) {
      await put(engine.url, "gone", '{"id":"x"}\n');
      await query(engine.url, "SELECT count(*) FROM gone");
      await fetch(`${engine.url}/v1/catalog/tables/gone`, { method: "DELETE" });
    }
  })();
  return {
    sent: () => state.sent,
    acknowledged: () => state.acknowledged,
    staged: () => state.staged,
    stop: async () => {
      state.isRunning = false;
      await Promise.all([rows, staged, deleted]);
    },
  };
}
