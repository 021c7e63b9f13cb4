import type { Catalog, PlannedExtent, Snapshot, TableRecord } from "../../catalog/catalog.ts";
import { snapshotExpired } from "../../catalog/refusals.ts";
import { columnAt, unwidenedIn } from "../../catalog/widening.ts";
import type { SnapshotPin } from "../../catalog/snapshot-holds.ts";
import type { Clock } from "../../core/clock.ts";
import { EngineError } from "../../core/errors.ts";
import { foldName } from "../../core/names.ts";
import { FORMAT_VERSION, isReadable } from "../../format/types.ts";
import type { MatchedRows, QueryRequest, TailedRows } from "../contract/query.ts";
import type { LocalExtent, TableShape, TimeBounds, VisibleRows } from "../contract/tables.ts";
import type { NeededTable, Needs } from "../resolve/needs.ts";
import { tableNotFound } from "../resolve/not-found.ts";
import { namesOf, resolveTables } from "../resolve/resolve-tables.ts";
import { snapshotOf } from "../resolve/snapshot-of.ts";
import { describePruning, pruneTable, type Pruning } from "./prune.ts";
import { visibleRows, withinRetention } from "./retention.ts";
import { timeBounds } from "./time-bounds.ts";

/**
 * The plan of a query as data, made before anything is fetched: its tables at one snapshot, and of each the extents
 * that may hold rows that matter.
 */
export type QueryPlan = {
  /** The newest snapshot when the query was planned; tables without time travel are read at it. */
  head: Snapshot;
  /** One per needed table, in order. */
  tables: readonly TablePlan[];
  /** The names of each of the query's listings, in order. */
  listed: readonly (readonly string[])[];
};

export type PlannedTable = TableShape & {
  /** Columns that the query can touch; all when undefined. */
  needed: readonly string[] | undefined;
  extents: readonly (PlannedExtent & Pick<LocalExtent, "unwidened" | "inNanoseconds">)[];
  /** What the table shows of its rows, when it keeps them for some days only. */
  visible?: VisibleRows | undefined;
  bounds?: readonly TimeBounds[];
};

export type TablePlan = PlannedTable & {
  database: string;
  /** As `EXPLAIN` names it. */
  label: string;
  tableId: number;
  /** The snapshot that the table is read at. */
  snapshot: number;
  pruning: Pruning;
};

export type PlanOptions = {
  clock: Pick<Clock, "nowMs">;
  /** Whether extents are left out; `false` only to compare. */
  prune?: boolean;
  /** Is told what the plan reads. */
  reading?: Pick<SnapshotPin, "reads" | "hold"> | undefined;
};

/** Plans over the catalog as it is now. Throws `EngineError`: unknown names, unreadable snapshots. */
export async function planQuery(
  catalog: Catalog,
  request: Pick<QueryRequest, "caller" | "database" | "matching" | "tailing">,
  needs: Needs,
  { clock, prune = true, reading }: PlanOptions,
): Promise<QueryPlan> {
  const { head, tables: found } = await resolveTables(catalog, request, needs);
  reading?.reads(head.id);
  const tables: TablePlan[] = [];
  for (const [i, need] of needs.tables.entries()) {
    const table = found[i];
    if (table === undefined) throw await tableNotFound(catalog, need.database ?? request.database, need);
    const { matching, tailing } = request;
    if (tailing !== undefined) {
      if (table.id !== tailing.tableId) throw await tableNotFound(catalog, request.database, need);
      reading?.reads(Math.min(head.id, ...tailing.extents.map(({ beginSnapshot }) => beginSnapshot)));
      tables.push(tailPlan(table, tailing, visibleRows(table, clock.nowMs())));
      continue;
    }
    const travel = matching === undefined ? need.travel : { version: BigInt(matching.snapshot) };
    const snapshot = await snapshotOf(catalog, table, { ...need, ...(travel && { travel }) }, head);
    // Before the plan, which may be of extents that are about to go.
    if (snapshot < head.id) await reading?.hold(snapshot);
    const visible = matching === undefined ? visibleRows(table, clock.nowMs()) : undefined;
    const mentions = prune ? need.mentions : [{ range: {}, predicates: [] }];
    const within = withinRetention(mentions, visible);
    const pruned = await pruneTable(catalog, table, snapshot, within);
    // A table of another database was looked up a moment later than the head.
    const isOlder = travel !== undefined || need.database !== undefined;
    const shown = isOlder ? tableAt(table, snapshot) : table;
    const shape = shapeOf(shown);
    const label = need.database === undefined ? table.name : `${table.database}.${table.name}`;
    const needed = neededOf(table, need);
    const extents = pruned.extents.map((extent) => asInFile(shown, extent));
    const bounds = timeBounds(within, shape.columns);
    const database = need.database === undefined ? request.database : table.database;
    const planned = {
      ...shape,
      database,
      label,
      tableId: table.id,
      needed,
      snapshot,
      visible,
      bounds,
      ...pruned,
      extents,
    };
    tables.push(matching === undefined ? planned : ofExtents(planned, matching));
  }
  for (const { label, extents } of tables) checkReadable(label, extents);
  const listed = await Promise.all(needs.listings.map((listing) => namesOf(catalog, request, listing)));
  return { head, tables, listed };
}

