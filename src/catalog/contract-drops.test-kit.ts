import { expect, it } from "vitest";
import type { TableRecord } from "./catalog.ts";
import type { CatalogDatabase } from "./catalog-database.ts";
import {
  aFlush,
  aLedgerEntry,
  anExtent,
  column,
  committed,
  failureOf,
  type Subject,
} from "./contract-fixtures.test-kit.ts";

type WithRecords = Omit<Subject, "catalog"> & { catalog: () => CatalogDatabase };

const EVERYTHING = [{ range: {}, tests: [] }];

const note = (node: string, holder: string) => ({
  sql: "INSERT INTO leases (name, holder, fence, expires_at_ms) VALUES (?, ?, 1, (SELECT max(id) FROM snapshots))",
  values: [node, holder],
});

export function dropsContract({ catalog, clock, table }: WithRecords): void {
  const again = async (name = "events") =>
    (await catalog().createTable({ database: "default", name, columns: [column("at", "timestamp"), column("body")] }))
      .table;
  const rowsAt = async ({ id }: TableRecord, atSnapshot: number) => {
    const { extents } = await catalog().planScan({ tableId: id, atSnapshot, filters: EVERYTHING });
    return extents.reduce((sum, { rows }) => sum + rows, 0);
  };

  it("frees the name at once, with one snapshot, and says what went", async () => {
    const events = await table();
    await catalog().commit([aFlush(events), aFlush(events)]);
    const generation = await catalog().schemaGeneration();
    clock().advance(1_000);
    const snapshot = { id: 2, committedAtMs: clock().nowMs() };
    const dropped = await catalog().dropTable(events.id);
    expect(dropped).toEqual({ snapshot, tables: 1, rows: 20, extents: 2, sizeBytes: 2_000 });
    expect(await catalog().head()).toEqual(snapshot);
    expect(await catalog().schemaGeneration()).not.toBe(generation);
    expect(await catalog().table("default", "events")).toBeUndefined();
    expect((await catalog().resolve("default", ["events"]))?.tables).toEqual([undefined]);
    expect(await catalog().tables("default")).toEqual([]);
    expect(await catalog().allTables()).toEqual([]);
    expect(await catalog().tableStats(events.id)).toEqual({ rows: 0, extents: 0, sizeBytes: 0 });
    expect(await catalog().dropTable(events.id)).toBeUndefined();
    expect(await catalog().dropTable(4711)).toBeUndefined();
    expect((await catalog().head()).id).toBe(2);
  });

  it("is not found by the name under which its row waits", async () => {
    const events = await table();
    const { database } = await catalog().createDatabase("other");
    await catalog().dropTable(events.id);
    await catalog().dropDatabase(database.id);
    expect(await catalog().table("default", `events#${events.id}`)).toBeUndefined();
    expect((await catalog().resolve("default", [`events#${events.id}`]))?.tables).toEqual([undefined]);
    expect(await catalog().database(`other#${database.id}`)).toBeUndefined();
    expect(await catalog().resolve(`other#${database.id}`, [])).toBeUndefined();
    expect((await catalog().databases()).map(({ name }) => name)).toEqual(["default"]);
  });

  it("makes another table of the name, without rows, keys or columns of the first, at any snapshot", async () => {
    const first = await table();
    const flush = aFlush(first, { newColumns: [column("extra")], ledger: [aLedgerEntry("key")] });
    await catalog().commit([flush]);
    await catalog().dropTable(first.id);
    const second = await again("Events");
    expect(second.id).not.toBe(first.id);
    expect(second.columns.map(({ name }) => name)).toEqual(["at", "body"]);
    expect((await catalog().lookUpKey(first.id, "key")).entry).toBeUndefined();
    expect((await catalog().lookUpKey(second.id, "key")).entry).toBeUndefined();
    const [outcome] = await catalog().commit([aFlush(second, { ledger: [aLedgerEntry("key")] })]);
    expect(committed(outcome).snapshot.id).toBe(3);
    for (const snapshot of [0, 1, 2]) expect(await rowsAt(second, snapshot)).toBe(0);
    expect(await rowsAt(second, 3)).toBe(10);
    // A query that began before reads on.
    expect(await rowsAt(first, 1)).toBe(10);
    expect(await rowsAt(first, 2)).toBe(0);
  });

  it("sends back flushes of a dropped table, and takes their neighbours", async () => {
    const [events, other] = [await table(), await again("other")];
    await catalog().dropTable(events.id);
    const outcomes = await catalog().commit([
      aFlush(events),
      aFlush(other),
      aFlush(events, { newColumns: [column("extra")], ledger: [aLedgerEntry("key")] }),
    ]);
    expect(outcomes.map(({ kind }) => kind)).toEqual(["schema_conflict", "committed", "schema_conflict"]);
    expect(await catalog().commit([aFlush(events)])).toEqual([{ kind: "schema_conflict" }]);
    expect(await catalog().deadExtents(events.id, Number.MAX_SAFE_INTEGER)).toEqual([]);
  });

  it("refuses what would change a dropped table", async () => {
    const events = await table();
    const extent = anExtent();
    await catalog().commit([aFlush(events, { extents: [extent] })]);
    await catalog().dropTable(events.id);
    const change = { tableId: events.id, schemaVersion: 1 };
    expect(
      await catalog().mergeExtents({ ...change, inputs: [extent.id], outputs: [anExtent({ rows: 10 })] }),
    ).toBeUndefined();
    expect(await catalog().deleteRows({ ...change, groups: [], rows: 0 })).toBeUndefined();
    expect(await failureOf(catalog().addColumns(events.id, [column("a")]))).toBe("table_not_found");
    expect(await failureOf(catalog().setRetention(events.id, 1))).toBe("table_not_found");
    expect(await failureOf(catalog().setClusterBy(events.id, []))).toBe("table_not_found");
  });

  it("keeps the extents for whoever reads them, and is forgotten after them", async () => {
    const events = await table();
    const extent = anExtent();
    await catalog().commit([aFlush(events, { extents: [extent], ledger: [aLedgerEntry("key")] })]);
    await catalog().dropTable(events.id);
    const droppedAtMs = clock().nowMs();
    const dropped = { id: events.id, database: "default", name: "events", droppedAtMs };
    expect(await catalog().droppedTables()).toEqual([dropped]);
    expect(await failureOf(catalog().forgetExtents([extent.id]))).toMatch(/readableExtentsAreNotForgotten/);
    expect(await catalog().forgetTable(events.id)).toBe(false);
    await catalog().commit([aFlush(await again())]);
    await catalog().expireSnapshots(3);
    expect((await catalog().deadExtents(events.id, Number.MAX_SAFE_INTEGER)).map(({ id }) => id)).toEqual([extent.id]);
    expect(await catalog().goneExtents(["x", extent.id, "bad\0id"])).toEqual(["x", "bad\0id"]);
    expect(await catalog().forgetExtents([extent.id])).toEqual([extent.id]);
    expect(await catalog().goneExtents([extent.id])).toEqual([extent.id]);
    expect(await catalog().goneExtents([])).toEqual([]);
    expect(await catalog().forgetTable(events.id)).toBe(true);
    expect(await catalog().droppedTables()).toEqual([]);
    expect(await catalog().forgetTable(events.id)).toBe(false);
    const present = await again();
    expect(await catalog().forgetTable(present.id)).toBe(false);
    expect(await catalog().table("default", "events")).toEqual(present);
  });

  it("drops a database with its tables, and remembers when a name went", async () => {
    const events = await table();
    const other = await again("other");
    await catalog().commit([aFlush(events), aFlush(other)]);
    const { database } = await catalog().createDatabase("kept");
    expect(await catalog().droppedAt("default", "events")).toBeUndefined();
    clock().advance(1_000);
    await catalog().dropTable(other.id);
    const otherMs = clock().nowMs();
    expect(await catalog().droppedAt("Default", "OTHER")).toBe(otherMs);
    expect(await catalog().droppedAt("default", "events")).toBeUndefined();
    clock().advance(1_000);
    const dropped = await catalog().dropDatabase(events.databaseId);
    expect(dropped).toMatchObject({ tables: 1, rows: 10, extents: 1, sizeBytes: 1_000 });
    expect(await catalog().droppedAt("default", "events")).toBe(clock().nowMs());
    expect(await catalog().droppedAt("default", "never")).toBe(clock().nowMs());
    expect(await catalog().droppedAt("kept", "events")).toBeUndefined();
    expect(await catalog().databases()).toEqual([database]);
    expect(await catalog().dropDatabase(events.databaseId)).toBeUndefined();
    expect(await catalog().dropDatabase(4711)).toBeUndefined();
    const anew = await again();
    expect(anew.databaseId).not.toBe(events.databaseId);
    expect(await catalog().tables("default")).toEqual([anew]);
    await catalog().commit([aFlush(anew)]);
    await catalog().expireSnapshots((await catalog().head()).id);
    for (const { id } of await catalog().droppedTables()) {
      const dead = await catalog().deadExtents(id, Number.MAX_SAFE_INTEGER);
      await catalog().forgetExtents(dead.map((extent) => extent.id));
      expect(await catalog().forgetTable(id)).toBe(true);
    }
    expect(await catalog().dropDatabase(database.id)).toMatchObject({ tables: 0, rows: 0 });
    expect((await catalog().createDatabase("kept")).created).toBe(true);
  });

  it("does what it is given in the same transaction, or neither", async () => {
    const events = await table();
    expect(await failureOf(catalog().dropTable(events.id, [note("a", "x"), note("a", "y")]))).toMatch(/UNIQUE|unique/i);
    expect(await catalog().table("default", "events")).toEqual(events);
    expect((await catalog().head()).id).toBe(0);
    await catalog().dropTable(events.id, [note("a", "x")]);
    const rows = await catalog().records.rows("SELECT holder, expires_at_ms FROM leases");
    expect(rows.map((row) => [row["holder"], Number(row["expires_at_ms"])])).toEqual([["x", 1]]);
  });
}

