import * as fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openMemoryCatalog } from "../catalog/sqlite/memory.test-kit.ts";
import type { CatalogDatabase } from "../catalog/catalog-database.ts";
import { systemClock } from "../core/clock.ts";
import { seededRandom, systemRandom } from "../core/random.ts";
import { FaultyStore } from "../io/objectstore/faulty.test-kit.ts";
import type { ObjectStore } from "../io/objectstore/objectstore.ts";
import {
  damagesIn,
  filesOf,
  keyOf,
  loadDamaged,
  newTable,
  nodeOn,
  publishedOf,
  someExtent,
  STEPS,
  take,
  temporaryStore,
} from "./histories.test-kit.ts";
import type { LoadedTable } from "./open-tables.ts";

const ALL = { all: true, properties: {} };
const { signal } = new AbortController();

let catalog: CatalogDatabase;
let store: ObjectStore;
let remove: () => Promise<void>;
beforeEach(async () => {
  ({ store, remove } = await temporaryStore());
  catalog = openMemoryCatalog(systemClock).catalog;
});
afterEach(async () => {
  await catalog.close();
  await remove();
});

type Listed = { "snapshot-id": number; "manifest-list": string; summary: Record<string, string> };
const listed = ({ metadata }: LoadedTable): Listed[] => metadata.snapshots as Listed[];

test("after any history the files of every snapshot are those that the catalog has at it", async () => {
  let tables = 0;
  const histories = fc.array(fc.constantFrom(...STEPS, "load" as const), { minLength: 1, maxLength: 25 });
  await fc.assert(
    fc.asyncProperty(histories, fc.integer(), async (steps, seed) => {
      const random = seededRandom(seed);
      const { id, database, name } = await newTable(catalog, `t${tables++}`);
      const node = nodeOn(catalog, store);
      for (const step of steps) {
        if (step === "load") await node.load({ database, name }, ALL);
        else await take(catalog, id, step, random);
      }
      await node.load({ database, name }, ALL);
      const table = await catalog.table(database, name);
      expect(table).toBeDefined();
      if (table === undefined) return;
      await node.follow(table, signal);
      const loaded = await node.load({ database, name }, ALL);
      const head = (await catalog.head()).id;
      const current = await catalog.extents(id, head);
      const last = listed(loaded).at(-1);
      const files = last === undefined ? { paths: [], rows: 0 } : await filesOf(store, last["manifest-list"]);
      expect(files.paths).toEqual(publishedOf(table, head, current));
      const rows = current.reduce((sum, extent) => sum + extent.rows, 0);
      expect(Number(last?.summary["engine.pending-rows"] ?? 0)).toBe(rows - files.rows);
      expect(Number(last?.summary["total-records"] ?? 0)).toBe(files.rows);
      for (const snapshot of listed(loaded).slice(0, -1)) {
        const then = await catalog.extents(id, snapshot["snapshot-id"]);
        const found = await filesOf(store, snapshot["manifest-list"]);
        expect(found.paths).toEqual(publishedOf(table, snapshot["snapshot-id"], then));
        expect(Number(snapshot.summary["total-data-files"])).toBe(found.paths.length);
      }
    }),
    { numRuns: 60 },
  );
});

test("a merge writes the manifests that it touches, a list and metadata", async () => {
  const { id, database, name } = await newTable(catalog, "many");
  const random = seededRandom(1);
  const extents = Array.from({ length: 3_000 }, () => someExtent(random, { format: "parquet", formatVersion: 2 }));
  await catalog.commit([{ tableId: id, schemaVersion: 1, newColumns: [], extents, ledger: [] }]);
  const puts: string[] = [];
  const counted: ObjectStore = Object.assign(Object.create(store) as ObjectStore, {
    put: async (key: string, bytes: Uint8Array) => {
      puts.push(key);
      await store.put(key, bytes);
    },
  });
  const node = nodeOn(catalog, counted);
  await node.load({ database, name }, ALL);
  expect(puts.filter((key) => key.includes("/manifest-")).length).toBeGreaterThan(2);
  puts.length = 0;
  await node.load({ database, name }, ALL);
  expect(puts).toEqual([]);
  const sameDay = extents.filter(
    ({ minAtNs }) => minAtNs === extents[0]?.minAtNs || minAtNs < 20_001n * 86_400_000_000_000n,
  );
  const inputs = sameDay.slice(0, 24);
  const rows = inputs.reduce((sum, extent) => sum + extent.rows, 0);
  const outputs = [
    someExtent(random, { rows, format: "parquet", formatVersion: 2, minAtNs: inputs[0]?.minAtNs ?? 0n }),
  ];
  await catalog.mergeExtents({ tableId: id, schemaVersion: 1, inputs: inputs.map((one) => one.id), outputs });
  await node.load({ database, name }, ALL);
  expect(puts.length).toBeLessThanOrEqual(4);
});

test("what cannot be written is not announced, and is written once the store is there again", async () => {
  const faulty = new FaultyStore({ inner: store, clock: systemClock, random: systemRandom });
  const { id, database, name } = await newTable(catalog, "faults");
  const commit = () =>
    catalog.commit([
      {
        tableId: id,
        schemaVersion: 1,
        newColumns: [],
        extents: [someExtent(systemRandom, { format: "parquet", formatVersion: 2 })],
        ledger: [],
      },
    ]);
  await commit();
  const node = nodeOn(catalog, faulty);
  for (const keyHolds of ["/manifest-", "/snapshot-", ".metadata.json"]) {
    for (const kind of ["fail_before", "tear", "fail_after"] as const) {
      await commit();
      const before = await node.announced.tip(id);
      faulty.script({ operation: "put", keyHolds, fault: { kind } });
      await expect(node.load({ database, name }, ALL)).rejects.toThrow("injected fault");
      const after = await node.announced.tip(id);
      expect([keyHolds, kind, after?.snapshot === before?.snapshot]).toEqual([
        keyHolds,
        kind,
        keyHolds !== ".metadata.json",
      ]);
      const loaded = await node.load({ database, name }, ALL);
      const { paths } = await filesOf(store, listed(loaded).at(-1)?.["manifest-list"] ?? "");
      expect(paths).toHaveLength((await catalog.extents(id, (await catalog.head()).id)).length);
      const metadata = JSON.parse(Buffer.from(await store.get(keyOf(loaded.location))).toString()) as object;
      expect(metadata).toMatchObject({ "current-snapshot-id": loaded.metadata["current-snapshot-id"] });
    }
  }
});

test("callers at one moment share the work, and see the same", async () => {
  const { id, database, name } = await newTable(catalog, "shared");
  await take(catalog, id, "commit", seededRandom(3));
  const node = nodeOn(catalog, store);
  const all = await Promise.all(Array.from({ length: 8 }, () => node.load({ database, name }, ALL)));
  expect(new Set(all.map((one) => JSON.stringify(one))).size).toBe(1);
});

const DAMAGES = damagesIn({ extentStats: "extent_stats", columnIds: "extent_stats" });

test.for(Object.entries(DAMAGES))("a damaged extent fails the load by name: %s", async ([name, damage]) => {
  const { said, id } = await loadDamaged(catalog, { name: "damaged", damage, prefix: "" });
  const message = `extent ${id} is damaged: its statistics in the catalog cannot be read`;
  expect([name, said]).toMatchObject([name, { code: "unavailable", message }]);
});
