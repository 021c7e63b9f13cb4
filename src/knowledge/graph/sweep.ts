import type { FeatureDuty } from "../../feature/feature.ts";
import { droppedOf, type SweepDeps } from "../memory/sweep/dropped.ts";

const POLL_MS = 60_000;

/** Deletes the stored graphs of dropped databases: at most `GRAPH_LIMITS.graphs` of each. */
export function graphSweep({ catalog, records }: SweepDeps): FeatureDuty {
  return {
    name: "graph sweep",
    pollMs: POLL_MS,
    duty: async ({ signal }) => {
      const rows = await records.rows("SELECT DISTINCT database_id FROM graphs");
      const ids = rows.map((row) => Number(row["database_id"]));
      for (const id of await droppedOf(catalog, ids)) {
        signal.throwIfAborted();
        await records.write({ sql: "DELETE FROM graphs WHERE database_id = ?", values: [id] });
      }
    },
  };
}
