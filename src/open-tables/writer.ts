import { type Catalog, type ExtentRecord, type FileChange, type TableRecord } from "../catalog/catalog.ts";
import { columnsInQuestion } from "../catalog/publishable.ts";
import { Semaphore } from "../core/concurrency.ts";
import type { ObjectStore } from "../io/objectstore/objectstore.ts";
import type { Announced } from "./announced.ts";
import { listName, manifestBytes, manifestListBytes, manifestName } from "./format/manifest.ts";
import type { LocationOf, ManifestFile } from "./format/manifest.ts";
import { leavesOf, type Leaf } from "./leaves.ts";
import { dividePublished } from "./published.ts";

/** Files of a manifest, at most: it has about a kilobyte of each, and a merge writes it anew. */
export const FILES_PER_MANIFEST = 1_000;

/** While one waits for the store, the catalog reads for the next; each holds the statistics of its files. */
const MANIFESTS_AT_ONCE = 3;

/** Of a table without manifests, the statistics of so many extents are read at once: asking twice takes longer. */
const MOST_WITH_STATS = 20_000;

export type WriterPorts = {
  catalog: Pick<Catalog, "extents" | "tableStats">;
  store: Pick<ObjectStore, "put">;
  locationOf: LocationOf;
  /** The folder of the table's metadata. */
  folder: string;
};

/** What there is to be told of a snapshot once what it needs is durable. */
export type Written = Announced & { manifests: readonly ManifestFile[] };

/**
 * Writes the manifests of a table as of a snapshot, and their list: those that are not among `known`, and what is written
 * is there when this resolves. `readAt` is a snapshot that shows the same files and can be read. Rejects with
 * `snapshot_expired` when it cannot any more.
 */
export async function writeSnapshot(
  { catalog, store, locationOf, folder }: WriterPorts,
  table: TableRecord,
  change: FileChange,
  { readAt, known }: { readAt: number; known: readonly ManifestFile[] },
): Promise<Written> {
  const areAllNew = known.length === 0 && (await catalog.tableStats(table.id)).extents <= MOST_WITH_STATS;
  const wanted = areAllNew ? undefined : columnsInQuestion(table);
  const extents = await catalog.extents(table.id, readAt, undefined, wanted);
  const { files, pending } = dividePublished(table, readAt, extents);
  const there = new Map(known.map((manifest) => [manifest.key, manifest]));
  const slots = new Semaphore(MANIFESTS_AT_ONCE);
  const manifests = await Promise.all(
    leavesOf(files, FILES_PER_MANIFEST).map(async (leaf) => {
      const key = folder + manifestName(table, leaf, locationOf);
      return there.get(key) ?? (await slots.run(() => writeManifest(key, leaf)));
    }),
  );
  const listKey = folder + listName(change.id, manifests, locationOf);
  await store.put(listKey, await manifestListBytes(change.id, manifests, locationOf));
  return {
    snapshot: change.id,
    committedAtMs: change.committedAtMs,
    listKey,
    manifests,
    added: change.added,
    removed: change.removed,
    files: files.length,
    rows: sumOf(files, ({ rows }) => rows),
    sizeBytes: sumOf(files, ({ sizeBytes }) => sizeBytes),
    pending,
  };

  async function writeManifest(key: string, leaf: Leaf<ExtentRecord>): Promise<ManifestFile> {
    const bytes = await manifestBytes(table, await withStats(leaf), locationOf);
    await store.put(key, bytes);
    const begins = leaf.map(({ beginSnapshot }) => beginSnapshot);
    return {
      key,
      bytes: bytes.length,
      files: leaf.length,
      rows: sumOf(leaf, ({ rows }) => rows),
      firstSnapshot: begins.reduce((a, b) => Math.min(a, b)),
      lastSnapshot: begins.reduce((a, b) => Math.max(a, b)),
    };
  }

  /** The statistics of all columns are asked for where they are needed: those of a large table are many. */
  async function withStats(leaf: Leaf<ExtentRecord>): Promise<readonly ExtentRecord[]> {
    if (areAllNew) return leaf;
    const first = leaf[0]?.minAtNs ?? 0n;
    const last = leaf.at(-1)?.minAtNs ?? 0n;
    const found = await catalog.extents(table.id, readAt, { minNs: first, maxNs: last });
    const byId = new Map(found.map((extent) => [extent.id, extent]));
    return leaf.map(({ id }) => {
      const extent = byId.get(id);
      if (extent === undefined) throw new Error(`extent ${id} of table ${table.id} is gone from snapshot ${readAt}`);
      return extent;
    });
  }
}

function sumOf<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((sum, item) => sum + of(item), 0);
}
