import type {
  ColumnProbe,
  DatabaseRecord,
  ExtentSummary,
  ScanPlan,
  ScanRequest,
  Snapshot,
  TableRecord,
  TimeRange,
} from "../catalog.ts";
import { foldName } from "../../core/names.ts";
import type { Connection } from "./connection.ts";
import { findDeadExtents, findExtents, StatsReader, type RawExtent } from "./extents.ts";
import { findExtentsWithout } from "./filters.ts";
import { ScanPlanner } from "./scan.ts";
import { SchemaReader } from "./schema.ts";
import { readSnapshots } from "./snapshots.ts";
import { verifyCatalog } from "./verify.ts";

/** Extents per message, so that a large answer never holds up the thread that receives it. */
const EXTENTS_PER_PART = 500;

/** The reads that may be large, on a thread of their own. */
export class Reader {
  readonly #connection: Connection;
  readonly #schema: SchemaReader;
  readonly #scans: ScanPlanner;

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

  snapshots(limit: number): Snapshot[] {
    return readSnapshots(this.#connection, limit);
  }

  /** Parts of the answer, in order; the caller runs the generator to its end. */
  *extents(tableId: number, atSnapshot: number, range: TimeRange, statsOf?: readonly string[]): Generator<RawExtent[]> {
    const parts = this.#connection.read(() => {
      const stats = this.#statsReader(tableId, statsOf);
      return findExtents(this.#connection, tableId, atSnapshot, range).map((found) => stats.read(found));
    });
    for (let i = 0; i < parts.length; i += EXTENTS_PER_PART) yield parts.slice(i, i + EXTENTS_PER_PART);
  }

  extentsWithout(tableId: number, extentIds: readonly string[], probes: readonly ColumnProbe[]): string[] {
    return this.#connection.read(() => {
      const table = this.#schema.tableById(tableId);
      return table === undefined ? [] : findExtentsWithout(this.#connection, table, extentIds, probes);
    });
  }

  /** Extents in parts, in order, each with the numbers of the whole. */
  *planScan(request: ScanRequest): Generator<ScanPlan> {
    const { extents, ...pruning } = this.#connection.read(() => this.#scans.plan(request));
    for (let i = 0; i === 0 || i < extents.length; i += EXTENTS_PER_PART) {
      yield { extents: extents.slice(i, i + EXTENTS_PER_PART), ...pruning };
    }
  }

  *deadExtents(tableId: number, beforeMs: number): Generator<ExtentSummary[]> {
    const dead = findDeadExtents(this.#connection, tableId, beforeMs);
    for (let i = 0; i < dead.length; i += EXTENTS_PER_PART) yield dead.slice(i, i + EXTENTS_PER_PART);
  }

  verify(): void {
    this.#connection.read(() => verifyCatalog(this.#connection));
  }

  #statsReader(tableId: number, statsOf: readonly string[] | undefined): StatsReader {
    const columns = this.#schema.tableById(tableId)?.columns ?? [];
    const names = new Map(columns.map(({ id, name }) => [id, name]));
    if (statsOf === undefined) return new StatsReader(this.#connection, names);
    const wantedNames = new Set(statsOf.map(foldName));
    const wanted = columns.filter(({ name }) => wantedNames.has(foldName(name)));
    return new StatsReader(this.#connection, names, new Set(wanted.map(({ id }) => id)));
  }
}
