import type { RecordStore } from "../../../db/records.ts";

/** Rows that one statement deletes: others write meanwhile. */
const AT_ONCE = 500;

export type Some = {
  table: string;
  /** Columns that tell apart the rows that `where` chooses. */
  key: readonly string[];
  where: Readonly<Record<string, string | number>>;
};

/** Deletes some of the rows that have these values. */
export async function deleteSome(
  records: Pick<RecordStore, "write">,
  { table, key, where }: Some,
): Promise<{ rows: number; isMore: boolean }> {
  const which = Object.keys(where)
    .map((column) => `${column} = ?`)
    .join(" AND ");
  const columns = key.join(", ");
  const chosen = `SELECT ${columns} FROM ${table} WHERE ${which} LIMIT ${AT_ONCE}`;
  const sql = `DELETE FROM ${table} WHERE ${which} AND (${columns}) IN (${chosen}) RETURNING 1 AS deleted`;
  const values = Object.values(where);
  const { length: rows } = await records.write({ sql, values: [...values, ...values] });
  return { rows, isMore: rows === AT_ONCE };
}
