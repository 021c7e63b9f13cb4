import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import avsc from "avsc";
import { Readable } from "node:stream";
import type { CatalogDatabase } from "../catalog/catalog-database.ts";
import type { ExtentRecord, NewExtent, TableRecord } from "../catalog/catalog.ts";
import { systemClock } from "../core/clock.ts";
import { uuidV7Source } from "../core/ids.ts";
import { silentLog } from "../core/log.ts";
import { createMetrics } from "../core/metrics.ts";
import { systemRandom, type Random } from "../core/random.ts";
import { checksumOf } from "../format/checksum.ts";
import { openFilesystemStore } from "../io/objectstore/filesystem.ts";
import type { ObjectStore } from "../io/objectstore/objectstore.ts";
import { OpenTables } from "./open-tables.ts";

/** A table with a history, as clients of the catalog protocol see it, on a catalog and a store that are real. */

const newId = uuidV7Source(systemClock, systemRandom);
const DAY_NS = 86_400_000_000_000n;

export async function temporaryStore(): Promise<{ store: ObjectStore; remove: () => Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), "engine-open-tables-"));
  const store = await openFilesystemStore({ root: folder, random: systemRandom, log: silentLog });
  return { store, remove: () => rm(folder, { recursive: true }) };
}

/** As a node of its own has them. */
export function nodeOn(catalog: CatalogDatabase, store: ObjectStore): OpenTables {
  const ports = { catalog, records: catalog.records, store, clock: systemClock, newId, metrics: createMetrics() };
  return new OpenTables(ports, { pathPrefix: "engine", locationOf: (key) => `s3://bucket/${key}`, holdMs: 1_000 });
}

export function newTable(catalog: CatalogDatabase, name: string): Promise<TableRecord> {
  const columns = [
    { name: "at", type: { kind: "timestamp" } as const },
    { name: "n", type: { kind: "long" } as const, inferred: true as const },
  ];
  return catalog.createTable({ database: "d", name, columns }).then(({ table }) => table);
}

/** An extent of one of ten days. */
export function someExtent(random: Random, more: Partial<NewExtent> = {}): NewExtent {
  const id = newId();
  const minAtNs = (20_000n + BigInt(Math.floor(random.next() * 10))) * DAY_NS + BigInt(Math.floor(random.next() * 1e9));
  const isParquet = random.next() < 0.6;
  return {
    id,
    key: `engine/d/t/2024-01-01/${id}.parquet`,
    format: isParquet ? "parquet" : "tlm",
    formatVersion: isParquet && random.next() < 0.8 ? 2 : 1,
    rows: 1 + Math.floor(random.next() * 100),
    sizeBytes: 1_000,
    checksum: checksumOf(Buffer.from(id)),
    minAtNs,
    maxAtNs: minAtNs + 1_000n,
    stats: [
      { name: "at", nullCount: 0, min: String(minAtNs), max: String(minAtNs + 1_000n) },
      ...(random.next() < 0.5 ? [{ name: "n", nullCount: 1, min: "-3", max: "12" }] : []),
    ],
    ...more,
  };
}

export type Step = "commit" | "merge" | "end" | "widen" | "column" | "delete";
export const STEPS: readonly Step[] = [
  "commit",
  "commit",
  "commit",
  "merge",
  "merge",
  "end",
  "widen",
  "column",
  "delete",
];

/** Does one step; what cannot be done now is left. */
export async function take(catalog: CatalogDatabase, tableId: number, step: Step, random: Random): Promise<void> {
  const table = (await catalog.allTables()).find(({ id }) => id === tableId);
  if (table === undefined) throw new Error("the table is gone");
  const live = await catalog.extents(tableId, (await catalog.head()).id, undefined, []);
  const some = live.filter(() => random.next() < 0.4);
  const inputs = some.map(({ id }) => id);
  const rows = some.reduce((sum, extent) => sum + extent.rows, 0);
  const { schemaVersion } = table;
  const merged = (left: number) => someExtent(random, { rows: left, format: "parquet", formatVersion: 2 });
  switch (step) {
    case "commit": {
      const extents = Array.from({ length: 1 + Math.floor(random.next() * 3) }, () => someExtent(random));
      await catalog.commit([{ tableId, schemaVersion, newColumns: [], extents, ledger: [] }]);
      return;
    }
    case "merge":
      if (rows > 0) await catalog.mergeExtents({ tableId, schemaVersion, inputs, outputs: [merged(rows)] });
      return;
    case "end":
      await catalog.endExtents(tableId, inputs.slice(0, 1));
      return;
    case "widen":
      await catalog.widenColumns(tableId, ["n"]);
      return;
    case "column":
      await catalog.addColumns(tableId, [{ name: `c${Math.floor(random.next() * 5)}`, type: { kind: "string" } }]);
      return;
    case "delete":
      if (rows > 1) {
        await catalog.deleteRows({
          tableId,
          schemaVersion,
          groups: [{ inputs, outputs: [merged(rows - 1)] }],
          rows: 1,
        });
      }
  }
}

