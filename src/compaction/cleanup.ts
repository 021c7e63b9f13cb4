import type { Catalog } from "../catalog/catalog.ts";
import type { ObjectStore } from "../io/objectstore/objectstore.ts";
import { deleteDead, type Freed } from "./deletion.ts";

/**
 * Deletes a table's extents that were soft-deleted strictly before `beforeMs`, without waiting for the grace: makes
 * those snapshots of this table unreadable that see them, then frees the bytes and the records. What a reader holds
 * stays, and so does what a younger deletion needs; the answer counts what this call freed and nothing else. It may run
 * beside itself and beside the deletion in the background: both do the same, in the same order.
 */
export async function cleanup(
  ports: {
    catalog: Pick<Catalog, "deadExtents" | "expireTable" | "forgetExtents">;
    store: Pick<ObjectStore, "delete">;
  },
  tableId: number,
  beforeMs: number,
): Promise<Freed> {
  const makeUnreadable = (before: number) => ports.catalog.expireTable(tableId, before);
  return await deleteDead(ports, { tableId, beforeMs, makeUnreadable });
}
