import type {
  Additions,
  AdditionsRequest,
  ColumnProbe,
  CrowdedDay,
  DatabaseRecord,
  ExtentSummary,
  FileChange,
  TableChange,
  ScanPlan,
  ScanRequest,
  Snapshot,
  TableRecord,
  TableSummary,
  TimeRange,
  UnpublishedDay,
  UnpublishedRequest,
} from "../catalog.ts";
import { fileChangesSql, toFileChange } from "../file-changes.ts";
import { tableChangesSql, toTableChange } from "../table-changes.ts";
import { toUnpublishedDay, unpublishedDaysSql, unpublishedDaysValues } from "../unpublished-days.ts";
import { columnsNamed } from "../stats-decoder.ts";
import type { Connection } from "../../db/sqlite/connection.ts";
import { findCrowdedDays } from "./crowded.ts";
import { findDeadExtents, findExpiredExtents, findExtents, StatsReader, type RawExtent } from "./extents.ts";
import { findExtentsWithout } from "./filters.ts";
import { findMisfits } from "./misfits.ts";
import { checkKept, checkReadable } from "./holds.ts";
import { ScanPlanner } from "./scan.ts";
import { SchemaReader } from "./schema.ts";
import { readSnapshots } from "./snapshots.ts";
import { findStaged } from "./staged.ts";
import type { TransferRow, TransferTable } from "../transfer/transfer.ts";
import { TransferRead } from "./transfer-read.ts";
import { verifyCatalog } from "./verify.ts";

const FILE_CHANGES = fileChangesSql({
  prefix: "",
  table: "?",
  after: "?",
  also: "SELECT value AS id FROM json_each(?)",
});

const TABLE_CHANGES = tableChangesSql({ prefix: "", tables: "SELECT value FROM json_each(?)", from: "?" });

const unpublished = (table: string | undefined): string =>
  unpublishedDaysSql({
    prefix: "",
    belowBytes: "?",
    upTo: "?",
    table,
    columnIds: {
      join: " JOIN extent_stats s ON s.seq = e.seq",
      from: "(SELECT value AS id FROM json_each(s.column_ids)) j",
    },
    isBefore1970: "(u.min_at_ns % 86400000000000 < 0)",
  });
export const UNPUBLISHED_DAYS = unpublished(undefined);
export const UNPUBLISHED_DAYS_OF_TABLE = unpublished("?");

/** Extents per message, so that a large answer never holds up the thread that receives it. */
const EXTENTS_PER_PART = 500;

