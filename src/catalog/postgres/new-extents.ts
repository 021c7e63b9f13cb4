import { foldName } from "../../core/names.ts";
import type { ColumnStats } from "../../format/types.ts";
import type { ColumnRecord, NewExtent, TableRecord } from "../catalog.ts";
import { extentIsWellFormed, filtersAreOneToAColumn, InvariantViolation } from "../invariants.ts";
import { encodeStats } from "../stats-encoding.ts";

/** Extents and their filters as the database takes them, in the order in which they are numbered. */
export class NewExtents {
  readonly #extents: object[] = [];
  readonly #filters: object[] = [];

  /** Adds extents of one flush (0 for a merge). Throws an `InvariantViolation` for what cannot be true. */
  add(extents: readonly NewExtent[], of: { flush: number; table: TableRecord; schemaVersion: number }): void {
    const { flush, table, schemaVersion } = of;
    const columns = new ColumnIds(table.columns);
    for (const { stats, filters = [], nanosecondColumns, ...extent } of extents) {
      extentIsWellFormed(extent);
      const ord = this.#extents.length + 1;
      this.#extents.push({
        ord,
        flush,
        id: extent.id,
        table_id: table.id,
        schema_version: schemaVersion,
        object_key: extent.key,
        format: extent.format,
        format_version: extent.formatVersion,
        row_count: extent.rows,
        size_bytes: extent.sizeBytes,
        checksum: extent.checksum,
        min_at_ns: extent.minAtNs.toString(),
        max_at_ns: extent.maxAtNs.toString(),
        column_ids: columns.listOf(stats, table),
        stats: encodeStats(stats).values,
        ...(nanosecondColumns && { ns_column_ids: columns.idsOf(nanosecondColumns, table) }),
      });
      const own = filters.map(({ name, kind, bytes }) => ({ columnId: columns.idOf(name), kind, bytes }));
      filtersAreOneToAColumn(extent.id, own, columns.all);
      for (const { columnId, kind, bytes } of own) {
        this.#filters.push({ ord, column_id: columnId, kind, filter: toBase64(bytes) });
      }
    }
  }

  get extents(): string {
    return JSON.stringify(this.#extents);
  }

  get filters(): string {
    return JSON.stringify(this.#filters);
  }
}

function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}

/** Ids of a table's columns; extents of one flush mostly have the same. */
class ColumnIds {
  readonly #columns: readonly ColumnRecord[];
  #ids: Map<string, number> | undefined;
  #names: readonly string[] = [];
  #list = "[]";

  constructor(columns: readonly ColumnRecord[]) {
    this.#columns = columns;
  }

  get all(): ReadonlySet<number> {
    return new Set(this.#columns.map(({ id }) => id));
  }

  idOf(name: string): number | undefined {
    this.#ids ??= new Map(this.#columns.map((column) => [foldName(column.name), column.id]));
    return this.#ids.get(foldName(name));
  }

  /** The ids of the columns that have statistics, as JSON. */
  listOf(stats: readonly ColumnStats[], table: TableRecord): string {
    if (stats.length === this.#names.length && stats.every(({ name }, i) => name === this.#names[i])) return this.#list;
    this.#names = stats.map(({ name }) => name);
    this.#list = this.idsOf(this.#names, table);
    return this.#list;
  }

  /** The ids of the columns of those names, as JSON. */
  idsOf(names: readonly string[], table: TableRecord): string {
    const ids = names.map((name) => {
      const id = this.idOf(name);
      if (id !== undefined) return id;
      const message = `an extent of table ${table.name} has statistics of ${JSON.stringify(name)}, which is no column`;
      throw new InvariantViolation("statisticsNameKnownColumns", message);
    });
    return JSON.stringify(ids);
  }
}
