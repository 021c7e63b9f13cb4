import { mayUseDatabase } from "../../auth/caller.ts";
import type { Catalog, PlannedExtent, Resolution, Snapshot, TableRecord } from "../../catalog/catalog.ts";
import { snapshotExpired } from "../../catalog/refusals.ts";
import type { Reading } from "../../catalog/snapshot-holds.ts";
import type { Clock } from "../../core/clock.ts";
import { EngineError, type ErrorDetails } from "../../core/errors.ts";
import { foldName, isName } from "../../core/names.ts";
import { nearest } from "../../core/nearest.ts";
import type { Listing } from "../resolve/listings.ts";
import type { NeededTable, Needs, TableShape, VisibleRows } from "../scan/protocol.ts";
import { describePruning, pruneTable, type Pruning } from "./prune.ts";
import type { MatchedRows, QueryRequest } from "../contract/query.ts";
import { visibleRows, withinRetention } from "./retention.ts";
import { isSystemSchema, tablesOfSchema } from "../system-tables/system-tables.ts";

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
  extents: readonly PlannedExtent[];
  /** What the table shows of its rows, when it keeps them for some days only. */
  visible?: VisibleRows | undefined;
};

export type TablePlan = PlannedTable & {
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
  reading?: Pick<Reading, "reads" | "hold"> | undefined;
};

/** Who asks, and of which database. */
type Asker = Pick<QueryRequest, "caller" | "database" | "matching">;

/** Plans over the catalog as it is now. Throws `EngineError`: unknown names, unreadable snapshots. */
export async function planQuery(
  catalog: Catalog,
  request: Asker,
  needs: Needs,
  { clock, prune = true, reading }: PlanOptions,
): Promise<QueryPlan> {
  const { head, tables: found } = await resolveTables(catalog, request, needs);
  reading?.reads(head.id);
  const tables: TablePlan[] = [];
  for (const [i, need] of needs.tables.entries()) {
    const table = found[i];
    if (table === undefined) throw await tableNotFound(catalog, need.database ?? request.database, need);
    const { matching } = request;
    const travel = matching === undefined ? need.travel : { version: BigInt(matching.snapshot) };
    const snapshot = await snapshotOf(catalog, table, { ...need, ...(travel && { travel }) }, head);
    // Before the plan, which may be of extents that are about to go.
    if (snapshot < head.id) await reading?.hold(snapshot);
    const visible = matching === undefined ? visibleRows(table, clock.nowMs()) : undefined;
    const mentions = prune ? need.mentions : [{ range: {}, predicates: [] }];
    const pruned = await pruneTable(catalog, table, snapshot, withinRetention(mentions, visible));
    // A table of another database was looked up a moment later than the head.
    const isOlder = travel !== undefined || need.database !== undefined;
    const shape = shapeOf(isOlder ? tableAt(table, snapshot) : table);
    const label = need.database === undefined ? table.name : `${table.database}.${table.name}`;
    const needed = neededOf(table, need);
    const planned = { ...shape, label, tableId: table.id, needed, snapshot, visible, ...pruned };
    tables.push(matching === undefined ? planned : ofExtents(planned, matching));
  }
  const listed = await Promise.all(needs.listings.map((listing) => namesOf(catalog, request, listing)));
  return { head, tables, listed };
}

type Resolved = Pick<Resolution, "head" | "tables">;

/**
 * The tables of a query, by their place among its needs, and the snapshot that all are read at. Those of the query's own
 * database are asked for at once: each question is a way to the catalog.
 */
async function resolveTables(catalog: Catalog, request: Asker, needs: Needs): Promise<Resolved> {
  const own = needs.tables.filter(({ database }) => database === undefined);
  const names = own.map(({ name }) => name);
  const resolution = await catalog.resolve(request.database, names);
  if (resolution === undefined && (own.length > 0 || !mayBeAbsent(request, needs))) {
    throw await databaseNotFound(catalog, request);
  }
  const head = resolution?.head ?? (await catalog.head());
  const found = new Map(own.map((need, i) => [need, resolution?.tables[i]]));
  const others = needs.tables.filter(({ database }) => database !== undefined);
  for (const need of others) found.set(need, await foreignTable(catalog, request, need));
  return { head, tables: needs.tables.map((need) => found.get(need)) };
}

/**
 * A table of another database than the query's own. A caller who is limited to some databases is told the same of all
 * others, without a look at the catalog: that there is no such database.
 */
async function foreignTable(catalog: Catalog, { caller }: Asker, need: NeededTable): Promise<TableRecord | undefined> {
  const { database = "", name } = need;
  const asked = { caller, database };
  if (!mayUseDatabase(caller, database))
    throw await databaseNotFound(catalog, asked, { ...placeOf(need), refused: true });
  const resolution = await catalog.resolve(database, [name]);
  if (resolution === undefined) throw await databaseNotFound(catalog, asked, placeOf(need));
  return resolution.tables[0];
}

/** The database that is meant where none is named: before its first row nobody made it. */
const IMPLIED_DATABASE = "default";

