import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { ManualClock, sleep, systemClock } from "../../core/clock.ts";
import { silentLog } from "../../core/log.ts";
import type { CatalogDatabase } from "../catalog-database.ts";
import { readEarly, type TransactOutcome } from "../../db/records.ts";
import { aFlush, aLedgerEntry, anExtent, column, committed } from "../contract-fixtures.test-kit.ts";
import { catalogContract } from "../contract.test-kit.ts";
import { Connection } from "../../db/sqlite/connection.ts";
import { openConnection } from "../../db/sqlite/open.ts";
import { CROWDED } from "./crowded.ts";
import { ADDED_SINCE, DEAD, EXPIRED, OVERLAPPING, spanClassOf } from "./extents.ts";
import { MIGRATIONS } from "../migrations.test-kit.ts";
import { Reader, UNPUBLISHED_DAYS, UNPUBLISHED_DAYS_OF_TABLE } from "./reader.ts";
import { openSqliteCatalog, openSqliteParts } from "./sqlite.ts";

/** The file of a catalog as it is made, to be copied: that is faster than to make it each time. */
let born: string;
beforeAll(async () => {
  born = mkdtempSync(join(tmpdir(), "engine-catalog-"));
  await (await openIn(born, new ManualClock())).close();
});
afterAll(() => rmSync(born, { recursive: true }));

function openIn(folder: string, clock: ManualClock): Promise<CatalogDatabase> {
  const path = join(folder, "catalog.db");
  return openSqliteCatalog({ path, clock, log: silentLog, migrations: MIGRATIONS, mode: "server" });
}

catalogContract("sqlite", async () => {
  const folder = mkdtempSync(join(tmpdir(), "engine-catalog-"));
  const path = join(folder, "catalog.db");
  copyFileSync(join(born, "catalog.db"), path);
  const clock = new ManualClock();
  const catalog = await openIn(folder, clock);
  // The catalog's own starts a thread each time, which takes longer than all that most of the tests do.
  const verify = async () => {
    const connection = openConnection({ path, busyTimeoutMs: 1_000, part: "reader" });
    try {
      new Reader(connection).verify();
    } finally {
      connection.close();
    }
  };
  const close = async () => {
    await catalog.close();
    rmSync(folder, { recursive: true });
  };
  return { catalog, close, clock, verify };
});

const TOKEN = {
  sql:
    "INSERT INTO api_tokens (id, hash, name, preview, owner, role, created_at_ms) " +
    "VALUES ('a', 'h', 'n', '', 'me', 'read', 1) ON CONFLICT DO NOTHING",
};

async function durable(outcome: TransactOutcome | undefined): Promise<void> {
  if (outcome?.done === true) await outcome.durable?.();
}

