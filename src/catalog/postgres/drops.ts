import { foldName } from "../../core/names.ts";
import type { DroppedTable } from "../catalog.ts";
import { isStorableText } from "../invariants.ts";
import type { Database } from "../../db/postgres/database.ts";

/** What is known of names that were dropped: see `Catalog.dropTable`. */

const DROPPED_AT =
  "SELECT max(dropped_at_ms) AS ms FROM engine.drops WHERE folded_database = $1 AND folded_table IN ($2, '')";

export async function readDroppedAt(database: Database, name: string, table: string): Promise<number | undefined> {
  if (!isStorableText(name) || !isStorableText(table)) return undefined;
  const [row] = await database.rows(DROPPED_AT, [foldName(name), foldName(table)]);
  const ms = row?.["ms"] ?? null;
  return ms === null ? undefined : Number(ms);
}

// No name that was ever accepted has the sign that is cut off.
const DROPPED =
  "SELECT t.id, split_part(t.name, '#', 1) AS name, t.dropped_at_ms, split_part(d.name, '#', 1) AS database " +
  "FROM engine.tables t JOIN engine.databases d ON d.id = t.database_id WHERE t.dropped_at_ms IS NOT NULL ORDER BY t.id";

export async function readDroppedTables(database: Database): Promise<DroppedTable[]> {
  return (await database.rows(DROPPED)).map((row) => ({
    id: Number(row["id"]),
    database: String(row["database"]),
    name: String(row["name"]),
    droppedAtMs: Number(row["dropped_at_ms"]),
  }));
}

export async function forgetTable(database: Database, tableId: number): Promise<boolean> {
  const [row] = await database.write("SELECT engine.forget_table($1::bigint) AS forgotten", [tableId]);
  return row?.["forgotten"] === true;
}
