import type { Catalog } from "../../../catalog/catalog.ts";
import type { RecordStore, Statement } from "../../../db/records.ts";
import { deleteSome } from "./delete-some.ts";

/** Tables with the rows of a database's memory, and what tells these apart. */
const TABLES = [
  { table: "memory_records", key: ["kind", "id", "version"] },
  { table: "memory_vectors", key: ["model", "text_key"] },
  { table: "memory_verdicts", key: ["first_id", "second_id"] },
  { table: "memory_commits", key: ["seq"] },
  { table: "memory_counts", key: ["realm", "kind"] },
] as const;

/** Few rows for each database, one at least where there are any of the above: they go last. */
const HEADS = ["memory_heads", "memory_vector_heads", "memory_settings"] as const;

export type SweepDeps = { catalog: Pick<Catalog, "databases">; records: RecordStore };

/**
 * Those that were dropped, out of ids that were read before: a database that is made meanwhile is not among them, and no
 * id is used again.
 */
export async function droppedOf(catalog: SweepDeps["catalog"], databaseIds: readonly number[]): Promise<number[]> {
  if (databaseIds.length === 0) return [];
  const existing = new Set((await catalog.databases()).map(({ id }) => id));
  return databaseIds.filter((id) => !existing.has(id));
}

/**
 * Deletes what dropped databases remembered; resolves to how many rows that were. A write that began before the drop may
 * commit after it: what it leaves has a head, and goes the next time.
 */
export async function sweepDropped({ catalog, records }: SweepDeps, signal: AbortSignal): Promise<number> {
  const sql = HEADS.map((name) => `SELECT database_id FROM ${name}`).join(" UNION ");
  const remembered = (await records.rows(sql)).map((row) => Number(row["database_id"]));
  let rows = 0;
  for (const id of await droppedOf(catalog, remembered)) {
    for (const each of TABLES) {
      for (let isMore = true; isMore;) {
        signal.throwIfAborted();
        const deleted = await deleteSome(records, { ...each, where: { database_id: id } });
        ({ isMore } = deleted);
        rows += deleted.rows;
      }
    }
    await records.transact(HEADS.map((name) => deleteHead(name, id)));
  }
  return rows;
}

/** Unless a late write has left something, which would not be found again. */
function deleteHead(name: (typeof HEADS)[number], databaseId: number): Statement {
  const empty = TABLES.map(({ table }) => `NOT EXISTS (SELECT 1 FROM ${table} WHERE database_id = ?)`);
  const sql = `DELETE FROM ${name} WHERE database_id = ? AND ${empty.join(" AND ")}`;
  return { sql, values: [databaseId, ...TABLES.map(() => databaseId)] };
}