describe("the sqlite catalog", () => {
  const clock = new ManualClock();
  const failures: Error[] = [];
  const onFailure = (reason: Error) => void failures.push(reason);
  let folder: string;
  let path: string;
  let catalog: CatalogDatabase;
  let parts: Awaited<ReturnType<typeof openSqliteParts>>["parts"];

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "engine-catalog-"));
    path = join(folder, "catalog.db");
    const options = {
      path,
      clock,
      log: silentLog,
      migrations: MIGRATIONS,
      mode: "server",
      busyTimeoutMs: 300,
      onFailure,
    } as const;
    ({ catalog, parts } = await openSqliteParts(options));
  });
  afterEach(async () => {
    await catalog.close();
    rmSync(folder, { recursive: true });
    failures.length = 0;
  });

  const aTable = async () => {
    const columns = [column("at", "timestamp")];
    return (await catalog.createTable({ database: "d", name: "t", columns })).table;
  };

  it("finds ten extents of many by the index on time, whatever else is in the table", async () => {
    const { id } = await aTable();
    const second = 1_000_000_000n;
    const at = (i: number) => ({ minAtNs: BigInt(i) * second, maxAtNs: BigInt(i + 1) * second - 1n });
    const extents = Array.from({ length: 20_000 }, (_, i) => anExtent(at(i)));
    extents.push(anExtent({ minAtNs: 0n, maxAtNs: 20_000n * second }));
    await catalog.commit([aFlush({ ...(await aTable()), id }, { extents })]);
    const range = { minNs: 10_000n * second, maxNs: 10_009n * second };
    const found = await catalog.extents(id, 1, range);
    expect(found).toHaveLength(11);

    const connection = new Connection(path, { readOnly: true, busyTimeoutMs: 0 });
    const plan = connection.all(`EXPLAIN QUERY PLAN ${OVERLAPPING}`, id, 30, 0, 0, 0, 1, 1).map((row) => row["detail"]);
    expect(plan).toEqual([
      "SEARCH extents USING INDEX extents_by_time (table_id=? AND span_class=? AND min_at_ns>? AND min_at_ns<?)",
    ]);
    const since = connection.all(`EXPLAIN QUERY PLAN ${ADDED_SINCE}`, id, 5).map((row) => row["detail"]);
    expect(since).toEqual(["SEARCH extents USING INDEX extents_by_table (table_id=? AND rowid>?)"]);
    // The index bounds the search to about twice what is found: an extent's class says how wide it may be.
    const spanClass = spanClassOf(0n, second - 1n);
    const lo = range.minNs - (1n << BigInt(spanClass));
    const read =
      "SELECT count(*) AS n FROM extents WHERE table_id = ? AND span_class = ? AND min_at_ns BETWEEN ? AND ?";
    expect(Number(connection.get(read, id, spanClass, lo, range.maxNs)?.["n"])).toBeLessThan(20);
    connection.close();
  });

  it("looks at what is alive, or dead, by an index only", async () => {
    await aTable();
    const connection = new Connection(path, { readOnly: true, busyTimeoutMs: 0 });
    const planOf = (sql: string, ...parameters: number[]) =>
      connection.all(`EXPLAIN QUERY PLAN ${sql}`, ...parameters).map((row) => row["detail"]);
    expect(planOf(EXPIRED, 1, 2, 3)).toEqual([
      "SEARCH extents USING INDEX extents_alive (table_id=? AND newest_ns<?)",
      "USE TEMP B-TREE FOR LAST TERM OF ORDER BY",
    ]);
    expect(planOf(CROWDED, 1, 2, 3)[0]).toBe("SCAN extents USING COVERING INDEX extents_alive");
    expect(planOf(UNPUBLISHED_DAYS, 1, 2)).toContain("SCAN e USING INDEX extents_unpublished");
    expect(planOf(UNPUBLISHED_DAYS_OF_TABLE, 1, 1, 2, 3)).toContain(
      "SEARCH e USING INDEX extents_unpublished (table_id=? AND begin_snapshot<?)",
    );
    expect(planOf(DEAD, 1, 2, 3)[0]).toMatch(/^SEARCH extents USING INDEX extents_by_deletion \(table_id=\? AND/);
    connection.close();
  });

  it("reads at once what another process's connection wrote, cached columns included", async () => {
    const before = await aTable();
    expect((await catalog.table("d", "t"))?.columns).toBe((await catalog.table("d", "t"))?.columns);
    const admin = await openSqliteCatalog({ path, clock, log: silentLog, migrations: MIGRATIONS, mode: "admin" });
    const after = await admin.addColumns(before.id, [column("added")]);
    expect(await catalog.table("d", "t")).toEqual(after);
    expect(await catalog.tables("d")).toEqual([after]);
    // The writer's own idea of the table follows too: the flush names a column that the other process added.
    const extents = [anExtent({ stats: [{ name: "added", nullCount: 0 }] })];
    const [outcome] = await catalog.commit([aFlush(after, { extents })]);
    expect(committed(outcome).schemaVersion).toBe(2);
    await admin.close();
  });

  it("waits for another process's write, and reads go on meanwhile", async () => {
    const table = await aTable();
    const other = new DatabaseSync(path);
    other.exec("BEGIN IMMEDIATE");
    const waiting = catalog.commit([aFlush(table, { ledger: [aLedgerEntry("k")] })]);
    await sleep(systemClock, 50);
    expect(await catalog.head()).toMatchObject({ id: 0 });
    expect(await catalog.extents(table.id, 9)).toEqual([]);
    other.exec("ROLLBACK");
    expect(committed((await waiting)[0]).snapshot.id).toBe(1);
    other.close();
  });

  it("writes early whoever else is writing", async () => {
    const { records } = catalog;
    const other = new DatabaseSync(path);
    other.exec("BEGIN IMMEDIATE");
    const waiting = records.transact([TOKEN], { early: true });
    expect(await records.rows("SELECT id FROM api_tokens")).toEqual([]);
    other.exec("COMMIT");
    other.close();
    expect(await waiting).toEqual({ done: true, rows: [[]] });
    expect(await records.rows("SELECT id FROM api_tokens")).toEqual([{ id: "a" }]);
  });

  it("shows what it has written early when that is durable", async () => {
    const { records } = catalog;
    const gate = Promise.withResolvers<void>();
    const synced = vi.spyOn(parts.log, "sync").mockImplementation(() => gate.promise);
    const told: string[] = [];
    const outcome = await records.transact([TOKEN], { early: true });
    const isDurable = durable(outcome).then(() => told.push("durable"));
    const reading = records.rows("SELECT id FROM api_tokens").then((rows) => told.push(`${rows.length} row`));
    // By the other thread, which syncs for itself.
    await records.transact([{ sql: "DELETE FROM api_tokens" }]);
    expect(told).toEqual([]);
    gate.resolve();
    await Promise.all([isDurable, reading]);
    expect(told).toEqual(["durable", "1 row"]);
    expect(synced).toHaveBeenCalledOnce();
    expect(await records.rows("SELECT id FROM api_tokens")).toEqual([]);
  });

  it("makes durable what it has written early when somebody waits for it, and soon in any case", async () => {
    const { records } = catalog;
    const synced = vi.spyOn(parts.log, "sync");
    const first = await records.transact([TOKEN], { early: true });
    const second = await records.transact([{ sql: "DELETE FROM api_tokens" }], { early: true });
    expect(synced).not.toHaveBeenCalled();
    await Promise.all([durable(first), durable(second)]);
    expect(synced).toHaveBeenCalledTimes(1);
    await records.transact([TOKEN], { early: true });
    await vi.waitFor(() => expect(synced).toHaveBeenCalledTimes(2), 60_000);
    await records.transact([TOKEN], { early: true });
    await catalog.close();
    expect(synced).toHaveBeenCalledTimes(3);
  });

  it("syncs once more for what is written early while a sync runs, for all of that at once", async () => {
    const { records } = catalog;
    const gate = Promise.withResolvers<void>();
    const synced = vi.spyOn(parts.log, "sync").mockImplementationOnce(() => gate.promise);
    const told: string[] = [];
    for (const name of ["a", "b", "c"]) {
      void durable(await records.transact([TOKEN], { early: true })).then(() => told.push(name));
    }
    await new Promise(setImmediate);
    expect(synced).toHaveBeenCalledTimes(1);
    gate.resolve();
    await vi.waitFor(() => expect(told).toEqual(["a", "b", "c"]), 60_000);
    expect(synced).toHaveBeenCalledTimes(2);
  });

  it("reads early what is to be written upon, and shows nothing of it", async () => {
    const { records } = catalog;
    const gate = Promise.withResolvers<void>();
    vi.spyOn(parts.log, "sync").mockImplementationOnce(() => gate.promise);
    await records.transact([TOKEN], { early: true });
    const sql = "SELECT id FROM api_tokens";
    const told: string[] = [];
    const shown = records.rows(sql).then(() => told.push("shown"));
    expect(await readEarly(records).rows(sql)).toEqual([{ id: "a" }]);
    await new Promise(setImmediate);
    expect(told).toEqual([]);
    gate.resolve();
    await shown;
  });

  it("fails when what it has written early cannot be made durable", async () => {
    const { records } = catalog;
    vi.spyOn(parts.log, "sync").mockRejectedValue(new Error("EIO: i/o error, fsync"));
    const [outcome, other] = await Promise.all([TOKEN, TOKEN].map((one) => records.transact([one], { early: true })));
    expect([outcome, other]).toMatchObject([{ done: true }, { done: true }]);
    await expect(durable(outcome)).rejects.toThrow("EIO");
    await vi.waitFor(
      () => expect(failures.map(String)).toEqual([expect.stringMatching(/was not synced: EIO/)]),
      60_000,
    );
    await expect(records.rows("SELECT id FROM api_tokens")).rejects.toThrow("EIO");
    await expect(records.transact([TOKEN])).rejects.toMatchObject({ code: "unavailable" });
  });

  it("gives up on a lock that is never given back, storing nothing, and works when it is", async () => {
    const table = await aTable();
    const other = new DatabaseSync(path);
    other.exec("BEGIN IMMEDIATE");
    await expect(catalog.commit([aFlush(table)])).rejects.toMatchObject({ code: "unavailable" });
    other.close();
    expect((await catalog.head()).id).toBe(0);
    expect(committed((await catalog.commit([aFlush(table)]))[0]).snapshot.id).toBe(1);
  });

  it.each(["writer", "reader"] as const)("fails as a whole when its %s's thread dies, and says so", async (part) => {
    const table = await aTable();
    const other = new DatabaseSync(path);
    other.exec("BEGIN IMMEDIATE");
    const commit = catalog.commit([aFlush(table)]).catch((error: unknown) => error);
    const extents = catalog.extents(table.id, 9).catch((error: unknown) => error);
    parts[part].kill();
    const reason = await commit;
    expect(reason).toBeInstanceOf(Error);
    // Not an error that says nothing was stored: the thread may have died on either side of the commit.
    expect(reason).not.toHaveProperty("code");
    expect(String(reason)).toMatch(/the catalog's thread ended/);
    await extents;
    expect(failures).toEqual([reason]);
    other.close();
    await expect(catalog.head()).rejects.toMatchObject({ code: "unavailable" });
    await expect(catalog.commit([aFlush(table)])).rejects.toMatchObject({ code: "unavailable" });
    await expect(catalog.verify()).rejects.toMatchObject({ code: "unavailable" });
    await catalog.close();
    catalog = await openSqliteCatalog({ path, clock, log: silentLog, migrations: MIGRATIONS, mode: "server" });
    const head = await catalog.head();
    expect(head.id).toBeLessThanOrEqual(1);
    expect(committed((await catalog.commit([aFlush(table)]))[0]).snapshot.id).toBe(head.id + 1);
    await catalog.verify();
  });

  it("refuses calls past what may wait", async () => {
    const calls = Array.from({ length: 5_000 }, () => catalog.databases().then(() => "answered", String));
    const answers = Object.groupBy(await Promise.all(calls), (answer) => answer);
    expect(answers["answered"]).toHaveLength(4_096);
    expect(Object.keys(answers)[1]).toMatch(/too many calls wait/);
    expect(await catalog.databases()).toEqual([]);
  });
});