/** Throws `unavailable` for an extent that a newer version wrote in a way of its own: a server of that version reads it. */
function checkReadable(table: string, extents: readonly PlannedExtent[]): void {
  const newer = extents.find((extent) => !isReadable(extent));
  if (newer === undefined) return;
  const { id, format, formatVersion } = newer;
  const what = `extent ${id} of ${table} is in version ${formatVersion} of ${format}, and this server reads up to`;
  throw new EngineError("unavailable", `${what} ${FORMAT_VERSION[format]}: ask a server of the newer version`);
}

/** Reads the extents that it is given, with the columns that the table has now. */
function tailPlan(table: TableRecord, { extents }: TailedRows, visible: VisibleRows | undefined): TablePlan {
  const total = { extents: extents.length, sizeBytes: extents.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) };
  const none = { extents: 0, sizeBytes: 0 };
  const pruning = { total, byTime: none, byStats: none, byTop: none, byFilters: none, read: total };
  // Whoever gave the extents knows whether they can be read.
  const snapshot = Infinity;
  const { id: tableId, name: label, database } = table;
  const widened = extents.map((extent) => asInFile(table, extent));
  return {
    ...shapeOf(table),
    database,
    label,
    tableId,
    needed: undefined,
    snapshot,
    visible,
    extents: widened,
    pruning,
  };
}

/** Only rows of those extents, all of which are read: how many an extent has is not how many match. */
function ofExtents(plan: TablePlan, { extentIds }: MatchedRows): TablePlan {
  const needed = plan.needed?.length === 0 ? undefined : plan.needed;
  return { ...plan, needed, extents: plan.extents.filter(({ id }) => extentIds.has(id)) };
}

function neededOf(table: TableRecord, { columns }: NeededTable): string[] | undefined {
  if (columns === undefined) return undefined;
  const named = new Set(columns);
  return table.columns.map(({ name }) => name).filter((name) => named.has(foldName(name)));
}

/**
 * Why a query that failed had to, if what it read was made unreadable meanwhile: then bytes were gone that it needed,
 * and nothing else that it says about them counts. Undefined when all can still be read.
 */
export async function expiryOf(catalog: Catalog, { tables }: QueryPlan): Promise<EngineError | undefined> {
  for (const { tableId, snapshot } of tables) {
    const oldest = await catalog.oldestSnapshot(tableId);
    if (snapshot < oldest.id) return snapshotExpired(snapshot, oldest);
  }
  return undefined;
}

/**
 * As the table was: what came later is not in its `*`, and what was widened later has the type it had, so that reads of
 * one snapshot are the same for ever.
 */
export function tableAt(table: TableRecord, snapshot: number): TableRecord {
  const columns = table.columns.filter(({ sinceSnapshot = 0 }) => sinceSnapshot <= snapshot);
  return { ...table, columns: columns.map((column) => columnAt(column, snapshot)) };
}

/** The extent, with the columns that its file has otherwise than the table. */
function asInFile(table: TableRecord, extent: PlannedExtent): PlannedTable["extents"][number] {
  const unwidened = unwidenedIn(table, extent.schemaVersion);
  const ids = new Set(extent.nanosecondColumnIds);
  if (unwidened.length === 0 && ids.size === 0) return extent;
  const inNanoseconds = table.columns.filter(({ id }) => ids.has(id)).map(({ name }) => name);
  return { ...extent, ...(unwidened.length > 0 && { unwidened }), ...(ids.size > 0 && { inNanoseconds }) };
}

function shapeOf(table: TableRecord): TableShape {
  return { name: table.name, columns: table.columns.map(({ name, type }) => ({ name, type })) };
}

/** What `EXPLAIN` says about the planning of each table. */
export function explainPruning({ tables }: QueryPlan): string[] {
  return tables.map(({ label, snapshot, pruning }) => describePruning(label, snapshot, pruning));
}
