import { foldName } from "../../core/names.ts";
import type { Connection } from "../../db/postgres/connection.ts";
import type { Database } from "../../db/postgres/database.ts";
import type { ColumnRecord, TableRecord } from "../catalog.ts";
import { StatsDecoder } from "../stats-decoder.ts";
import { isBeyondReal } from "../widening.ts";
import { readOldestSnapshot } from "./snapshots.ts";
import { withHead } from "./with-head.ts";

/** Extents whose statistics are read at a time. */
const PAGE = 5_000;

const SEEN = "(e.end_snapshot IS NULL OR e.end_snapshot > $2::bigint)";
const STILL_SEEN = `SELECT FROM engine.extents e WHERE e.seq = $1::bigint AND ${SEEN}`;
const STATS =
  "SELECT e.seq, e.column_ids, s.stats FROM engine.extents e JOIN engine.extent_stats s USING (seq) " +
  `WHERE e.table_id = $1 AND ${SEEN} AND e.seq > $3::bigint ORDER BY e.seq LIMIT ${PAGE}`;
const WIDEN = "SELECT engine.widen_columns($1::bigint, $2::integer, $3::text::json) AS is_done";

/** Where the statistics were read to, and per column an extent that has a value which is no double. */
type Search = { lastSeq: number; far: Map<number, number> };

/**
 * Widens columns, for which the statistics of all extents are read, here and not by the database: its functions for JSON
 * refuse texts that other columns may have. Most is read before the head is locked, what came meanwhile under the lock.
 * An extent that stands in the way is remembered, as in the embedded catalog (`sqlite/far-values.ts`).
 */
export class ColumnWidening {
  readonly #database: Database;
  readonly #known = new Map<string, number>();

  constructor(database: Database) {
    this.#database = database;
  }

  /** Widens those of the columns that can be; `stale`, and nothing is changed, when the table is another by now. */
  async widen(table: TableRecord, wanted: readonly ColumnRecord[]): Promise<"done" | "stale"> {
    const columns = await this.#withoutKnown(table, wanted);
    if (columns.length === 0) return "done";
    const search: Search = { lastSeq: -1, far: new Map() };
    await this.#database.read((connection) => searchOn(connection, table, columns, search));
    // Repeated after a lost answer, it finds another version.
    return await this.#database.commitOnce<"done" | "stale">(
      (connection) =>
        withHead(connection, async () => {
          await searchOn(connection, table, columns, search);
          for (const [id, seq] of search.far) this.#known.set(keyOf(table, id), seq);
          const ids = columns.flatMap(({ id }) => (search.far.has(id) ? [] : [id]));
          if (ids.length === 0) return "done";
          const [row] = await connection.query(WIDEN, [table.id, table.schemaVersion, JSON.stringify(ids)]);
          return row?.["is_done"] === true ? "done" : "stale";
        }),
      async () => "stale",
    );
  }

  async #withoutKnown(table: TableRecord, wanted: readonly ColumnRecord[]): Promise<ColumnRecord[]> {
    return await this.#database.read(async (connection) => {
      const oldest = await readOldestSnapshot(connection, table.id);
      const free: ColumnRecord[] = [];
      for (const column of wanted) {
        const seq = this.#known.get(keyOf(table, column.id));
        const isFar = seq !== undefined && (await connection.query(STILL_SEEN, [seq, oldest.id])).length > 0;
        if (!isFar) free.push(column);
      }
      return free;
    });
  }
}

function keyOf({ id }: Pick<TableRecord, "id">, columnId: number): string {
  return `${id} ${columnId}`;
}

/** Goes on with a search to the newest extent. */
async function searchOn(
  connection: Connection,
  table: TableRecord,
  columns: readonly ColumnRecord[],
  search: Search,
): Promise<void> {
  const oldest = await readOldestSnapshot(connection, table.id);
  const idOf = new Map(columns.map(({ id, name }) => [foldName(name), id]));
  // A column that came after the table was looked at has an id that the decoder does not know: only these are wanted.
  const decoder = new StatsDecoder(table.columns, columns);
  for (;;) {
    const rows = await connection.query(STATS, [table.id, oldest.id, search.lastSeq]);
    for (const row of rows) {
      search.lastSeq = Number(row["seq"]);
      for (const stats of decoder.statsIn(String(row["column_ids"]), String(row["stats"]))) {
        const id = idOf.get(foldName(stats.name));
        if (id !== undefined && isBeyondReal(stats)) search.far.set(id, search.lastSeq);
      }
    }
    if (rows.length < PAGE) return;
  }
}
