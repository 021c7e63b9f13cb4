import { cpSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { findPostgresPrograms } from "../../src/db/postgres/server-programs.ts";
import { NO_FSYNC, startTestServer, type TestServer } from "../../src/catalog/postgres/postgres.test-kit.ts";
import { rowsOf } from "../support/client.ts";
import { startEngine, temporaryHome } from "../support/engine.ts";
import { backUp, checkMissingExtent, checkRestored, startLoaded } from "./backup.test-kit.ts";
import { runSteps, stepsOf } from "./steps.test-kit.ts";

/** The section "Backup" of `docs/operations.md`: its commands are run as they stand there. */

const [onSqlite = "", dump = "", restore = ""] = stepsOf("operations.md", "Backup");

test("there are three blocks of commands", () => {
  expect(stepsOf("operations.md", "Backup")).toHaveLength(3);
});

describe.skipIf(lacks("sqlite3"))("one server", () => {
  test("comes back from a backup that was made while it took rows", async () => {
    const { home, remove } = await temporaryHome();
    const backup = join(home, "backup");
    const loaded = await startLoaded(join(home, "engine"), {});
    const bounds = await backUp(loaded, () =>
      runSteps(onSqlite, { ENGINE_HOME: join(home, "engine"), BACKUP: backup }),
    );
    const restored = await startEngine({ home: backup });
    await checkRestored(restored, bounds);
    await checkMissingExtent(restored, backup);
    await restored.stop();
    await remove();
  });
});

test("a server that was stopped comes back from a copy of its home", async () => {
  const { home, remove } = await temporaryHome();
  const loaded = await startLoaded(join(home, "engine"), {});
  await loaded.stop();
  await loaded.engine.stop();
  cpSync(join(home, "engine"), join(home, "copy"), { recursive: true });
  const restored = await startEngine({ home: join(home, "copy") });
  const rows = loaded.state.acknowledged;
  expect(await rowsOf(restored.url, "SELECT count(*) AS rows FROM t")).toEqual([{ rows }]);
  await restored.stop();
  await remove();
});

const programs = findPostgresPrograms()?.folder;

describe.skipIf(lacks("PostgreSQL"))("a catalog on PostgreSQL", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startTestServer(programs ?? "", NO_FSYNC);
  });
  afterAll(() => server.stop());

  test("comes back from a dump that was made while servers took rows", async () => {
    const { home, remove } = await temporaryHome();
    const [BACKUP, PATH] = [join(home, "backup"), `${programs ?? ""}:${process.env["PATH"] ?? ""}`];
    mkdirSync(BACKUP);
    const first = await server.createDatabase();
    const engineHome = join(home, "engine");
    const loaded = await startLoaded(engineHome, { ENGINE_CATALOG_URL: first });
    const bounds = await backUp(loaded, () => runSteps(dump, { PATH, BACKUP, ENGINE_CATALOG_URL: first }));
    const second = await server.createDatabase();
    runSteps(restore, { PATH, BACKUP, ENGINE_CATALOG_URL: second });
    const restored = await startEngine({ home: engineHome, env: { ENGINE_CATALOG_URL: second } });
    await checkRestored(restored, bounds);
    await restored.stop();
    await remove();
  });
});
