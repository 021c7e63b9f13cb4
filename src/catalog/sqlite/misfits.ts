import { addMisfits, ListParser, MISFITS_END } from "../stats-encoding.ts";
import type { Connection } from "../../db/sqlite/connection.ts";

/** Only texts that have misfits are parsed: most extents have none. Parameters: table, what such a text ends in. */
const ALIVE =
  "SELECT column_ids, json_extract(stats, '$[4]') AS misfits FROM extents JOIN extent_stats USING (seq) " +
  "WHERE table_id = ? AND end_snapshot IS NULL AND substr(stats, -2) = ?";

/** Misfits by column id, over the table's live extents, or those of them with these ids. */
export function findMisfits(
  connection: Connection,
  tableId: number,
  extentIds?: readonly string[],
): Map<number, number> {
  const parser = new ListParser<number>();
  const sum = new Map<number, number>();
  const rows =
    extentIds === undefined
      ? connection.all(ALIVE, tableId, MISFITS_END)
      : extentIds.flatMap((id) => connection.all(`${ALIVE} AND id = ?`, tableId, MISFITS_END, id));
  for (const row of rows) addMisfits(sum, parser.parse(String(row["column_ids"])), String(row["misfits"]));
  return sum;
}