/** Whether the query asks for nothing that only a database has: the system's tables, lists, tables of other databases. */
function mayBeAbsent({ database }: Asker, { tables, system, listings }: Needs): boolean {
  return foldName(database) === IMPLIED_DATABASE && tables.length + system.length + listings.length > 0;
}

/** The names that a listing has for the caller. */
async function namesOf(catalog: Catalog, { caller, database }: Asker, listing: Listing): Promise<string[]> {
  if (listing.of === "databases") {
    return (await catalog.databases()).map(({ name }) => name).filter((name) => mayUseDatabase(caller, name));
  }
  const { database: of = database } = listing;
  if (isSystemSchema(of) && listing.database !== undefined) return tablesOfSchema(of);
  if (!mayUseDatabase(caller, of)) throw await databaseNotFound(catalog, { caller, database: of }, { refused: true });
  const isKnown = listing.database === undefined || (await catalog.database(of)) !== undefined;
  if (!isKnown) throw await databaseNotFound(catalog, { caller, database: of });
  return (await catalog.tables(of)).map(({ name }) => name);
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

async function snapshotOf(catalog: Catalog, table: TableRecord, need: NeededTable, head: Snapshot): Promise<number> {
  const { travel } = need;
  if (travel === undefined) return head.id;
  const snapshot =
    "version" in travel ? versionOf(travel.version, need, head) : await latestBy(catalog, travel.atNs, need, head);
  const oldest = await catalog.oldestSnapshot(table.id);
  if (snapshot >= oldest.id) return snapshot;
  throw snapshotExpired(snapshot, oldest, placeOf(need));
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

function versionOf(version: bigint, need: NeededTable, head: Snapshot): number {
  if (version >= 0n && version <= BigInt(head.id)) return Number(version);
  const message = `there is no snapshot ${version}; the newest is ${head.id}`;
  throw new EngineError("invalid_query", message, placeOf(need));
}

/** The newest snapshot at that moment, of those that this query sees. */
async function latestBy(catalog: Catalog, atNs: bigint, need: NeededTable, head: Snapshot): Promise<number> {
  // Times of snapshots are whole milliseconds, rounded down; so is the moment.
  const atMs = Number((atNs - (((atNs % NS_PER_MS) + NS_PER_MS) % NS_PER_MS)) / NS_PER_MS);
  const snapshot = await catalog.snapshotAt(atMs);
  if (snapshot !== undefined) return Math.min(snapshot.id, head.id);
  const message = `there was no snapshot yet at ${new Date(atMs).toISOString()}`;
  throw new EngineError("invalid_query", message, placeOf(need));
}

const NS_PER_MS = 1_000_000n;

/** Suggests a name of those that the caller may see. */
export async function databaseNotFound(
  catalog: Pick<Catalog, "databases">,
  { caller, database: name }: Pick<QueryRequest, "caller" | "database">,
  details: Pick<ErrorDetails, "refused" | "line" | "column"> = {},
): Promise<EngineError> {
  const names = (await catalog.databases()).map((database) => database.name);
  const seen = names.filter((other) => mayUseDatabase(caller, other));
  const suggestion = nearest(name, seen);
  return notFound("database_not_found", "database", name, suggestion, details);
}

async function tableNotFound(catalog: Catalog, database: string, need: NeededTable): Promise<EngineError> {
  const tables = await catalog.tables(database);
  const suggestion = nearest(need.name, [
    ...tables.map((table) => table.name),
    ...(need.cte === undefined ? [] : [need.cte]),
  ]);
  const place = placeOf(need);
  // No table can have such a name: somebody tries what else it may lead to.
  const details = isName(need.name) ? place : { ...place, refused: true as const };
  return notFound("table_not_found", "table", need.name, suggestion, details);
}

function notFound(
  code: "database_not_found" | "table_not_found",
  thing: string,
  name: string,
  suggestion: string | undefined,
  place: Pick<ErrorDetails, "line" | "column" | "refused">,
): EngineError {
  const hint = suggestion === undefined ? "" : `; did you mean ${JSON.stringify(suggestion)}?`;
  return new EngineError(code, `there is no ${thing} ${JSON.stringify(name)}${hint}`, {
    ...place,
    ...(suggestion === undefined ? {} : { suggestion }),
  });
}

function placeOf(need: NeededTable): { line?: number; column?: number } {
  const { line, column } = need;
  return line === undefined || column === undefined ? {} : { line, column };
}

/** As the table was: what came later is not in its `*`, so that reads of one snapshot are the same for ever. */
function tableAt(table: TableRecord, snapshot: number): TableRecord {
  return { ...table, columns: table.columns.filter(({ sinceSnapshot = 0 }) => sinceSnapshot <= snapshot) };
}

function shapeOf(table: TableRecord): TableShape {
  return { name: table.name, columns: table.columns.map(({ name, type }) => ({ name, type })) };
}

/** What `EXPLAIN` says about the planning of each table. */
export function explainPruning({ tables }: QueryPlan): string[] {
  return tables.map(({ label, snapshot, pruning }) => describePruning(label, snapshot, pruning));
}
