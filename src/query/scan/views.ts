import { nanosecondName } from "../../format/parquet-times.ts";
import { PARQUET_WITHOUT_IDS, type ColumnSpec } from "../../format/types.ts";
import { quoteIdentifier, quoteText, sqlTypeOf } from "../../io/duckdb/duckdb.ts";
import { microsecondsOf, nanosecondsOf } from "../../io/duckdb/parquet.ts";
import { TLM_SCAN, type TlmScans } from "../../io/duckdb/tlm-scan.ts";
import type { LocalExtent, ResolvedTable, VisibleRows } from "../contract/tables.ts";
import { EXTENT_COLUMN } from "../parse/row-condition.ts";
import { reachesBeyond } from "../prune/retention.ts";
import { asStored, type StoredTime, type TimeValues } from "./stored-times.ts";

/**
 * The SELECT that yields a table's rows from exactly the given extents, its columns in order and of their types.
 *
 * Parquet files that have the same of the columns in question are one `read_parquet`, which opens the first of them
 * when it is bound. `union_by_name` would open each, and a query is bound three times: 40 ms for 125 files.
 */
export function tableQuery(table: ViewedTable, scans: TlmScans): string {
  if (table.namesExtents === true) return extentQueries(table, scans);
  const { extents, bareRows, visible } = table;
  const cut = extents.filter((extent) => reachesBeyond(extent, visible));
  const whole = cut.length === 0 ? extents : extents.filter((extent) => !reachesBeyond(extent, visible));
  const none = itemsOf(table, NONE);
  const parts = [
    ...(bareRows === 0 ? [] : [`${none} FROM range(${bareRows})`]),
    ...partsOf(table, whole, scans),
    ...(visible === undefined
      ? []
      : partsOf(withTime(table, visible), cut, scans).map((part) => cutOff(part, visible))),
  ];
  return parts.length === 0 ? `${none} WHERE false` : parts.join(" UNION ALL ");
}

/** A table, and the `timestamp` columns that its rows are to have as they are stored, too. */
export type ViewedTable = ResolvedTable & { stored?: readonly StoredTime[] };

/** The same, with the extent that each row is of. */
function extentQueries({ namesExtents: _names, ...table }: ViewedTable, scans: TlmScans): string {
  const { extents } = table;
  const parts = extents.map((extent) => withExtent(tableQuery({ ...table, extents: [extent] }, scans), extent.id));
  return parts.length === 0 ? withExtent(tableQuery(table, scans), "") : parts.join(" UNION ALL ");
}

function withExtent(rows: string, id: string): string {
  return `SELECT *, ${quoteText(id)} AS ${quoteIdentifier(EXTENT_COLUMN)} FROM (${rows}) AS extent`;
}

function partsOf(table: ViewedTable, extents: readonly LocalExtent[], scans: TlmScans): string[] {
  const tlm = extents.filter(({ format }) => format === "tlm");
  const parquet = extents.filter(({ format }) => format === "parquet");
  return [...(tlm.length === 0 ? [] : [tlmPart(table, tlm, scans)]), ...parquetParts(table, parquet)];
}

/** The same table, of which `at` is needed in any case. */
function withTime(table: ViewedTable, { column }: VisibleRows): ViewedTable {
  const { needed } = table;
  return needed === undefined || needed.includes(column) ? table : { ...table, needed: [...needed, column] };
}

/** Of a part that yields `at`, the rows that are within the retention. */
export function cutOff(part: string, { fromNs, column }: VisibleRows): string {
  return `SELECT * FROM (${part}) AS kept WHERE ${quoteIdentifier(column)} >= make_timestamp_ns(${fromNs})`;
}

const NONE: StoredColumns = new Map();

function tlmPart(table: ViewedTable, extents: readonly LocalExtent[], scans: TlmScans): string {
  const { columns } = table;
  const rows = extents.reduce((total, extent) => total + extent.rows, 0);
  const scan = scans.add({ columns, sources: extents.map(({ path }) => ({ path })), rows });
  const times = storedItems(table, () => "same");
  const names = columns.map((column) => quoteIdentifier(column.name));
  return `SELECT ${[...names, ...times].join(", ")} FROM ${TLM_SCAN}(${scan})`;
}

/** More parts than that cost more than opening every file. */
const MAX_PARTS = 32;

type ParquetPart = { stored: StoredColumns; extents: LocalExtent[] };

/** How files have columns, by name; those that they do not have are left out. */
export type StoredColumns = ReadonlyMap<string, StoredAs>;
/** See `LocalExtent`; `apart in some` where files are read together some of which have nanoseconds. */
type StoredAs = "same" | "unwidened" | "microseconds" | "nanoseconds apart" | "apart in some";

function parquetParts(table: ViewedTable, extents: readonly LocalExtent[]): string[] {
  const { columns, needed } = table;
  const asked = needed === undefined ? undefined : new Set(needed);
  const parts = new Map<string, ParquetPart>();
  for (const extent of extents) {
    const stored = storedIn(extent, columns, asked);
    const key = JSON.stringify(columns.map(({ name }) => stored.get(name) ?? ""));
    const part = parts.get(key);
    if (part === undefined) parts.set(key, { stored, extents: [extent] });
    else part.extents.push(extent);
  }
  if (parts.size <= MAX_PARTS) return [...parts.values()].map((part) => parquetPart(table, part, ""));
  // Of one version, for microseconds and nanoseconds have no type in common that keeps both.
  return [...Map.groupBy(extents, inMicroseconds).values()].map((own) => {
    const stored = own.map((extent) => storedIn(extent, columns, undefined)).reduce(together);
    return parquetPart(table, { stored, extents: own }, ", union_by_name = true");
  });
}

