import type { ColumnRecord } from "./catalog.ts";

/** Columns over all cached tables; a column takes some 150 bytes. */
const CACHED_COLUMNS = 200_000;

/** Columns by table and schema version, which never change; those not used for longest are dropped first. */
export class ColumnCache {
  readonly #tables = new Map<number, { schemaVersion: number; columns: readonly ColumnRecord[] }>();
  #size = 0;

  get(tableId: number, schemaVersion: number): readonly ColumnRecord[] | undefined {
    const entry = this.#tables.get(tableId);
    if (entry?.schemaVersion !== schemaVersion) return undefined;
    this.#tables.delete(tableId);
    this.#tables.set(tableId, entry);
    return entry.columns;
  }

  set(tableId: number, schemaVersion: number, columns: readonly ColumnRecord[]): void {
    this.#drop(tableId);
    this.#tables.set(tableId, { schemaVersion, columns });
    this.#size += weightOf(columns);
    for (const oldest of this.#tables.keys()) {
      if (this.#size <= CACHED_COLUMNS) break;
      this.#drop(oldest);
    }
  }

  clear(): void {
    this.#tables.clear();
    this.#size = 0;
  }

  #drop(tableId: number): void {
    const entry = this.#tables.get(tableId);
    if (entry === undefined) return;
    this.#tables.delete(tableId);
    this.#size -= weightOf(entry.columns);
  }
}

function weightOf(columns: readonly ColumnRecord[]): number {
  return columns.length + 1;
}
