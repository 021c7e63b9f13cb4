import type { ColumnProbe, TableRecord } from "../catalog.ts";
import { foldName } from "../../core/names.ts";
import { mayHold, type ColumnFilter } from "../../format/filter/filter.ts";
import { filtersAreOneToAColumn } from "../invariants.ts";
import type { Connection } from "../../db/sqlite/connection.ts";

/**
 * Filters of extents, as rows, and the search by them.
 *
 * They are in the catalog rather than in the extents' files, because what matters is what asking costs. A needle among
 * 1,250 extents asks 1,250 filters of 11 kB: here that is 25 ms of one thread, which reads them from the page cache and
 * checks them; as sections of files it is 1,250 requests, which an object store takes seconds to answer and charges
 * for. What it costs a commit is 11 kB besides an extent of 1.9 MB, which ingest does not notice.
 *
 * The filters are asked where they are read, so that none of them travels between threads.
 */
const INSERT = "INSERT INTO extent_filters (seq, column_id, kind, filter) VALUES (?, ?, ?, ?)";

/** Inserts the filters of an extent that has just been inserted as row `seq`. */
export function insertFilters(
  connection: Connection,
  table: TableRecord,
  extent: { id: string; seq: number; filters: readonly ColumnFilter[] },
): void {
  const rows = extent.filters.map(({ name, kind, bytes }) => ({ columnId: columnIdOf(table, name), kind, bytes }));
  filtersAreOneToAColumn(extent.id, rows, new Set(table.columns.map(({ id }) => id)));
  for (const { columnId, kind, bytes } of rows) connection.run(INSERT, extent.seq, columnId ?? 0, kind, bytes);
}

const FIND =
  "SELECT f.filter FROM extents e JOIN extent_filters f ON f.seq = e.seq " +
  "WHERE e.id = ? AND e.table_id = ? AND f.column_id = ? AND f.kind = ?";

/** The extents that cannot hold a row which answers to all probes. */
export function findExtentsWithout(
  connection: Connection,
  table: TableRecord,
  extentIds: readonly string[],
  probes: readonly ColumnProbe[],
): string[] {
  const asked = probes.flatMap((probe) => {
    const columnId = columnIdOf(table, probe.column);
    return columnId === undefined ? [] : [{ columnId, probe }];
  });
  return extentIds.filter((id) =>
    asked.some(({ columnId, probe }) => {
      const filter = connection.get(FIND, id, table.id, columnId, probe.kind)?.["filter"];
      return filter instanceof Uint8Array && !mayHold(filter, probe);
    }),
  );
}

function columnIdOf(table: TableRecord, name: string): number | undefined {
  const folded = foldName(name);
  return table.columns.find((column) => foldName(column.name) === folded)?.id;
}