function parquetPart(table: ViewedTable, { stored, extents }: ParquetPart, options: string): string {
  const files = `read_parquet(${filesOf(extents)}${options})`;
  return `${itemsOf(table, stored)} FROM ${files}${whereOf(table.bounds, stored)}`;
}

function filesOf(extents: readonly LocalExtent[]): string {
  return `[${extents.map(({ path }) => quoteText(path)).join(", ")}]`;
}

function inMicroseconds({ formatVersion }: LocalExtent): boolean {
  return formatVersion > PARQUET_WITHOUT_IDS;
}

/** How the extent's file has those of its columns that are asked for; all when undefined. */
export function storedIn(
  extent: LocalExtent,
  columns: readonly ColumnSpec[],
  asked: ReadonlySet<string> | undefined,
): StoredColumns {
  const own = new Set(extent.columns);
  const stored = new Map<string, StoredAs>();
  for (const { name, type } of columns) {
    if (!own.has(name) || asked?.has(name) === false) continue;
    if (type.kind === "timestamp" && inMicroseconds(extent)) {
      stored.set(name, extent.inNanoseconds?.includes(name) === true ? "nanoseconds apart" : "microseconds");
    } else {
      stored.set(name, extent.unwidened?.includes(name) === true ? "unwidened" : "same");
    }
  }
  return stored;
}

/** How files have columns that are read by name, of which some lack some. */
function together(a: StoredColumns, b: StoredColumns): StoredColumns {
  const stored = new Map(a);
  for (const [name, as] of b) {
    const known = stored.get(name) ?? as;
    if (known === as) stored.set(name, as);
    else stored.set(name, known === "same" || known === "unwidened" ? "unwidened" : "apart in some");
  }
  return stored;
}

function itemsOf(table: ViewedTable, stored: StoredColumns): string {
  const times = storedItems(table, (name) => stored.get(name));
  return [selectOf(table.columns, stored), ...times].join(", ");
}

function storedItems({ stored = [] }: ViewedTable, storedAs: (name: string) => StoredAs | undefined): string[] {
  return stored.flatMap((time) => asStored(time, valuesAsStored(time.name, storedAs(time.name))));
}

/** See `StoredTime`. */
function valuesAsStored(name: string, stored: StoredAs | undefined): TimeValues {
  const column = quoteIdentifier(name);
  const none = { exact: "CAST(NULL AS TIMESTAMPTZ)", others: "CAST(NULL AS TIMESTAMP_NS)" };
  switch (stored) {
    case undefined:
      return { floor: none.exact, ...none };
    case "microseconds":
      return { ...none, floor: column, exact: column };
    case "nanoseconds apart":
    case "apart in some":
      return { ...none, floor: column, others: valueOf({ name, type: { kind: "timestamp" } }, stored) };
    case "same":
    case "unwidened":
      return { ...none, floor: microsecondsOf(name), others: column };
  }
}

/** All columns, of the types that the table has now; NULL for those that are not there. */
export function selectOf(columns: readonly ColumnSpec[], stored: StoredColumns): string {
  const items = columns.map(({ name, type }) => {
    const column = quoteIdentifier(name);
    const value = valueOf({ name, type }, stored.get(name));
    return value === column ? column : `${value} AS ${column}`;
  });
  return `SELECT ${items.join(", ")}`;
}

function valueOf({ name, type }: ColumnSpec, stored: StoredAs | undefined): string {
  const column = quoteIdentifier(name);
  const apart = quoteIdentifier(nanosecondName(name));
  switch (stored) {
    case undefined:
      return `CAST(NULL AS ${sqlTypeOf(type)})`;
    case "unwidened":
      return `CAST(${column} AS ${sqlTypeOf(type)})`;
    case "microseconds":
      return nanosecondsOf(name);
    case "nanoseconds apart":
      return apart;
    case "apart in some":
      return `coalesce(${apart}, ${nanosecondsOf(name)})`;
    case "same":
      // Parquet has no fixed-size list, so a vector comes back as a list of unknown length.
      return type.kind === "vector" ? `CAST(${column} AS ${sqlTypeOf(type)})` : column;
  }
}

/** The ends of what nanoseconds can tell; infinity lies beyond. */
const FARTHEST_NS = 2n ** 63n - 1n;

/**
 * The bounds on columns that are in microseconds, as comparisons in their type: DuckDB prunes row groups by those alone.
 * Of other columns it has the query's own.
 */
function whereOf(bounds: ResolvedTable["bounds"], stored: StoredColumns): string {
  const comparisons = (bounds ?? []).flatMap(({ column, minNs, maxNs }) => {
    if (stored.get(column) !== "microseconds") return [];
    const lower = minNs === undefined || minNs <= -FARTHEST_NS ? [] : [`>= ${instant(-floorUs(-minNs))}`];
    const upper = maxNs === undefined || maxNs >= FARTHEST_NS ? [] : [`<= ${instant(floorUs(maxNs))}`];
    return [...lower, ...upper].map((comparison) => `${quoteIdentifier(column)} ${comparison}`);
  });
  return comparisons.length === 0 ? "" : ` WHERE ${comparisons.join(" AND ")}`;
}

function floorUs(ns: bigint): bigint {
  const us = ns / 1_000n;
  return ns % 1_000n < 0n ? us - 1n : us;
}

function instant(us: bigint): string {
  return `make_timestamptz(${us})`;
}
