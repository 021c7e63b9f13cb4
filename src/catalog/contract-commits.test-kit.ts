import { expect, it } from "vitest";
import { LIMITS } from "../core/limits.ts";
import type { ColumnStats } from "../format/types.ts";
import type { NewExtent } from "./catalog.ts";
import {
  aFlush,
  aLedgerEntry,
  anExtent,
  column,
  committed,
  failureOf,
  type Subject,
} from "./contract-fixtures.test-kit.ts";

export function commitContract({ catalog, clock, table }: Subject): void {
  it("makes one snapshot of all flushes, seen at once", async () => {
    const events = await table();
    clock().advance(5);
    const [first, second] = await catalog().commit([aFlush(events), aFlush(events)]);
    const { snapshot } = committed(first);
    expect(committed(second).snapshot).toEqual(snapshot);
    expect(snapshot).toEqual({ id: 1, committedAtMs: clock().nowMs() });
    expect(await catalog().head()).toEqual(snapshot);
    expect(await catalog().extents(events.id, snapshot.id)).toHaveLength(2);
    expect(await catalog().tableStats(events.id)).toEqual({ rows: 20, extents: 2, sizeBytes: 2_000 });
  });

  it("makes no snapshot of nothing", async () => {
    expect(await catalog().commit([])).toEqual([]);
    expect((await catalog().head()).id).toBe(0);
  });

  it("numbers concurrent commits without a gap and loses none", async () => {
    const events = await table();
    const commits = Array.from({ length: 50 }, (_, i) =>
      catalog().commit([aFlush(events, { ledger: [aLedgerEntry(`key ${i}`)] })]),
    );
    const ids = (await Promise.all(commits)).map(([outcome]) => committed(outcome).snapshot.id);
    expect(ids.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, i) => i + 1));
    expect(await catalog().extents(events.id, 50)).toHaveLength(50);
    expect(await catalog().extents(events.id, 20)).toHaveLength(20);
  });

  it("never lets a snapshot's time decrease", async () => {
    const events = await table();
    const [before] = await catalog().commit([aFlush(events)]);
    clock().advance(-60_000);
    const [after] = await catalog().commit([aFlush(events)]);
    expect(committed(after).snapshot.committedAtMs).toBe(committed(before).snapshot.committedAtMs);
  });

  it("stores nothing of a commit that repeats an extent id", async () => {
    const events = await table();
    const extent = anExtent();
    await catalog().commit([aFlush(events, { extents: [extent] })]);
    const again = catalog().commit([
      aFlush(events, { ledger: [aLedgerEntry("k")], newColumns: [column("fresh")] }),
      aFlush(events, { extents: [{ ...extent, key: "elsewhere" }] }),
    ]);
    await expect(again).rejects.toThrow(extent.id);
    expect((await catalog().head()).id).toBe(1);
    expect(await catalog().table("default", "events")).toEqual(events);
    expect((await catalog().lookUpKey(events.id, "k")).entry).toBeUndefined();
    expect(await catalog().extents(events.id, 9)).toHaveLength(1);
    // What was read inside the failed transaction must not linger in a cache.
    const [next] = await catalog().commit([aFlush(events, { newColumns: [column("other")] })]);
    expect(committed(next)).toMatchObject({ snapshot: { id: 2 }, schemaVersion: 2 });
  });

  it("refuses extents that cannot be true", async () => {
    const events = await table();
    const broken: Record<string, Partial<NewExtent>> = {
      "no rows": { rows: 0 },
      "a fraction of a row": { rows: 1.5 },
      "no size": { sizeBytes: 0 },
      "more bytes than a number says exactly": { sizeBytes: 2 ** 53 },
      "no checksum": { checksum: "ABC" },
      "times in the wrong order": { minAtNs: 2n, maxAtNs: 1n },
      "a time past 64 bits": { maxAtNs: 2n ** 63n },
      "an empty key": { key: "" },
      "a NUL in its key": { key: "a\0b" },
      "statistics of an unknown column": { stats: [{ name: "nope", nullCount: 0 }] },
    };
    for (const [what, overrides] of Object.entries(broken)) {
      const committing = catalog().commit([aFlush(events), aFlush(events, { extents: [anExtent(overrides)] })]);
      expect(`${what}: ${await failureOf(committing)}`).toMatch(/: catalog invariant/);
    }
    expect((await catalog().head()).id).toBe(0);
    expect(await catalog().extents(events.id, 9)).toEqual([]);
  });

  it("refuses a flush of an unknown table or of a schema version to come", async () => {
    const events = await table();
    await expect(catalog().commit([aFlush({ ...events, id: 4711 })])).rejects.toThrow("4711");
    await expect(catalog().commit([aFlush({ ...events, schemaVersion: 9 })])).rejects.toThrow("version 9");
  });
}

