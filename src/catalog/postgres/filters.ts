import { foldName } from "../../core/names.ts";
import { mayHold } from "../../format/filter/filter.ts";
import type { ColumnProbe } from "../catalog.ts";
import { isStorableText } from "../invariants.ts";
import type { Database } from "../../db/postgres/database.ts";
import type { SchemaReader } from "./schema.ts";

/** Extents per statement: some 8 MB of filters. */
const EXTENTS_PER_STATEMENT = 500;
/** Memory for filters that were read. They never change, and to send 1,000 of them takes the network a tenth of a second. */
const CACHE_BYTES = 64 * 1024 * 1024;
const ENTRY_BYTES = 200;

/** A column's filter of one kind, of one extent; undefined when it has none. */
type Cached = Uint8Array | undefined;
type Filters = ReadonlyMap<string, Cached>;
type Asked = { columnId: number; probe: ColumnProbe };

/** Asks filters of extents, which lie in the database. */
export class FilterReader {
  readonly #database: Database;
  readonly #schema: SchemaReader;
  /** By extent, then by column and kind; the extents not asked for longest first. */
  readonly #extents = new Map<string, { tableId: number; filters: Filters }>();
  #sizeBytes = 0;

  constructor(database: Database, schema: SchemaReader) {
    this.#database = database;
    this.#schema = schema;
  }

  /** The extents that cannot hold a row which answers to all probes. */
  async extentsWithout(tableId: number, ids: readonly string[], probes: readonly ColumnProbe[]): Promise<string[]> {
    const table = await this.#schema.tableById(tableId);
    const byName = new Map(table?.columns.map(({ id, name }) => [foldName(name), id]));
    const asked: Asked[] = probes.flatMap((probe) => {
      const columnId = byName.get(foldName(probe.column));
      return columnId === undefined ? [] : [{ columnId, probe }];
    });
    if (asked.length === 0) return [];
    const without: string[] = [];
    for (let i = 0; i < ids.length; i += EXTENTS_PER_STATEMENT) {
      const batch = ids.slice(i, i + EXTENTS_PER_STATEMENT).filter(isStorableText);
      const filters = await this.#read(tableId, batch, asked);
      for (const id of batch) {
        const own = filters.get(id);
        if (asked.some((one) => excludes(own?.get(keyOf(one)), one))) without.push(id);
      }
    }
    return without;
  }

  /** The extents are no more. */
  forget(ids: readonly string[]): void {
    for (const id of ids) this.#drop(id);
  }

  async #read(tableId: number, ids: readonly string[], asked: readonly Asked[]): Promise<Map<string, Filters>> {
    const found = new Map<string, Filters>();
    const unknown: string[] = [];
    for (const id of ids) {
      const cached = this.#extents.get(id);
      if (cached?.tableId === tableId && asked.every((one) => cached.filters.has(keyOf(one)))) {
        this.#extents.delete(id);
        this.#extents.set(id, cached);
        found.set(id, cached.filters);
      } else unknown.push(id);
    }
    if (unknown.length === 0) return found;
    for (const [id, filters] of await this.#find(tableId, unknown, asked)) {
      this.#keep(id, tableId, filters);
      found.set(id, filters);
    }
    return found;
  }

  /** The extents that there are, with what they have of what is asked. */
  async #find(tableId: number, ids: readonly string[], asked: readonly Asked[]): Promise<Map<string, Filters>> {
    const wanted = asked.map(({ columnId, probe }) => ({ column_id: columnId, kind: probe.kind }));
    const rows = await this.#database.rows(FIND, [tableId, JSON.stringify(ids), JSON.stringify(wanted)]);
    const found = new Map<string, Map<string, Cached>>();
    for (const row of rows) {
      const id = String(row["id"]);
      const own = found.get(id) ?? new Map<string, Cached>(asked.map((one) => [keyOf(one), undefined]));
      found.set(id, own);
      const filter = row["filter"];
      const key = `${String(row["column_id"])} ${String(row["kind"])}`;
      if (typeof filter === "string") own.set(key, Buffer.from(filter, "base64"));
    }
    return found;
  }

  #keep(id: string, tableId: number, filters: Filters): void {
    const before = this.#extents.get(id)?.filters ?? [];
    this.#drop(id);
    const merged = new Map([...before, ...filters]);
    this.#extents.set(id, { tableId, filters: merged });
    this.#sizeBytes += sizeOf(merged);
    for (const oldest of this.#extents.keys()) {
      if (this.#sizeBytes <= CACHE_BYTES) return;
      this.#drop(oldest);
    }
  }

  #drop(id: string): void {
    const cached = this.#extents.get(id);
    if (cached === undefined) return;
    this.#extents.delete(id);
    this.#sizeBytes -= sizeOf(cached.filters);
  }
}

/** A row per filter, and one without any for an extent that has none of those. Base64 is two thirds of the bytes' hex. */
const FIND =
  "SELECT e.id, f.column_id, f.kind, encode(f.filter, 'base64') AS filter FROM engine.extents e " +
  "LEFT JOIN engine.extent_filters f ON f.seq = e.seq AND (f.column_id, f.kind) IN " +
  "(SELECT w.column_id, w.kind FROM json_to_recordset($3::text::json) AS w (column_id integer, kind text)) " +
  "WHERE e.table_id = $1 AND e.id IN (SELECT json_array_elements_text($2::text::json))";

function excludes(filter: Cached, { probe }: Asked): boolean {
  return filter !== undefined && !mayHold(filter, probe);
}

function keyOf({ columnId, probe }: Asked): string {
  return `${columnId} ${probe.kind}`;
}

function sizeOf(own: Filters): number {
  let sizeBytes = ENTRY_BYTES;
  for (const filter of own.values()) sizeBytes += ENTRY_BYTES + (filter?.byteLength ?? 0);
  return sizeBytes;
}
