import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { aFlush, anExtent } from "../catalog/contract-fixtures.ts";
import { openSqliteCatalog } from "../catalog/sqlite/sqlite.ts";
import { ManualClock, systemClock } from "../core/clock.ts";
import { silentLog } from "../core/log.ts";
import { seededRandom, systemRandom } from "../core/random.ts";
import { DEFAULT_SHAPE } from "../format/types.ts";
import { FaultyStore } from "../io/objectstore/faulty.ts";
import { openFilesystemStore } from "../io/objectstore/filesystem.ts";
import { cleanup } from "./cleanup.ts";

test("deletes what died strictly before the time, bytes and records, and nothing that is alive", async () => {
  const folder = await mkdtemp(join(tmpdir(), "engine-cleanup-"));
  const clock = new ManualClock();
  const catalog = await openSqliteCatalog({ path: join(folder, "catalog.db"), clock, log: silentLog, mode: "server" });
  const inner = await openFilesystemStore({ root: join(folder, "data"), random: systemRandom, log: silentLog });
  const store = new FaultyStore({ inner, clock: systemClock, random: seededRandom(1) });
  try {
    const { table } = await catalog.createTable({ database: "d", name: "t", columns: DEFAULT_SHAPE });
    const ids = ["a", "b", "c"];
    for (const id of ids) await store.put(`d/t/${id}.tlm`, new Uint8Array(10));
    const extents = ids.map((id) => anExtent({ id, key: `d/t/${id}.tlm`, rows: 3, sizeBytes: 10 }));
    await catalog.commit([aFlush(table, { extents })]);
    clock.advance(1_000);
    await catalog.endExtents(table.id, ["a"]);
    const diedAtMs = clock.nowMs();
    clock.advance(1_000);
    await catalog.endExtents(table.id, ["b"]);

    expect(await cleanup({ catalog, store }, table.id, diedAtMs)).toEqual({ extents: 0, rows: 0, sizeBytes: 0 });
    // A store that fails leaves the records, so that the next run finds them again.
    store.script({ operation: "delete", fault: { kind: "fail_after" } });
    await expect(cleanup({ catalog, store }, table.id, diedAtMs + 1)).rejects.toThrow("injected fault");
    expect(await cleanup({ catalog, store }, table.id, diedAtMs + 1)).toEqual({ extents: 1, rows: 3, sizeBytes: 10 });
    expect(await cleanup({ catalog, store }, table.id, diedAtMs + 1)).toEqual({ extents: 0, rows: 0, sizeBytes: 0 });
    expect(await inner.head("d/t/a.tlm")).toBeUndefined();
    for (const id of ["b", "c"]) expect(await inner.head(`d/t/${id}.tlm`)).toBeDefined();
    await catalog.verify();
  } finally {
    await catalog.close();
    await rm(folder, { recursive: true });
  }
});
