import type { Catalog } from "../../catalog/catalog.ts";
import type { RecordStore } from "../../db/records.ts";
import { deleteSome } from "../memory/sweep/delete-some.ts";
import { droppedOf } from "../memory/sweep/dropped.ts";

const RUNS_AT_ONCE = 100;
const DATABASES =
  "SELECT database_id FROM dreaming_runs UNION SELECT database_id FROM dreaming_watermarks ORDER BY database_id";

/** Deletes the runs of dropped databases, what is known of their changes first; resolves to how many runs that were. */
export async function sweepDroppedRuns(
  { catalog, records }: { catalog: Pick<Catalog, "databases">; records: RecordStore },
  signal: AbortSignal,
): Promise<number> {
  const known = (await records.rows(DATABASES)).map((row) => Number(row["database_id"]));
  let swept = 0;
  for (const databaseId of await droppedOf(catalog, known)) {
    for (;;) {
      const sql = "SELECT id FROM dreaming_runs WHERE database_id = ? ORDER BY id LIMIT ?";
      const ids = (await records.rows(sql, [databaseId, RUNS_AT_ONCE])).map((row) => String(row["id"]));
      for (const id of ids) {
        signal.throwIfAborted();
        const changes = { table: "dreaming_changes", key: ["record_kind", "record_id"], where: { run_id: id } };
        while ((await deleteSome(records, changes)).isMore) signal.throwIfAborted();
        await records.write({ sql: "DELETE FROM dreaming_runs WHERE id = ?", values: [id] });
        swept++;
      }
      if (ids.length < RUNS_AT_ONCE) break;
    }
    await records.write({ sql: "DELETE FROM dreaming_watermarks WHERE database_id = ?", values: [databaseId] });
  }
  return swept;
}
