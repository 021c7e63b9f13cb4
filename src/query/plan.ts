import type { Catalog, ExtentRecord, Snapshot, TableRecord } from "../catalog/catalog.ts";
import { EngineError } from "../core/errors.ts";
import { nearest } from "../core/nearest.ts";
import type { NeededTable, Needs, TableShape } from "./protocol.ts";

/**
 * The plan of a query as data, made before anything is fetched: its tables at one snapshot, and of each the extents
 * that may hold rows that matter.
 */
export type QueryPlan = {
  /** The newest snapshot when the query was planned; tables without time travel are read at it. */
  head: Snapshot;
  /** One per needed table, in order. */
  tables: readonly PlannedTable[];
  /** All tables of the database, when the query lists them. */
  listed: readonly TableShape[];
};

export type PlannedTable = TableShape & {
  /** Columns that the query can touch; all when undefined. */
  needed: readonly string[] | undefined;
  extents: readonly ExtentRecord[];
};

/** Plans over the catalog as it is now. Throws `EngineError`: unknown names, unreadable snapshots. */
export async function planQuery(catalog: Catalog, database: string, needs: Needs): Promise<QueryPlan> {
  const known = await catalog.database(database);
  if (known === undefined) throw await databaseNotFound(catalog, database);
  // Read once: all tables of a query are seen at the same snapshot.
  const head = await catalog.head();
  const tables: PlannedTable[] = [];
  for (const need of needs.tables) tables.push(await planTable(catalog, known.name, need, head));
  const listed = needs.listsTables ? await catalog.tables(known.name) : [];
  return { head, tables, listed: listed.map(shapeOf) };
}

async function planTable(catalog: Catalog, database: string, need: NeededTable, head: Snapshot): Promise<PlannedTable> {
  const table = await catalog.table(database, need.name);
  if (table === undefined) throw await tableNotFound(catalog, database, need);
  const snapshot = need.version ?? BigInt(head.id);
  if (snapshot < 0n || snapshot > BigInt(head.id)) {
    const message = `there is no snapshot ${snapshot}; the newest is ${head.id}`;
    throw new EngineError("invalid_query", message, placeOf(need));
  }
  const extents = await catalog.extents(table.id, Number(snapshot), need.range);
  return { ...shapeOf(table), needed: undefined, extents };
}

async function databaseNotFound(catalog: Catalog, name: string): Promise<EngineError> {
  const databases = await catalog.databases();
  const suggestion = nearest(
    name,
    databases.map((database) => database.name),
  );
  return notFound("database_not_found", "database", name, suggestion, {});
}

async function tableNotFound(catalog: Catalog, database: string, need: NeededTable): Promise<EngineError> {
  const tables = await catalog.tables(database);
  const suggestion = nearest(
    need.name,
    tables.map((table) => table.name),
  );
  return notFound("table_not_found", "table", need.name, suggestion, placeOf(need));
}

function notFound(
  code: "database_not_found" | "table_not_found",
  thing: string,
  name: string,
  suggestion: string | undefined,
  place: { line?: number; column?: number },
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

function shapeOf(table: TableRecord): TableShape {
  return { name: table.name, columns: table.columns.map(({ name, type }) => ({ name, type })) };
}
