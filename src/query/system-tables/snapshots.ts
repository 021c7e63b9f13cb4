import type { Catalog, TableChange } from "../../catalog/catalog.ts";
import type { SystemRow } from "../../feature/system-table.ts";
import { nsOfMs } from "./values.ts";

/** The newest ones; an older one is still found by its time, with `AT (TIMESTAMP => …)`. */
const MAX_SNAPSHOTS = 10_000;

/**
 * A row for each snapshot and table of the database that it changed, the newest first; one without a table for a snapshot
 * that changed none of them, since queries may read at it as well.
 */
export async function* snapshotRows(
  catalog: Pick<Catalog, "oldestSnapshot" | "snapshots" | "tableChanges" | "tables">,
  database: string,
): AsyncGenerator<SystemRow> {
  const oldest = await catalog.oldestSnapshot();
  const snapshots = (await catalog.snapshots(MAX_SNAPSHOTS)).filter(({ id }) => id >= oldest.id);
  const names = new Map((await catalog.tables(database)).map(({ id, name }) => [id, name]));
  const changes = await catalog.tableChanges([...names.keys()], snapshots.at(-1)?.id ?? oldest.id);
  const bySnapshot = Map.groupBy(changes, ({ snapshot }) => snapshot);
  for (const { id, committedAtMs } of snapshots) {
    const head = { id, committed_at: nsOfMs(committedAtMs) };
    const own = bySnapshot.get(id);
    if (own === undefined) yield head;
    for (const change of own ?? []) {
      yield {
        ...head,
        table_name: names.get(change.tableId),
        operation: operationOf(change),
        rows_added: change.rowsAdded,
        rows_removed: change.rowsRemoved,
        extents_added: change.added,
        extents_removed: change.removed,
      };
    }
  }
}

/** In the words that Iceberg has for it. */
function operationOf({ added, removed, rowsAdded, rowsRemoved }: TableChange): string {
  if (removed === 0) return "append";
  if (added === 0) return "delete";
  return rowsAdded === rowsRemoved ? "replace" : "overwrite";
}
