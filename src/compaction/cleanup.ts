import type { Catalog } from "../catalog/catalog.ts";
import type { ObjectStore } from "../io/objectstore/objectstore.ts";

export type Freed = { extents: number; rows: number; sizeBytes: number };

/**
 * Deletes a table's extents that were soft-deleted strictly before `beforeMs`: the bytes first, then the records, so
 * that a crash in between leaves records that the next run finds again, and never bytes that nothing points to.
 */
export async function cleanup(
  ports: { catalog: Catalog; store: ObjectStore },
  tableId: number,
  beforeMs: number,
): Promise<Freed> {
  const dead = await ports.catalog.deadExtents(tableId, beforeMs);
  if (dead.length === 0) return { extents: 0, rows: 0, sizeBytes: 0 };
  await ports.store.delete(dead.map(({ key }) => key));
  await ports.catalog.forgetExtents(dead.map(({ id }) => id));
  return {
    extents: dead.length,
    rows: dead.reduce((sum, { rows }) => sum + rows, 0),
    sizeBytes: dead.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
  };
}
