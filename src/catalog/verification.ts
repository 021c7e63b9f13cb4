import { foldName } from "../core/names.ts";
import type { ColumnRecord, ExtentSummary, Snapshot } from "./catalog.ts";
import {
  columnIdsAreNeverReused,
  columnNamesAreUnique,
  extentBeginsByHead,
  extentEndsAfterItBegins,
  extentIsWellFormed,
  filtersAreOneToAColumn,
  headStrictlyIncreases,
  InvariantViolation,
  nanosecondColumnsAreStored,
  nullCountFitsRows,
  snapshotTimesNeverDecrease,
  statisticsNameKnownColumns,
  totalsMatchLiveExtents,
  type TableTotals,
} from "./invariants.ts";
import { toBigint, toColumn, toSnapshot, toSummary } from "./rows.ts";
import { decodeStats, ListParser } from "./stats-encoding.ts";

/**
 * What `Catalog.verify` looks at in every row, whichever database has it. The drivers walk through their tables and hand
 * in the rows, all columns of each; every check throws an `InvariantViolation`.
 */
type Row = Readonly<Record<string, unknown>>;

/** Takes snapshots in the order of their numbers. */
export class SnapshotVerifier {
  #newest: Snapshot | undefined;

  get newest(): Snapshot | undefined {
    return this.#newest;
  }

  add(row: Row): void {
    const snapshot = toSnapshot(row);
    if (this.#newest !== undefined) {
      headStrictlyIncreases(this.#newest, snapshot);
      snapshotTimesNeverDecrease(this.#newest, snapshot);
    }
    this.#newest = snapshot;
  }
}

/** Names of columns by id, by the table's id. */
export type KnownColumns = ReadonlyMap<number, ReadonlyMap<number, string>>;

/** Looks at a table and at its columns, given in the order of their ids; resolves to their names by id. */
export function verifyTable(table: Row, columnRows: readonly Row[]): Map<number, string> {
  const id = Number(table["id"]);
  namesAreFolded(`table ${id}`, table);
  const columns = columnRows.map((row) => verifiedColumn(row, id, Number(table["schema_version"])));
  columnIdsAreNeverReused(id, columns, Number(table["next_column_id"]));
  columnNamesAreUnique(id, columns);
  return new Map(columns.map((column) => [column.id, column.name]));
}

function verifiedColumn(row: Row, tableId: number, schemaVersion: number): ColumnRecord {
  const column = toColumn(row);
  namesAreFolded(`column ${column.id} of table ${tableId}`, row);
  const since = Number(row["since_version"]);
  if (since >= 1 && since <= schemaVersion) return column;
  const text = `column ${column.id} of table ${tableId} is of version ${since}, the table of ${schemaVersion}`;
  throw new InvariantViolation("columnsComeByTheSchemaVersion", text);
}

function namesAreFolded(what: string, row: Row): void {
  const [name, folded] = [String(row["name"]), String(row["folded_name"])];
  if (foldName(name) === folded) return;
  throw new InvariantViolation("namesAreFolded", `${what} is stored as ${name} and ${folded}`);
}

/** What lies apart from an extent's row. `columnIds` and `stats` are no text where there are none. */
export type ExtentParts = {
  columnIds: unknown;
  stats: unknown;
  filters: readonly { columnId: number; kind: string }[];
};

const NO_EXTENTS: TableTotals = { rows: 0, extents: 0, sizeBytes: 0 };

/** Takes extents in any order, then compares what they add up to. */
export class ExtentVerifier {
  readonly #head: Snapshot;
  readonly #columns: KnownColumns;
  readonly #ids: ReadonlyMap<number, ReadonlySet<number>>;
  readonly #lists = new ListParser<number>();
  readonly #totals = new Map<number, TableTotals>();

  constructor(head: Snapshot, columns: KnownColumns) {
    this.#head = head;
    this.#columns = columns;
    this.#ids = new Map([...columns].map(([tableId, names]) => [tableId, new Set(names.keys())]));
  }

  /** `row` has `newest_ns` besides what `toSummary` reads. */
  add(row: Row, parts: ExtentParts): void {
    const extent = toSummary(row);
    extentIsWellFormed(extent);
    extentBeginsByHead(extent, this.#head);
    extentEndsAfterItBegins(extent, this.#head);
    const newestNs = toBigint(row["newest_ns"]);
    if (newestNs > extent.maxAtNs) {
      throw new InvariantViolation("extentsAreNoNewerThanTheirRows", `extent ${extent.id} is as new as ${newestNs}`);
    }
    this.#verifyParts(extent, parts);
    if (extent.endSnapshot === undefined) this.#addUp(extent);
  }

  /** `kept` gives the totals that the catalog keeps of a table. */
  verifyTotals(kept: (tableId: number) => TableTotals): void {
    for (const id of this.#columns.keys()) totalsMatchLiveExtents(id, kept(id), this.#totals.get(id) ?? NO_EXTENTS);
  }

  #verifyParts(
    { id, tableId, rows, nanosecondColumnIds = [] }: ExtentSummary,
    { columnIds, stats, filters }: ExtentParts,
  ): void {
    const [columns, known] = [this.#columns.get(tableId), this.#ids.get(tableId)];
    if (columns === undefined || known === undefined)
      throw new InvariantViolation("referencesExist", `extent ${id} is of no table`);
    if (typeof columnIds !== "string" || typeof stats !== "string") {
      throw new InvariantViolation("extentsHaveStatistics", `extent ${id} has none`);
    }
    const ids = this.#lists.parse(columnIds);
    statisticsNameKnownColumns(id, ids, known);
    nanosecondColumnsAreStored(id, nanosecondColumnIds, ids);
    const names = ids.map((columnId) => columns.get(columnId) ?? "");
    for (const { name, nullCount } of decodeStats(names, stats)) nullCountFitsRows(id, name, nullCount, rows);
    filtersAreOneToAColumn(id, filters, known);
  }

  #addUp({ tableId, rows, sizeBytes }: ExtentSummary): void {
    const sum = this.#totals.get(tableId) ?? NO_EXTENTS;
    this.#totals.set(tableId, {
      rows: sum.rows + rows,
      extents: sum.extents + 1,
      sizeBytes: sum.sizeBytes + sizeBytes,
    });
  }
}
