import type { CrowdedDay } from "../catalog.ts";
import type { Connection } from "../../db/sqlite/connection.ts";

/** Division of SQLite rounds towards zero, so days before 1970 take a step down. */
export const CROWDED = `
SELECT table_id, (min_at_ns / 86400000000000) - (min_at_ns % 86400000000000 < 0) AS day,
  count(*) AS extent_count, sum(row_count) AS row_count, sum(size_bytes) AS size_bytes
FROM extents INDEXED BY extents_alive
WHERE end_snapshot IS NULL AND size_bytes < ?
GROUP BY table_id, day HAVING extent_count >= ?
ORDER BY extent_count DESC, table_id, day LIMIT ?`;

const DAY_MS = 86_400_000;

/** Days of tables with many small extents, from the index of what is alive. */
export function findCrowdedDays(
  connection: Connection,
  request: { belowBytes: number; minExtents: number; limit: number },
): CrowdedDay[] {
  const { belowBytes, minExtents, limit } = request;
  return connection.all(CROWDED, belowBytes, minExtents, limit).map((row) => ({
    tableId: Number(row["table_id"]),
    dayMs: Number(row["day"]) * DAY_MS,
    extents: Number(row["extent_count"]),
    rows: Number(row["row_count"]),
    sizeBytes: Number(row["size_bytes"]),
  }));
}