export function schemaConflictContract({ catalog, table }: Subject): void {
  it("adds the columns that a flush found", async () => {
    const events = await table();
    const stats = [{ name: "found", nullCount: 3 }];
    const [outcome] = await catalog().commit([
      aFlush(events, { newColumns: [column("found"), column("more")], extents: [anExtent({ stats })] }),
    ]);
    expect(committed(outcome).schemaVersion).toBe(2);
    const after = await catalog().table("default", "events");
    expect(after?.schemaVersion).toBe(2);
    // They came with the commit's snapshot; those of the table's creation with none.
    expect(after?.columns.slice(0, 2).map(({ sinceSnapshot }) => sinceSnapshot)).toEqual([undefined, undefined]);
    expect(after?.columns.slice(2)).toEqual([
      { ...column("found"), id: 3, sinceSnapshot: 1 },
      { ...column("more"), id: 4, sinceSnapshot: 1 },
    ]);
    const [extent] = await catalog().extents(events.id, 1);
    expect(extent).toMatchObject({ schemaVersion: 2, stats });
  });

  it("takes a column that was added meanwhile with the same name and type", async () => {
    const events = await table();
    await catalog().addColumns(events.id, [column("Found"), column("other")]);
    const [outcome] = await catalog().commit([aFlush(events, { newColumns: [column("found")] })]);
    expect(committed(outcome).schemaVersion).toBe(2);
    expect((await catalog().table("default", "events"))?.columns).toHaveLength(4);
  });

  it("takes a flush sealed under an earlier version that adds nothing, under that version", async () => {
    const events = await table();
    await catalog().addColumns(events.id, [column("later")]);
    const [outcome] = await catalog().commit([aFlush(events)]);
    expect(committed(outcome).schemaVersion).toBe(2);
    expect((await catalog().extents(events.id, 1))[0]?.schemaVersion).toBe(1);
  });

  it("lets the second of two flushes of one commit find the first one's columns", async () => {
    const events = await table();
    const outcomes = await catalog().commit([
      aFlush(events, { newColumns: [column("a")] }),
      aFlush(events, { newColumns: [column("A"), column("b")] }),
      aFlush(events, { newColumns: [column("b", "long")] }),
    ]);
    expect(outcomes.map(({ kind }) => kind)).toEqual(["committed", "committed", "schema_conflict"]);
    expect((await catalog().table("default", "events"))?.columns.map(({ name }) => name)).toEqual([
      "at",
      "body",
      "a",
      "b",
    ]);
    expect(await catalog().extents(events.id, 1)).toHaveLength(2);
  });

  it("sends back a flush whose column has another type, alone and whole", async () => {
    const events = await table();
    await catalog().addColumns(events.id, [column("found", "long")]);
    const outcomes = await catalog().commit([
      aFlush(events, { newColumns: [column("fresh"), column("FOUND")], ledger: [aLedgerEntry("k")] }),
      aFlush(events),
    ]);
    expect(outcomes[0]).toEqual({ kind: "schema_conflict" });
    expect(committed(outcomes[1]).snapshot.id).toBe(1);
    expect((await catalog().table("default", "events"))?.columns.map(({ name }) => name)).not.toContain("fresh");
    expect((await catalog().lookUpKey(events.id, "k")).entry).toBeUndefined();
    expect(await catalog().extents(events.id, 1)).toHaveLength(1);
  });

  it("sends back a flush whose columns would pass the cap, and makes no snapshot of it", async () => {
    const full = await table(Array.from({ length: LIMITS.columnsPerTable - 1 }, (_, i) => column(`c${i}`)));
    const stats: ColumnStats[] = [];
    const flush = (...names: string[]) =>
      aFlush(full, { newColumns: names.map((n) => column(n)), extents: [anExtent({ stats })] });
    expect(await catalog().commit([flush("a", "b")])).toEqual([{ kind: "schema_conflict" }]);
    expect((await catalog().head()).id).toBe(0);
    expect((await catalog().commit([flush("C1", "a"), flush("b")])).map(({ kind }) => kind)).toEqual([
      "committed",
      "schema_conflict",
    ]);
  });

  it("throws at a name that no column may have", async () => {
    const events = await table();
    const committing = catalog().commit([aFlush(events, { newColumns: [column("a\nb")] })]);
    await expect(committing).rejects.toMatchObject({ code: "invalid_name" });
  });
}
