import { chmodSync, existsSync, mkdirSync, statSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { sleep, systemClock } from "../../core/clock.ts";
import { StartupError } from "../../core/errors.ts";
import { silentLog } from "../../core/log.ts";
import type { Catalog } from "../catalog.ts";
import type { CatalogDatabase } from "../catalog-database.ts";
import { aFlush, anExtent, column } from "../contract-fixtures.test-kit.ts";
import { Connection } from "../../db/sqlite/connection.ts";
import { migrationTexts, type Migration } from "../../db/migration.ts";
import { migrate } from "../../db/sqlite/migrate.ts";
import { MIGRATIONS, sqliteText } from "../migrations.test-kit.ts";
import { openSqliteCatalog } from "./sqlite.ts";
import { makeFolder, startChild } from "./child-process.test-kit.ts";

let folder: string;
let path: string;
let remove: () => void;

beforeEach(() => {
  ({ folder, remove } = makeFolder());
  path = join(folder, "catalog.db");
});
afterEach(() => remove());

function open(at = path, mode: "server" | "admin" = "server"): Promise<CatalogDatabase> {
  return openSqliteCatalog({ path: at, clock: systemClock, log: silentLog, migrations: MIGRATIONS, mode });
}

/** A refusal is one `StartupError` that names the file and says what to do. */
async function refusalOf(opening: Promise<Catalog>, named = path): Promise<string> {
  const error: unknown = await opening.then((catalog) => catalog.close()).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(StartupError);
  const { message } = error as StartupError;
  expect(message).toContain(named);
  expect(message).toMatch(/choose another|use the newer|start the server|stop that/);
  return message;
}

async function makeCatalog(): Promise<void> {
  const catalog = await open();
  const { table } = await catalog.createTable({ database: "d", name: "t", columns: [column("at", "timestamp")] });
  await catalog.commit([aFlush(table, { extents: Array.from({ length: 200 }, () => anExtent()) })]);
  await catalog.close();
}

function withFile(work: (db: DatabaseSync) => void): void {
  const db = new DatabaseSync(path);
  work(db);
  db.close();
}

/** What a child says that may not do everything. */
async function said(at: string): Promise<string> {
  const child = startChild("server", at, "", { unprivileged: true });
  child.process.stdin.end();
  await child.exited;
  return child.lines.join("\n");
}

const first: Migration = { name: "first", sqlite: 1, sql: "CREATE TABLE a (x)" };
const second: Migration = { name: "second", sqlite: 2, sql: "CREATE TABLE b (x); INSERT INTO b VALUES (5)" };
const broken: Migration = { name: "broken", sqlite: 3, sql: "CREATE TABLE c (x); CREATE TABLE c (x)" };

/** Runs migrations on the file; its version then. */
function migrated(migrations: readonly Migration[], mayUpgrade = true): number {
  const connection = new Connection(path, { readOnly: false, busyTimeoutMs: 100 });
  try {
    const seed = ({ db }: Connection, nowMs: number) => db.exec(`INSERT INTO a VALUES (${nowMs})`);
    migrate(connection, { path, nowMs: 7, mayUpgrade, migrations, seed });
    return connection.pragma("user_version");
  } finally {
    connection.close();
  }
}

describe("a new catalog", () => {
  it("is made with its folders, for this user only", async () => {
    const deep = join(folder, "a", "b", "catalog.db");
    const catalog = await open(deep);
    expect(statSync(join(folder, "a")).mode & 0o777).toBe(0o700);
    expect(statSync(join(folder, "a", "b")).mode & 0o777).toBe(0o700);
    expect(statSync(deep).mode & 0o777).toBe(0o600);
    expect(statSync(`${deep}-wal`).mode & 0o777).toBe(0o600);
    await catalog.close();
  });

  it("keeps what was written, and leaves neither log nor process id behind", async () => {
    await makeCatalog();
    expect(existsSync(`${path}-wal`)).toBe(false);
    expect(existsSync(`${path}.pid`)).toBe(false);
    const catalog = await open();
    expect((await catalog.tables("d")).map(({ name }) => name)).toEqual(["t"]);
    expect(await catalog.extents(1, 1)).toHaveLength(200);
    await catalog.close();
  });

  it("can be made by an administrative command, and by several at once", async () => {
    const all = await Promise.all([open(path, "admin"), open(path, "admin"), open(), open(path, "admin")]);
    await all[0]?.createDatabase("d");
    for (const catalog of all) expect(await catalog.database("d")).toEqual({ id: 1, name: "d" });
    await Promise.all(all.map((catalog) => catalog.close()));
  });

  it("is found through a symbolic link, with its lock", async () => {
    const catalog = await open();
    const link = join(folder, "link.db");
    symlinkSync(path, link);
    expect(await refusalOf(open(link))).toContain("in use");
    await catalog.close();
  });
});

it("upgrades a catalog of the first version, when a server opens it", async () => {
  await makeCatalog();
  withFile((db) => {
    db.exec("DROP INDEX extents_unpublished; DROP INDEX columns_widened");
    db.exec("DROP INDEX extents_published; DROP INDEX extents_withdrawn");
    db.exec("DROP TABLE extent_filters; DROP INDEX snapshots_by_time; DROP INDEX extents_by_table");
    db.exec("ALTER TABLE meta DROP COLUMN oldest_snapshot; ALTER TABLE meta DROP COLUMN forgotten_extents");
    db.exec("ALTER TABLE columns DROP COLUMN since_snapshot; DROP INDEX extents_alive; DROP TABLE leases");
    db.exec("ALTER TABLE columns DROP COLUMN origin; ALTER TABLE tables DROP COLUMN infer_types");
    db.exec("ALTER TABLE tables DROP COLUMN open_lag_secs");
    db.exec("ALTER TABLE columns DROP COLUMN widened_version; ALTER TABLE columns DROP COLUMN widened_snapshot");
    db.exec("ALTER TABLE tables DROP COLUMN cluster_by; ALTER TABLE databases DROP COLUMN dropped_at_ms");
    db.exec("ALTER TABLE tables DROP COLUMN dropped_at_ms; ALTER TABLE tables DROP COLUMN readable_from");
    const later = ["deletion", "sandbox quotas", "agents", "sandboxes", "jobs", "access", "input positions"];
    const newest = [
      "web sessions",
      "memory records",
      "graphs",
      "memory vectors",
      "agent",
      "dreaming",
      "memory nodes by realm",
      "memory verdicts",
      "dreaming on workers",
      "open tables",
      "publish requests",
      "query engines",
      "dashboards",
      "workbench",
    ];
    const records = [...newest, ...later, "dropped files", "live servers"].map(sqliteText).join("");
    for (const [, name] of records.matchAll(/CREATE TABLE (\w+)/g)) db.exec(`DROP TABLE ${name}`);
    db.exec("ALTER TABLE extents DROP COLUMN ns_column_ids");
    db.exec("ALTER TABLE extents DROP COLUMN newest_ns; ALTER TABLE tables DROP COLUMN oldest_snapshot");
    db.exec("ALTER TABLE meta DROP COLUMN oldest_schema");
    db.exec("DROP TABLE snapshot_holds; DROP TABLE condemned_extents; DROP TABLE staged; PRAGMA user_version = 1");
  });
  expect(await refusalOf(open(path, "admin"))).toContain("earlier version");
  const catalog = await open();
  expect((await catalog.oldestSnapshot()).id).toBe(0);
  const filters = [{ range: {}, tests: [] }];
  const { extents } = await catalog.planScan({ tableId: 1, atSnapshot: 1, filters });
  expect(extents).toHaveLength(200);
  // They are as new as their rows, or as their commit where the rows are dated later.
  const newestMs = Math.min((await catalog.head()).committedAtMs, Number((extents[0]?.maxAtNs ?? 0n) / 1_000_000n));
  expect(await catalog.expiredExtents(1, newestMs, 999)).toEqual([]);
  expect(await catalog.expiredExtents(1, newestMs + 1, 999)).toHaveLength(200);
  expect((await catalog.table("d", "t"))?.clusterBy).toEqual([]);
  await catalog.verify();
  await catalog.close();
});

describe("what cannot be opened", () => {
  it("is a file that is no database", async () => {
    writeFileSync(path, "not a database, but long enough to have a header of one hundred bytes".repeat(100));
    expect(await refusalOf(open())).toContain("is not a catalog: the file is no SQLite database");
  });

  it("is another program's database, which stays as it was", async () => {
    withFile((db) => db.exec("CREATE TABLE bookmarks (url TEXT)"));
    expect(await refusalOf(open())).toContain("another program");
    withFile((db) => {
      expect(db.prepare("PRAGMA journal_mode").get()).toEqual({ journal_mode: "delete" });
      expect(db.prepare("SELECT name FROM sqlite_schema").all()).toEqual([{ name: "bookmarks" }]);
    });
  });

  it("is a file that was cut off", async () => {
    await makeCatalog();
    truncateSync(path, 12_288);
    expect(await refusalOf(open())).toContain("is damaged");
  });

  it("is a folder, or below a file", async () => {
    mkdirSync(path);
    expect(await refusalOf(open())).toContain("is a folder");
    writeFileSync(join(folder, "file"), "");
    const below = join(folder, "file", "catalog.db");
    expect(await refusalOf(open(below), below)).toContain("a file is in its way");
  });

  it("is a catalog of a newer version that removed what this one uses", async () => {
    await makeCatalog();
    let newest = 0;
    withFile((db) => {
      newest = Number(db.prepare("PRAGMA user_version").get()?.["user_version"]);
      db.exec("PRAGMA user_version = 99; UPDATE meta SET oldest_schema = 98");
    });
    expect(await refusalOf(open())).toContain(`(schema 99, for programs that know 98; this one knows ${newest})`);
    expect(await refusalOf(open(path, "admin"))).toMatch(/newer version/);
    withFile((db) => db.exec(`PRAGMA user_version = ${newest}`));
    await (await open()).close();
  });

  it("is one whose lock another process never gives back", async () => {
    await makeCatalog();
    const other = new DatabaseSync(path);
    other.exec("BEGIN IMMEDIATE");
    const options = {
      path,
      clock: systemClock,
      log: silentLog,
      migrations: MIGRATIONS,
      mode: "server",
      busyTimeoutMs: 20,
    } as const;
    expect(await refusalOf(openSqliteCatalog(options))).toContain("is locked by another process");
    other.close();
    await (await open()).close();
  });
});

describe("without permission", () => {
  it("opens what is its own", async () => {
    expect(await said(path)).toBe("open");
  });

  it("says that the file is read-only", async () => {
    await makeCatalog();
    chmodSync(path, 0o444);
    expect(await said(path)).toMatch(
      /^failed: the catalog .*catalog\.db cannot be opened: make it and its folder .*EACCES/,
    );
  });

  it("says that the folder is", async () => {
    await makeCatalog();
    chmodSync(path, 0o666);
    chmodSync(folder, 0o555);
    expect(await said(path)).toMatch(/^failed: the catalog .* cannot be opened: make it and its folder .*EACCES/);
  });

  it("says that the lock beside it is", async () => {
    await makeCatalog();
    chmodSync(path, 0o666);
    chmodSync(`${path}.lock`, 0o444);
    expect(await said(path)).toMatch(/^failed: .*catalog\.db\.lock or .* cannot be written: make both/);
  });

  it("says that the folder cannot be made", async () => {
    chmodSync(folder, 0o555);
    const below = join(folder, "new", "catalog.db");
    expect(await said(below)).toMatch(/^failed: the catalog .*new\/catalog\.db cannot be opened: make it and .*EACCES/);
  });
});

describe("a catalog of a newer version", () => {
  const { length: known } = migrationTexts("sqlite", MIGRATIONS);
  const added: Migration = { name: "added", sqlite: known + 1, sql: "ALTER TABLE jobs ADD COLUMN added TEXT" };
  const removed: Migration = { name: "removed", sqlite: known + 2, sql: "DROP TABLE filedrop_files", removes: true };

  it("is worked on by this one, and by its commands, as long as it only has more", async () => {
    await makeCatalog();
    await (await openNewer([added])).close();
    for (const mode of ["server", "admin"] as const) {
      const catalog = await open(path, mode);
      expect(catalog.upkeep).toMatchObject({ known, found: known + 1 });
      await catalog.createDatabase(mode);
      await catalog.close();
    }
    withFile((db) => expect(db.prepare("PRAGMA user_version").get()).toEqual({ user_version: known + 1 }));
    const newer = await openNewer([added]);
    expect((await newer.databases()).map(({ name }) => name)).toEqual(["admin", "d", "server"]);
    await newer.verify();
    await newer.close();
  });

  it("is refused once something was removed, which the one server of a file does at once", async () => {
    await makeCatalog();
    await (await openNewer([added, removed])).close();
    const why = `(schema ${known + 2}, for programs that know ${known + 2}; this one knows ${known})`;
    expect(await refusalOf(open())).toContain(why);
    expect(await refusalOf(open(path, "admin"))).toContain(why);
  });

  function openNewer(more: readonly Migration[]): Promise<CatalogDatabase> {
    const migrations = [...MIGRATIONS, ...more];
    return openSqliteCatalog({ path, clock: systemClock, log: silentLog, migrations, mode: "server" });
  }
});

describe("migrations", () => {
  it("leave nothing of one that is killed", async () => {
    await makeCatalog();
    const child = startChild("migrate for ever", path);
    expect(await child.next()).toBe("migrating");
    await sleep(systemClock, 300);
    child.process.kill("SIGKILL");
    await child.exited;
    withFile((db) => expect(db.prepare("SELECT name FROM sqlite_schema WHERE name = 'half'").all()).toEqual([]));
    const catalog = await open();
    await catalog.verify();
    await catalog.close();
  });

  it("run once each, in order", () => {
    expect(migrated([first])).toBe(1);
    expect(migrated([first, second])).toBe(2);
    expect(migrated([first, second])).toBe(2);
    withFile((db) => expect(db.prepare("SELECT x FROM b").all()).toEqual([{ x: 5 }]));
    // A new file gets its first rows, an upgraded one gets none.
    withFile((db) => expect(db.prepare("SELECT x FROM a").all()).toEqual([{ x: 7 }]));
  });

  it("leave nothing of one that fails", () => {
    expect(() => migrated([first, second, broken])).toThrow("already exists");
    expect(migrated([first, second])).toBe(2);
    withFile((db) => expect(db.prepare("SELECT name FROM sqlite_schema WHERE name = 'c'").all()).toEqual([]));
  });

  it("are the server's to run on a catalog that exists", () => {
    expect(migrated([first], false)).toBe(1);
    expect(() => migrated([first, second], false)).toThrow(/start the server once/);
    expect(migrated([first, second])).toBe(2);
  });
});
