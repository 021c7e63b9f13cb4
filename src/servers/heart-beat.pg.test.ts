import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { MIGRATIONS } from "../catalog/migrations.test-kit.ts";
import { openTestCatalog, sharedTestServer, type TestDatabases } from "../catalog/postgres/postgres.test-kit.ts";
import { ManualClock } from "../core/clock.ts";
import { EngineError } from "../core/errors.ts";
import { lacks } from "../core/gates.test-kit.ts";
import type { CatalogDatabase } from "../catalog/catalog-database.ts";
import { migrationTexts, type Migration } from "../db/migration.ts";
import { silentLog } from "../core/log.ts";
import { HeartBeat, type HeartBeatDeps } from "./heart-beat.ts";

const KNOWN = migrationTexts("postgres", MIGRATIONS).length;
const more = (name: string, number: number, sql: string, removes?: true): Migration => ({
  name,
  postgres: KNOWN + number,
  sql: { postgres: sql },
  ...(removes && { removes }),
});
const USED = more("used", 1, "CREATE TABLE engine.used (n integer)");
const UNUSED = more("unused", 2, "DROP TABLE engine.used", true);
const AFTER = more("after", 3, "CREATE TABLE engine.after (n integer)");
/** Programs of three releases: the last one removes what the first uses, and adds something else. */
const FIRST = [...MIGRATIONS, USED];
const LAST = [...MIGRATIONS, USED, UNUSED, AFTER];

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

describe.skipIf(lacks("PostgreSQL"))("servers of two versions on one catalog", () => {
  let databases: TestDatabases;
  let url: string;
  let clock: ManualClock;
  let databaseMs: number;
  beforeAll(async () => {
    databases = await sharedTestServer();
  });
  afterAll(() => databases.stop());
  beforeEach(async () => {
    url = await databases.createDatabase();
    clock = new ManualClock();
    databaseMs = clock.nowMs();
  });

  type Server = { catalog: CatalogDatabase; heartBeat: HeartBeat; ended: () => boolean; close: () => Promise<void> };

  async function start(
    id: string,
    migrations: readonly Migration[],
    deps: Partial<HeartBeatDeps> = {},
  ): Promise<Server> {
    const catalog = await openTestCatalog(url, { migrations, nowMs: () => databaseMs });
    let hasEnded = false;
    const self = { id, name: `host-${id}`, roles: "query", version: "1" };
    const onOutdated = (): void => void (hasEnded = true);
    const { records, upkeep } = catalog;
    const heartBeat = new HeartBeat({ records, upkeep, clock, log: silentLog, self, onOutdated, ...deps });
    try {
      await heartBeat.announce();
    } catch (error) {
      await catalog.close();
      throw error;
    }
    return { catalog, heartBeat, ended: () => hasEnded, close: () => catalog.close() };
  }

  const tables = async (): Promise<unknown> =>
    (
      await databases.query(
        url,
        "SELECT to_regclass('engine.used') IS NOT NULL AS used, to_regclass('engine.after') IS NOT NULL AS after",
      )
    )[0];

  it("have a removal wait until the older one was silent for a minute, and nothing else", async () => {
    const older = await start("older", FIRST);
    const newer = await start("newer", LAST);
    for (let beats = 0; beats < 6; beats++) {
      await older.heartBeat.beat();
      await newer.heartBeat.beat();
      clock.advance(15_000);
    }
    expect(await tables()).toEqual({ used: true, after: true });
    // An older one starts again, as autoscaling would have it, and works.
    const again = await start("again", FIRST);
    await again.catalog.createDatabase("d");
    await again.heartBeat.leave();
    await again.close();
    clock.advance(MINUTE_MS - 1 - 15_000);
    await newer.heartBeat.beat();
    expect(await tables()).toMatchObject({ used: true });
    clock.advance(15_001);
    await newer.heartBeat.beat();
    expect(await tables()).toEqual({ used: false, after: true });
    // The one that was taken for dead lives after all.
    await older.heartBeat.beat();
    expect(older.ended()).toBe(true);
    await expect(start("again", FIRST)).rejects.toThrow(
      `(schema ${KNOWN + 3}, for programs that know ${KNOWN + 2}; this one knows ${KNOWN + 1})`,
    );
    await newer.heartBeat.beat();
    expect(newer.ended()).toBe(false);
    await Promise.all([older.close(), newer.close()]);
  });

  it("have it happen at once when the older ones took their leave, by one of many", async () => {
    const older = await start("older", FIRST);
    const newer = await Promise.all(["a", "b", "c"].map((id) => start(id, LAST)));
    await older.heartBeat.leave();
    await Promise.all(newer.map(({ heartBeat }) => heartBeat.beat()));
    expect(await tables()).toEqual({ used: false, after: true });
    await Promise.all([older, ...newer].map(({ close }) => close()));
  });

  it("are not taken for dead when the database's clock jumps, back or ahead", async () => {
    const older = await start("older", FIRST);
    const newer = await start("newer", LAST);
    for (const jumpMs of [-DAY_MS, DAY_MS]) {
      databaseMs += jumpMs;
      await older.heartBeat.beat();
      databaseMs += jumpMs;
      await newer.heartBeat.beat();
      clock.advance(MINUTE_MS - 1);
    }
    await newer.heartBeat.beat();
    expect(await tables()).toMatchObject({ used: true });
    await Promise.all([older.close(), newer.close()]);
  });

  it("know a server that starts while the removal runs, or refuse it", async () => {
    const newer = await start("newer", LAST);
    const started = Array.from({ length: 8 }, (_, i) => start(`older-${i}`, FIRST).catch((error: unknown) => error));
    const [outcomes] = await Promise.all([Promise.all(started), newer.heartBeat.beat()]);
    const servers = outcomes.filter((outcome) => !(outcome instanceof Error)) as Server[];
    const { used } = (await tables()) as { used: boolean };
    expect(servers.length === 0 || used).toBe(true);
    await Promise.all([newer, ...servers].map(({ close }) => close()));
  });

  it("say nothing of themselves on a full disk, and start", async () => {
    const full = new EngineError("insufficient_storage", "no room");
    const { records } = await openTestCatalog(url);
    const server = await start("full", MIGRATIONS, {
      records: { rows: (sql) => records.rows(sql), write: () => Promise.reject(full) },
    });
    expect(await records.rows("SELECT id FROM servers")).toEqual([]);
    await expect(server.heartBeat.beat()).rejects.toBe(full);
    await server.close();
  });
});
