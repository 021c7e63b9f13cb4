import { isStorableText } from "../invariants.ts";
import { addMisfits, ListParser, MISFITS_END } from "../stats-encoding.ts";
import type { Database } from "../../db/postgres/database.ts";

/**
 * Only texts that have misfits are read: most extents have none. Not by PostgreSQL's functions for JSON, which refuse NUL
 * and lone surrogates in the texts beside.
 */
const ALIVE =
  String.raw`SELECT e.column_ids, substring(s.stats FROM '(\{[0-9:,"]*\})\]$') AS misfits ` +
  "FROM engine.extents e JOIN engine.extent_stats s ON s.seq = e.seq " +
  `WHERE e.table_id = $1 AND e.end_snapshot IS NULL AND right(s.stats, ${MISFITS_END.length}) = '${MISFITS_END}'`;

const ALIVE_OF = `${ALIVE} AND e.id IN (SELECT json_array_elements_text($2::text::json))`;

/** Misfits by column id, over the table's live extents, or those of them with these ids. */
export async function findMisfits(
  database: Database,
  tableId: number,
  extentIds?: readonly string[],
): Promise<Map<number, number>> {
  const rows =
    extentIds === undefined
      ? await database.rows(ALIVE, [tableId])
      : await database.rows(ALIVE_OF, [tableId, JSON.stringify(extentIds.filter(isStorableText))]);
  const parser = new ListParser<number>();
  const sum = new Map<number, number>();
  for (const row of rows) addMisfits(sum, parser.parse(String(row["column_ids"])), String(row["misfits"]));
  return sum;
}
