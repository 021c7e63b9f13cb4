import type { CrowdedDay, Lease, UnpublishedDay, UnpublishedRequest } from "../catalog.ts";
import { isStorableText } from "../invariants.ts";
import type { Database } from "../../db/postgres/database.ts";
import { toUnpublishedDay, unpublishedDaysSql, unpublishedDaysValues } from "../unpublished-days.ts";
import { leaseParameter, toRefusal } from "./refusals.ts";

/** What only background duties ask. */

// Division rounds towards zero, so days before 1970 take a step down.
const CROWDED =
  "SELECT table_id, (min_at_ns / 86400000000000) - (min_at_ns % 86400000000000 < 0)::integer AS day, " +
  "count(*) AS extents, sum(row_count) AS rows, sum(size_bytes) AS bytes FROM engine.extents " +
  "WHERE end_snapshot IS NULL AND size_bytes < $1::bigint GROUP BY 1, 2 HAVING count(*) >= $2::bigint " +
  "ORDER BY extents DESC, table_id, day LIMIT $3::bigint";

const DAY_MS = 86_400_000;

/** Days of tables with many small extents, from the index of what is alive. */
export async function findCrowdedDays(
  database: Database,
  request: { belowBytes: number; minExtents: number; limit: number },
): Promise<CrowdedDay[]> {
  const rows = await database.rows(CROWDED, [request.belowBytes, request.minExtents, request.limit]);
  return rows.map((row) => ({
    tableId: Number(row["table_id"]),
    dayMs: Number(row["day"]) * DAY_MS,
    extents: Number(row["extents"]),
    rows: Number(row["rows"]),
    sizeBytes: Number(row["bytes"]),
  }));
}

const unpublished = (table: string | undefined): string =>
  unpublishedDaysSql({
    prefix: "engine.",
    belowBytes: "$1::bigint",
    upTo: "$2::bigint",
    table,
    columnIds: { join: "", from: "(SELECT value::integer AS id FROM json_array_elements_text(e.column_ids::json)) j" },
    isBefore1970: "(u.min_at_ns % 86400000000000 < 0)::integer",
  });
const UNPUBLISHED_DAYS = unpublished(undefined);
const UNPUBLISHED_DAYS_OF_TABLE = unpublished("$3::bigint");

export async function findUnpublishedDays(database: Database, request: UnpublishedRequest): Promise<UnpublishedDay[]> {
  const values = unpublishedDaysValues(request);
  const { tableId } = request;
  const rows =
    tableId === undefined
      ? await database.rows(UNPUBLISHED_DAYS, values)
      : await database.rows(UNPUBLISHED_DAYS_OF_TABLE, [...values, tableId]);
  return rows.map(toUnpublishedDay);
}

/** Extents per transaction, so that commits get their turn in between. */
const EXTENTS_PER_STATEMENT = 2_000;

const FORGET = "SELECT engine.forget_extents($1::bigint, $2::text::json, $3::text::json, $4::text::boolean) AS id";

/**
 * Forgets extents; all are looked at before any is forgotten, for what cannot be read now never can. When a connection
 * breaks meanwhile, those that it took with it are not named.
 */
export async function forgetExtents(
  database: Database,
  ids: readonly string[],
  lease: Lease | undefined,
): Promise<string[]> {
  const batches = batchesOf(ids.filter(isStorableText), EXTENTS_PER_STATEMENT);
  const forgotten: string[] = [];
  const run = async (batch: readonly string[], onlyLook: boolean) => {
    const parameters = [database.now, leaseParameter(lease), JSON.stringify(batch), String(onlyLook)];
    for (const row of await database.write(FORGET, parameters)) forgotten.push(String(row["id"]));
  };
  try {
    if (batches.length > 1) for (const batch of batches) await run(batch, true);
    for (const batch of batches) await run(batch, false);
  } catch (error) {
    throw toRefusal(error, lease);
  }
  const gone = new Set(forgotten);
  return [...new Set(ids)].filter((id) => gone.has(id));
}

/** Of the ids, those that are pending deletion now, in the order given. */
export async function markPendingDeletion(database: Database, ids: readonly string[]): Promise<string[]> {
  const marked = new Set<unknown>();
  for (const batch of batchesOf(ids.filter(isStorableText), EXTENTS_PER_STATEMENT)) {
    const rows = await database.write("SELECT engine.condemn_extents($1::text::json) AS id", [JSON.stringify(batch)]);
    for (const row of rows) marked.add(row["id"]);
  }
  return ids.filter((id) => marked.has(id));
}

const GONE =
  "SELECT i.id FROM json_array_elements_text($1::text::json) AS i (id) " +
  "WHERE NOT EXISTS (SELECT FROM engine.extents e WHERE e.id = i.id)";

/** Of the ids, those that no extent has, in the order given. */
export async function goneExtents(database: Database, ids: readonly string[]): Promise<string[]> {
  const gone = new Set<unknown>(ids.filter((id) => !isStorableText(id)));
  for (const batch of batchesOf(ids.filter(isStorableText), EXTENTS_PER_STATEMENT)) {
    for (const row of await database.rows(GONE, [JSON.stringify(batch)])) gone.add(row["id"]);
  }
  return ids.filter((id) => gone.has(id));
}

function batchesOf<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) => items.slice(i * size, (i + 1) * size));
}
