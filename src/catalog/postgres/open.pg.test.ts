import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../core/gates.test-kit.ts";
import { sleep, systemClock } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import { aFlush, column, committed } from "../contract-fixtures.test-kit.ts";
import { migrationTexts, type Migration } from "../../db/migration.ts";
import { MIGRATIONS } from "../migrations.test-kit.ts";
import { eventually } from "../../core/waiting.test-kit.ts";
import { findPostgresPrograms } from "../../db/postgres/server-programs.ts";
import { openTestCatalog, NO_FSYNC, startTestServer, type TestServer } from "./postgres.test-kit.ts";

/** A later version of the program. */
function withMore(...texts: readonly string[]): readonly Migration[] {
  const { length } = migrationTexts("postgres", MIGRATIONS);
  return [...MIGRATIONS, ...texts.map((sql, i) => ({ name: `added ${i}`, postgres: length + 1 + i, sql }))];
}

const programs = findPostgresPrograms()?.folder;

describe.skipIf(lacks("PostgreSQL"))("opening a catalog", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startTestServer(programs ?? "", NO_FSYNC);
  });
  afterAll(() => server.stop());

  type Options = Parameters<typeof openTestCatalog>[1];

  /** Why it cannot be opened. */
  const problemWith = async (url: string, options?: Options): Promise<string> => {
    try {
      await (await openTestCatalog(url, { acquireTimeoutMs: 300, ...options })).close();
      return "none";
    } catch (error) {
      expect(error).toMatchObject({ name: "StartupError" });
      return messageOf(error);
    }
  };

  it("finds what was there, and takes the database's own time", async () => {
    const url = await server.createDatabase();
    const before = await openTestCatalog(url, { mode: "admin" });
    const { table } = await before.createTable({ database: "d", name: "t", columns: [column("at", "timestamp")] });
    const { snapshot } = committed((await before.commit([aFlush(table)]))[0]);
    await before.close();
    const after = await openTestCatalog(url);
    expect(await after.table("d", "t")).toEqual(table);
    expect(await after.head()).toEqual(snapshot);
    expect(Math.abs((await after.nowMs()) - systemClock.nowMs())).toBeLessThan(60_000);
    expect(snapshot.committedAtMs).toBeLessThanOrEqual(await after.nowMs());
    await after.close();
  });

  it("brings an earlier catalog to the newest schema once, however many nodes start, and not for a command", async () => {
    const url = await server.createDatabase();
    const catalog = await openTestCatalog(url);
    await catalog.createDatabase("kept");
    await catalog.close();
    const next = "CREATE TABLE engine.added (n integer); INSERT INTO engine.added VALUES (1)";
    const migrations = withMore(next);
    const [newest, added] = [MIGRATIONS, migrations].map((list) => migrationTexts("postgres", list).length);
    const early = await problemWith(url, { mode: "admin", migrations });
    expect(early).toMatch(/written by an earlier version .*: start the server once to upgrade it$/);
    expect(early).toContain(`(schema ${newest}; this one writes ${added})`);
    const nodes = await Promise.all(Array.from({ length: 10 }, () => openTestCatalog(url, { migrations })));
    expect(await server.query(url, "SELECT n FROM engine.added")).toEqual([{ n: 1 }]);
    expect((await nodes[9]?.databases())?.map(({ name }) => name)).toEqual(["kept"]);
    await Promise.all(nodes.map((node) => node.close()));
    // It only has more: this program works on it, and its commands do.
    for (const mode of ["server", "admin"] as const) {
      const older = await openTestCatalog(url, { mode });
      expect(older.upkeep).toMatchObject({ known: newest, found: added });
      await older.createDatabase(mode);
      await older.verify();
      await older.close();
    }
    expect(await server.query(url, "SELECT schema_version AS v FROM engine.meta")).toEqual([{ v: added }]);
  });

  it("refuses a catalog from which a newer version removed something, or that says nothing of it", async () => {
    const url = await server.createDatabase();
    await (await openTestCatalog(url)).close();
    const { length } = migrationTexts("postgres", MIGRATIONS);
    await server.query(url, "UPDATE engine.meta SET schema_version = 99, oldest_schema = 98");
    const late = `written by a newer version of this program (schema 99, for programs that know 98; this one knows ${length})`;
    expect(await problemWith(url)).toContain(late);
    expect(await problemWith(url, { mode: "admin" })).toContain(late);
  });

  it("has another server migrate when the first one dies at it", async () => {
    const url = await server.createDatabase();
    await (await openTestCatalog(url)).close();
    const dying = problemWith(url, {
      migrations: withMore("CREATE TABLE engine.half (n integer); SELECT pg_sleep(60)"),
    });
    const isMigrating =
      "SELECT pid FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)%' AND pid <> pg_backend_pid()";
    await eventually(async () => (await server.query(url, isMigrating)).length > 0);
    const migrations = withMore("CREATE TABLE engine.whole (n integer)");
    const next = openTestCatalog(url, { migrations });
    await server.query(url, `SELECT pg_terminate_backend(pid) FROM (${isMigrating}) AS dying`);
    expect(await dying).not.toBe("none");
    await (await next).close();
    const found = "SELECT to_regclass('engine.half') AS half, to_regclass('engine.whole') IS NOT NULL AS whole";
    expect(await server.query(url, found)).toEqual([{ half: null, whole: true }]);
  });

  it("leaves a catalog as it was when a migration fails", async () => {
    const url = await server.createDatabase();
    await (await openTestCatalog(url)).close();
    const migrations = withMore("CREATE TABLE engine.half (n integer)", "SELECT 1 / 0");
    expect(await problemWith(url, { migrations })).toMatch(/cannot be opened: .* \[.*division by zero.*\]$/);
    expect(await problemWith(url)).toBe("none");
    const half =
      "SELECT to_regclass('engine.half') AS half, (SELECT count(*)::integer FROM pg_locks WHERE locktype = 'advisory') AS locks";
    expect(await server.query(url, half)).toEqual([{ half: null, locks: 0 }]);
  });

  it("leaves what is another program's alone", async () => {
    const url = await server.createDatabase();
    await server.query(url, "CREATE SCHEMA engine");
    expect(await problemWith(url)).toMatch(/has a schema "engine" of another program: choose another database/);
    await server.query(server.url("postgres"), "CREATE DATABASE ascii TEMPLATE template0 ENCODING 'SQL_ASCII'");
    expect(await problemWith(server.url("ascii"))).toMatch(/is not in UTF-8 but SQL_ASCII/);
  });

  it("says what is wrong with the address, the user or the server", async () => {
    const url = await server.createDatabase();
    expect(await problemWith(server.url("nowhere"))).toMatch(/nowhere on 127\.0\.0\.1:\d+ does not exist: create it/);
    const stranger = url.replace("tester@", "stranger:hunter2@");
    const refused = await problemWith(stranger);
    expect(refused).toMatch(/refuses the user stranger: check the user and the password/);
    expect(refused).not.toContain("hunter2");
    await server.query(url, "CREATE ROLE reader LOGIN");
    expect(await problemWith(url.replace("tester@", "reader@"))).toMatch(/may not be changed by reader: let the user/);
    expect(await problemWith("postgres://u@127.0.0.1:1/d")).toMatch(
      /cannot be opened: check that the server runs .*ECONNREFUSED/,
    );
  });

  it("refuses a standby, whose answers may be old", async () => {
    const url = await server.createDatabase();
    await (await openTestCatalog(url)).close();
    const standby = await server.startStandby();
    try {
      const problem = await problemWith(standby.url(new URL(url).pathname.slice(1)));
      expect(problem).toMatch(/cannot be written: name the primary \[the server is a standby/);
    } finally {
      await standby.stop();
    }
  });

  it("waits for a server that is still starting", async () => {
    const url = await server.createDatabase();
    await server.shutDown();
    const opening = openTestCatalog(url, { acquireTimeoutMs: 10_000 });
    await sleep(systemClock, 300);
    await server.start();
    await expect(opening.then((catalog) => catalog.close())).resolves.toBeUndefined();
  });

  it("waits for nothing that answers and then says no more", async () => {
    const { createServer } = await import("node:net");
    const mute = createServer(() => undefined).listen(0, "127.0.0.1");
    await new Promise((resolve) => mute.once("listening", resolve));
    const address = mute.address();
    const port = typeof address === "object" ? address?.port : 0;
    for (const mode of ["prefer", "disable", "require"]) {
      const url = `postgres://u@127.0.0.1:${port}/d?sslmode=${mode}`;
      expect(await problemWith(url)).toMatch(/cannot be opened: .*(no answer within 300 ms|CONNECT_TIMEOUT)/);
    }
    mute.close();
  });
});