/** The reads that may be large, on a thread of their own. */
export class Reader {
  readonly #connection: Connection;
  readonly #schema: SchemaReader;
  readonly #scans: ScanPlanner;
  #transfer: TransferRead | undefined;

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#schema = new SchemaReader(connection);
    this.#scans = new ScanPlanner(connection, this.#schema);
  }

  databases(): DatabaseRecord[] {
    return this.#schema.databases();
  }

  tables(database: string): TableRecord[] {
    return this.#connection.read(() => this.#schema.tables(database));
  }

  allTables(): TableRecord[] {
    return this.#connection.read(() => this.#schema.allTables());
  }

  tableSummaries(database: string | undefined): TableSummary[] {
    return this.#schema.summaries(database);
  }

  snapshots(limit: number): Snapshot[] {
    return readSnapshots(this.#connection, limit);
  }

  /** Parts of the answer, in order; the caller runs the generator to its end. */
  *extents(tableId: number, atSnapshot: number, range: TimeRange, statsOf?: readonly string[]): Generator<RawExtent[]> {
    const parts = this.#connection.read(() => {
      checkReadable(this.#connection, tableId, atSnapshot);
      const stats = this.#statsReader(tableId, statsOf);
      return findExtents(this.#connection, tableId, atSnapshot, range).map((found) => stats.read(found));
    });
    yield* inParts(parts);
  }

  extentsWithout(tableId: number, extentIds: readonly string[], probes: readonly ColumnProbe[]): string[] {
    return this.#connection.read(() => {
      const table = this.#schema.tableById(tableId);
      return table === undefined ? [] : findExtentsWithout(this.#connection, table, extentIds, probes);
    });
  }

  /** Extents in parts, in order, each with the numbers of the whole. */
  *planScan(request: ScanRequest): Generator<ScanPlan> {
    const { extents, ...pruning } = this.#connection.read(() => {
      checkReadable(this.#connection, request.tableId, request.atSnapshot);
      return this.#scans.plan(request);
    });
    for (let i = 0; i === 0 || i < extents.length; i += EXTENTS_PER_PART) {
      yield { extents: extents.slice(i, i + EXTENTS_PER_PART), ...pruning };
    }
  }

  fileChanges(tableId: number, after: number, also: readonly number[]): FileChange[] {
    const values = [tableId, after, tableId, after, JSON.stringify(also), after];
    return this.#connection.all(FILE_CHANGES, ...values).map(toFileChange);
  }

  tableChanges(tableIds: readonly number[], from: number): TableChange[] {
    const ids = JSON.stringify(tableIds);
    return this.#connection.all(TABLE_CHANGES, ids, from, ids, from).map(toTableChange);
  }

  /** Extents in parts, in order, each with the snapshot of the whole. */
  *additions(request: AdditionsRequest): Generator<Additions> {
    const { tableId, from } = request;
    const { extents, upTo } = this.#connection.read(() => {
      checkKept(this.#connection, tableId, from - 1);
      const found = this.#scans.additions(request);
      for (const { endSnapshot } of found.extents) {
        if (endSnapshot !== undefined) checkReadable(this.#connection, tableId, endSnapshot - 1);
      }
      return found;
    });
    for (let i = 0; i === 0 || i < extents.length; i += EXTENTS_PER_PART) {
      yield { extents: extents.slice(i, i + EXTENTS_PER_PART), upTo };
    }
  }

  goneExtents(ids: readonly string[]): string[] {
    return ids.filter((id) => this.#connection.get("SELECT 1 FROM extents WHERE id = ?", id) === undefined);
  }

  /** By column id. */
  misfits(tableId: number, extentIds?: readonly string[]): [number, number][] {
    return [...findMisfits(this.#connection, tableId, extentIds)];
  }

  *deadExtents(tableId: number, beforeMs: number, limit: number): Generator<ExtentSummary[]> {
    yield* inParts(findDeadExtents(this.#connection, tableId, beforeMs, limit));
  }

  *expiredExtents(tableId: number, beforeNs: bigint, limit: number): Generator<ExtentSummary[]> {
    yield* inParts(findExpiredExtents(this.#connection, tableId, beforeNs, limit));
  }

  crowdedDays(request: { belowBytes: number; minExtents: number; limit: number }): CrowdedDay[] {
    return findCrowdedDays(this.#connection, request);
  }

  unpublishedDays(request: UnpublishedRequest): UnpublishedDay[] {
    const values = unpublishedDaysValues(request);
    const { tableId } = request;
    const rows =
      tableId === undefined
        ? this.#connection.all(UNPUBLISHED_DAYS, ...values)
        : this.#connection.all(UNPUBLISHED_DAYS_OF_TABLE, tableId, tableId, ...values);
    return rows.map(toUnpublishedDay);
  }

  committedStaged(ids: readonly string[]): string[] {
    return ids.filter((id) => findStaged(this.#connection, id) !== undefined);
  }

  verify(): void {
    this.#connection.read(() => verifyCatalog(this.#connection));
  }

  /** Begins to read the whole catalog as of now; it lasts until the part is closed. */
  openTransfer(): { version: number; tables: TransferTable[] } {
    this.#transfer ??= new TransferRead(this.#connection);
    const { version, tables } = this.#transfer;
    return { version, tables };
  }

  startTransfer(table: string): void {
    this.#transfer?.start(table);
  }

  /** The next rows of the table that was started; none at its end. */
  nextTransfer(): TransferRow[] {
    return this.#transfer?.next() ?? [];
  }

  #statsReader(tableId: number, statsOf: readonly string[] | undefined): StatsReader {
    const columns = this.#schema.columnsById(tableId);
    const wanted = statsOf === undefined ? undefined : columnsNamed(columns, statsOf);
    return new StatsReader(this.#connection, columns, wanted);
  }
}

function* inParts<T>(items: readonly T[]): Generator<T[]> {
  for (let i = 0; i < items.length; i += EXTENTS_PER_PART) yield items.slice(i, i + EXTENTS_PER_PART);
}
