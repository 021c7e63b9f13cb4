import type { Connection } from "../../db/sqlite/connection.ts";
import { MOST_WIDENABLE } from "../widening.ts";
import { readOldestSnapshot } from "./snapshots.ts";

const SEEN = "(e.end_snapshot IS NULL OR e.end_snapshot > ?)";

/** Parameters: column, table, snapshot. */
const FIND = `
SELECT e.seq FROM extents e JOIN extent_stats s USING (seq) JOIN json_each(s.column_ids) c ON c.value = ?
WHERE e.table_id = ? AND ${SEEN}
  AND (CAST(json_extract(s.stats, '$[1][' || c.key || ']') AS INTEGER) < -${MOST_WIDENABLE}
    OR CAST(json_extract(s.stats, '$[2][' || c.key || ']') AS INTEGER) > ${MOST_WIDENABLE})
LIMIT 1`;

/** Parameters: extent, snapshot. */
const STILL_SEEN = `SELECT 1 FROM extents e WHERE e.seq = ? AND ${SEEN}`;

/**
 * Which columns have values that are no doubles (`widening.ts`) in an extent that is alive or readable. To say that none
 * has reads all statistics of the table, which happens once, for then the column is widened; that one has is remembered
 * with the extent, since a table that stays as it is is asked about again with every fraction.
 */
export class FarValues {
  readonly #connection: Connection;
  /** By table and column, an extent that has such a value. */
  readonly #known = new Map<string, number>();

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  has(tableId: number, columnId: number): boolean {
    const key = `${tableId} ${columnId}`;
    const oldest = readOldestSnapshot(this.#connection, tableId).id;
    const known = this.#known.get(key);
    if (known !== undefined && this.#connection.get(STILL_SEEN, known, oldest) !== undefined) return true;
    const found = this.#connection.get(FIND, columnId, tableId, oldest);
    if (found === undefined) this.#known.delete(key);
    else this.#known.set(key, Number(found["seq"]));
    return found !== undefined;
  }
}
