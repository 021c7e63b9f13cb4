import type { Catalog, LedgerEntry, TableRecord } from "../catalog/catalog.ts";
import { EngineError } from "../core/errors.ts";
import { checkName, checkNewDatabase, isDuckDbName } from "../core/names.ts";
import { DEFAULT_SHAPE, formatColumnType, type ColumnSpec } from "../format/types.ts";
import type { IngestAck, IngestRequest } from "./ingest.ts";

type Named = Pick<IngestRequest, "database" | "table" | "autoCreate">;

/**
 * The table as the catalog has it; undefined where it is missing and may be created, which happens when rows for it were
 * read (`flush.ts`). Throws `table_not_found` where it may not, `invalid_name` where no table can have that name.
 */
export async function findTable(catalog: Catalog, request: Named): Promise<TableRecord | undefined> {
  const known = await catalog.table(request.database, request.table);
  if (known !== undefined) return known;
  const database = checkName("database", request.database);
  const table = checkName("table", request.table);
  if (!request.autoCreate) throw tableNotFound({ database, table }, ", and X-Auto-Create is false");
  if (isDuckDbName(database) && (await catalog.database(database)) === undefined) checkNewDatabase(database);
  return undefined;
}

/** Creates the table; undefined when somebody else has created it. */
export async function createTable(
  catalog: Catalog,
  { database, table: name, columns }: Pick<Named, "database" | "table"> & Shape,
  inferTypes: boolean,
): Promise<TableRecord | undefined> {
  const { table, created } = await catalog.createTable({ database, name, columns, inferTypes });
  return created ? table : undefined;
}

type Shape = { columns: readonly ColumnSpec[] };
/** A request, or what came of it, as far as it says what the table is to be like if it creates it. */
type Shaping = Partial<Shape>;

/** The columns of a table that these create: the first says. */
export function shapeFor([first]: readonly Shaping[]): Shape {
  return { columns: first?.columns ?? DEFAULT_SHAPE };
}

/** Those that would create the table as the first of them would, and the others. */
export function ofOneShape<T extends Shaping>(bodies: readonly T[]): [same: T[], others: T[]] {
  const shape = textOf(shapeFor(bodies));
  const isSame = (body: T) => body.columns === bodies[0]?.columns || textOf(shapeFor([body])) === shape;
  return [bodies.filter(isSame), bodies.filter((body) => !isSame(body))];
}

function textOf({ columns }: Shape): string {
  return JSON.stringify(columns.map(({ name, type, inferred }) => [name, formatColumnType(type), inferred ?? false]));
}

/**
 * Whether new columns of a request get types by their values: as the request says, else as its table says, else as the
 * configuration does.
 */
export function infersTypes(
  request: Pick<IngestRequest, "inferTypes">,
  table: Pick<TableRecord, "inferTypes"> | undefined,
  configured: boolean | undefined,
): boolean {
  return request.inferTypes ?? table?.inferTypes ?? configured ?? false;
}

export function tableNotFound(
  { database, table }: Pick<Named, "database" | "table">,
  reason = " any more",
): EngineError {
  return new EngineError("table_not_found", `table ${database}.${table} does not exist${reason}`);
}

/** A key before its request is taken: it was applied before, or it was free then, by the clock of the write path. */
export type KeyState = { ack: IngestAck } | { freeAtMs: number };

/** What the ledger has for the key; the time is the catalog's. A table that is to be created has no keys. */
export async function keyInLedger(catalog: Catalog, table: TableRecord | undefined, key: string): Promise<KeyState> {
  if (table === undefined) return { freeAtMs: await catalog.nowMs() };
  const { entry, atMs } = await catalog.lookUpKey(table.id, key);
  return entry === undefined ? { freeAtMs: atMs } : { ack: asReplay(entry) };
}

/**
 * The acknowledgement of a request whose key was committed before. It has no warnings: the ledger keeps the numbers of an
 * acknowledgement and not what its body was like, and the body of a replay is not read.
 */
export function asReplay({ snapshotId, extentCount, rows, sizeBytes }: LedgerEntry): IngestAck {
  return { snapshotId, extentCount, rows, sizeBytes, replayed: true };
}