export function rowDeletionsContract({ catalog, clock, table }: WithRecords): void {
  const commit = async (events: TableRecord, count: number) => {
    const extents = Array.from({ length: count }, () => anExtent());
    await catalog().commit([aFlush(events, { extents })]);
    return extents.map(({ id }) => id);
  };
  const liveIds = async ({ id }: TableRecord, atSnapshot: number) =>
    (await catalog().extents(id, atSnapshot, {}, [])).map((extent) => extent.id);

  it("replaces extents by the rows that are left, in one snapshot, before which the table cannot be read", async () => {
    const events = await table();
    const { table: other } = await catalog().createTable({ database: "d", name: "t", columns: events.columns });
    const ids = await commit(events, 4);
    await commit(other, 1);
    clock().advance(1_000);
    const [first, second] = [anExtent({ rows: 3, sizeBytes: 300 }), anExtent({ rows: 9, sizeBytes: 900 })];
    const snapshot = await catalog().deleteRows({
      tableId: events.id,
      schemaVersion: 1,
      groups: [
        { inputs: ids.slice(0, 1), outputs: [first] },
        { inputs: ids.slice(1, 2), outputs: [] },
        { inputs: ids.slice(2, 3), outputs: [second] },
      ],
      rows: 18,
    });
    expect(snapshot).toEqual({ id: 3, committedAtMs: clock().nowMs() });
    expect(await catalog().head()).toEqual(snapshot);
    expect(await liveIds(events, 3)).toEqual([ids[3], first.id, second.id]);
    expect(await catalog().tableStats(events.id)).toEqual({ rows: 22, extents: 3, sizeBytes: 2_200 });
    const scan = { tableId: events.id, filters: EVERYTHING };
    expect((await catalog().planScan({ ...scan, atSnapshot: 3 })).extents).toHaveLength(3);
    expect(await failureOf(catalog().planScan({ ...scan, atSnapshot: 2 }))).toBe("snapshot_expired");
    expect(await failureOf(catalog().extents(events.id, 2))).toBe("snapshot_expired");
    expect((await catalog().oldestSnapshot(events.id)).id).toBe(3);
    expect((await catalog().oldestSnapshot()).id).toBe(0);
    expect(await liveIds(other, 2)).toHaveLength(1);
  });

  it("keeps what ended for open queries until snapshots expire, whatever is read", async () => {
    const events = await table();
    const ids = await commit(events, 1);
    await catalog().holdSnapshots("a", 1, 60_000);
    const deletion = { tableId: events.id, schemaVersion: 1, groups: [{ inputs: ids, outputs: [] }], rows: 10 };
    await catalog().deleteRows(deletion);
    expect((await catalog().oldestKeptSnapshot(events.id)).id).toBe(0);
    expect((await catalog().expireTable(events.id, 2)).id).toBe(1);
    expect(await failureOf(catalog().forgetExtents(ids))).toMatch(/readableExtentsAreNotForgotten/);
    await catalog().releaseSnapshots("a");
    expect((await catalog().expireSnapshots(2)).id).toBe(2);
    expect((await catalog().oldestKeptSnapshot(events.id)).id).toBe(2);
    expect(await catalog().forgetExtents(ids)).toEqual(ids);
  });

  it("makes a snapshot when no row was there to be deleted: older ones may have some", async () => {
    const events = await table();
    const ids = await commit(events, 1);
    const deletion = { tableId: events.id, schemaVersion: 1, groups: [], rows: 0 };
    expect((await catalog().deleteRows(deletion))?.id).toBe(2);
    expect(await liveIds(events, 2)).toEqual(ids);
    expect(await failureOf(catalog().extents(events.id, 1))).toBe("snapshot_expired");
  });

  it("stores nothing when an input is not alive: a merge, a retention or a deletion was faster", async () => {
    const events = await table();
    const ids = await commit(events, 2);
    const of = { tableId: events.id, schemaVersion: 1 };
    await catalog().mergeExtents({ ...of, inputs: ids.slice(0, 1), outputs: [anExtent({ rows: 10 })] });
    const late = { ...of, groups: [{ inputs: ids, outputs: [] }], rows: 20, also: [note("a", "b")] };
    expect(await catalog().deleteRows(late)).toBeUndefined();
    expect(
      await catalog().deleteRows({ ...of, groups: [{ inputs: ["unknown"], outputs: [] }], rows: 0 }),
    ).toBeUndefined();
    expect((await catalog().head()).id).toBe(2);
    expect((await catalog().oldestSnapshot(events.id)).id).toBe(0);
    expect(await catalog().records.rows("SELECT name FROM leases")).toEqual([]);
  });

  it("refuses deletions that lose or make rows, or cannot be true", async () => {
    const events = await table();
    const ids = await commit(events, 2);
    const group = { inputs: ids.slice(0, 1), outputs: [anExtent({ rows: 4 })] };
    const sound = { tableId: events.id, schemaVersion: 1, groups: [group], rows: 6 };
    const broken: [RegExp, Partial<typeof sound>][] = [
      [/deletionsConserveRows/, { rows: 5 }],
      [/deletionsConserveRows/, { rows: 7 }],
      [/deletionsConserveRows/, { groups: [{ ...group, outputs: [anExtent({ rows: 16 })] }], rows: -6 }],
      [/input twice/, { groups: [group, { ...group, outputs: [anExtent({ rows: 4 })] }] }],
      [/version 2/, { schemaVersion: 2 }],
      [/4711/, { tableId: 4711 }],
      [/catalog already/, { groups: [{ ...group, outputs: [anExtent({ id: ids[1] ?? "", rows: 4 })] }] }],
      [/extentIsWellFormed/, { groups: [{ ...group, outputs: [anExtent({ rows: 4, checksum: "ABC" })] }] }],
    ];
    for (const [failure, part] of broken) {
      expect(await failureOf(catalog().deleteRows({ ...sound, ...part }))).toMatch(failure);
    }
    const marked = anExtent({ rows: 4 });
    await catalog().markPendingDeletion([marked.id]);
    const refused = { ...sound, groups: [{ ...group, outputs: [marked] }] };
    expect(await failureOf(catalog().deleteRows(refused))).toMatch(/pending deletion/);
    expect((await catalog().head()).id).toBe(1);
    expect(await liveIds(events, 1)).toEqual(ids);
    expect(await catalog().deleteRows(sound)).toMatchObject({ id: 2 });
  });

  it("keeps how new rows are, group by group", async () => {
    const events = await table();
    const future = { minAtNs: 1n, maxAtNs: 2n ** 62n };
    const [old, young] = [anExtent(future), anExtent(future)];
    await catalog().commit([aFlush(events, { extents: [old] })]);
    const oldMs = clock().nowMs();
    clock().advance(10_000);
    await catalog().commit([aFlush(events, { extents: [young] })]);
    const outputs = [anExtent({ ...future, rows: 9 }), anExtent({ ...future, rows: 9 })] as const;
    await catalog().deleteRows({
      tableId: events.id,
      schemaVersion: 1,
      groups: [
        { inputs: [old.id], outputs: [outputs[0]] },
        { inputs: [young.id], outputs: [outputs[1]] },
      ],
      rows: 2,
    });
    const expired = await catalog().expiredExtents(events.id, oldMs + 1, 10);
    expect(expired.map(({ id }) => id)).toEqual([outputs[0].id]);
    expect(await catalog().expiredExtents(events.id, clock().nowMs() + 1, 10)).toHaveLength(2);
  });

  it("does what it is given in the same transaction", async () => {
    const events = await table();
    const sql =
      "INSERT INTO leases (name, holder, fence, expires_at_ms) VALUES ('a', 'b', (SELECT max(id) FROM snapshots), ?)";
    await catalog().deleteRows({
      tableId: events.id,
      schemaVersion: 1,
      groups: [],
      rows: 0,
      also: [{ sql, values: [{ nowPlusMs: 5 }] }],
    });
    const [row] = await catalog().records.rows("SELECT fence, expires_at_ms FROM leases");
    expect([Number(row?.["fence"]), Number(row?.["expires_at_ms"])]).toEqual([1, clock().nowMs() + 5]);
  });
}