/** What other programs may read of the extents, told as simply as can be. */
export function publishedOf(table: TableRecord, snapshot: number, extents: readonly ExtentRecord[]): string[] {
  const widened = table.columns.find(({ name }) => name === "n")?.widened;
  const published = extents.filter(({ format, formatVersion, schemaVersion, stats }) => {
    if (format !== "parquet" || formatVersion < 2) return false;
    const isOld = widened !== undefined && widened.snapshot <= snapshot && schemaVersion < widened.version;
    return !(isOld && stats.some(({ name }) => name === "n"));
  });
  return published.map(({ key }) => `s3://bucket/${key}`).toSorted();
}

/** The locations of a snapshot's files, by its manifests. */
export async function filesOf(store: ObjectStore, manifestList: string): Promise<{ paths: string[]; rows: number }> {
  const paths: string[] = [];
  let rows = 0;
  for (const list of await recordsOf(store, manifestList)) {
    const bytes = await store.get(keyOf(String(list["manifest_path"])));
    if (bytes.length !== list["manifest_length"])
      throw new Error(`${String(list["manifest_path"])} has another length`);
    for (const entry of await recordsOf(store, String(list["manifest_path"]))) {
      const file = entry["data_file"] as { file_path: string; record_count: number };
      paths.push(file.file_path);
      rows += file.record_count;
    }
  }
  return { paths: paths.toSorted(), rows };
}

async function recordsOf(store: ObjectStore, location: string): Promise<Record<string, unknown>[]> {
  const decoder = new avsc.streams.BlockDecoder();
  const records: Record<string, unknown>[] = [];
  const bytes = Buffer.from(await store.get(keyOf(location)));
  for await (const record of Readable.from([bytes]).pipe(decoder)) records.push(record as Record<string, unknown>);
  return records;
}

export const keyOf = (location: string): string => location.slice("s3://bucket/".length);

/** What may be wrong with the statistics of an extent in the catalog, as statements that take the place of its `seq`. */
export function damagesIn(tables: { extentStats: string; columnIds: string }): Record<string, (seq: string) => string> {
  const { extentStats, columnIds } = tables;
  const set =
    (what: string, table = extentStats) =>
    (seq: string) =>
      `UPDATE ${table} SET ${what} WHERE seq = ${seq}`;
  return {
    "no JSON": set("stats = '[[0],[\"1'"),
    "no lists": set("stats = 'null'"),
    "a column that the table does not have": set("column_ids = '[1,77]'", columnIds),
    "a least time above the greatest": set(`stats = '[[0,0],["2","1"],["1","2"],[null,null]]'`),
    "more nulls than rows": set(`stats = '[[0,1000],["1","1"],["2","2"],[null,null]]'`),
    "a bound that is no number": set(`stats = '[[0,0],["1","x"],["2","2"],[null,null]]'`),
    "none at all": (seq) => `DELETE FROM ${extentStats} WHERE seq = ${seq}`,
  };
}

/** Loads a table of which one extent is damaged in some way; resolves to what was said of it, and its id. */
export async function loadDamaged(
  catalog: CatalogDatabase,
  { name, damage, prefix }: { name: string; damage: (seq: string) => string; prefix: string },
): Promise<{ said: unknown; id: string }> {
  const { store, remove } = await temporaryStore();
  try {
    const table = await newTable(catalog, name);
    const stats = [
      { name: "at", nullCount: 0, min: "1", max: "2" },
      { name: "n", nullCount: 0, min: "1", max: "2" },
    ];
    const own = { format: "parquet", formatVersion: 2, stats } as const;
    const extents = [1, 2, 3].map(() => someExtent(systemRandom, own));
    await catalog.commit([{ tableId: table.id, schemaVersion: 1, newColumns: [], extents, ledger: [] }]);
    const id = extents[1]?.id ?? "";
    const sql = damage(`(SELECT seq FROM ${prefix}extents WHERE id = ?)`);
    await catalog.records.write({ sql, values: [id] });
    const loading = nodeOn(catalog, store).load({ database: "d", name }, { all: true, properties: {} });
    return { said: await loading.catch((error: unknown) => error), id };
  } finally {
    await remove();
  }
}
