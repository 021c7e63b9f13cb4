import { LRUCache } from "lru-cache";
import type { ColumnRecord } from "./catalog.ts";

/** Columns over all cached tables; a column takes some 150 bytes. */
const CACHED_COLUMNS = 200_000;

type Entry = { schemaVersion: number; columns: readonly ColumnRecord[] };

/** Columns by table and schema version, which never change; those not used for longest are dropped first. */
export class ColumnCache {
  readonly #tables = new LRUCache<number, Entry>({
    maxSize: CACHED_COLUMNS,
    sizeCalculation: ({ columns }) => columns.length + 1,
  });

  get(tableId: number, schemaVersion: number): readonly ColumnRecord[] | undefined {
    const entry = this.#tables.get(tableId);
    return entry?.schemaVersion === schemaVersion ? entry.columns : undefined;
  }

  set(tableId: number, schemaVersion: number, columns: readonly ColumnRecord[]): void {
    this.#tables.set(tableId, { schemaVersion, columns });
  }

  clear(): void {
    this.#tables.clear();
  }
}
