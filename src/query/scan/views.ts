import type { ColumnSpec } from "../../format/types.ts";
import { quoteIdentifier, quoteText, sqlTypeOf } from "../../io/duckdb/duckdb.ts";
import { TLM_SCAN, type TlmScans } from "../../io/duckdb/tlm-scan.ts";
import type { LocalExtent, ResolvedTable, VisibleRows } from "../contract/tables.ts";
import { EXTENT_COLUMN } from "../parse/row-condition.ts";
import { reachesBeyond } from "../prune/retention.ts";

/**
 * The SELECT that yields a table's rows from exactly the given extents, its columns in order and of their types.
 *
 * Parquet files that have the same of the columns in question are one `read_parquet`, which opens the first of them
 * when it is bound. `union_by_name` would open each, and a query is bound three times: 40 ms for 125 files.
 */
export function tableQuery(table: ResolvedTable, scans: TlmScans): string {
  if (table.namesExtents === true) return extentQueries(table, scans);
  const { columns, extents, bareRows, visible } = table;
  const cut = extents.filter((extent) => reachesBeyond(extent, visible));
  const whole = cut.length === 0 ? extents : extents.filter((extent) => !reachesBeyond(extent, visible));
  const parts = [
    ...(bareRows === 0 ? [] : [`${selectOf(columns, NONE)} FROM range(${bareRows})`]),
    ...partsOf(table, whole, scans),
    ...(visible === undefined
      ? []
      : partsOf(withTime(table, visible), cut, scans).map((part) => cutOff(part, visible))),
  ];
  return parts.length === 0 ? `${selectOf(columns, NONE)} WHERE false` : parts.join(" UNION ALL ");
}

/** The same, with the extent that each row is of. */
function extentQueries({ namesExtents: _names, ...table }: ResolvedTable, scans: TlmScans): string {
  const { extents } = table;
  const parts = extents.map((extent) => withExtent(tableQuery({ ...table, extents: [extent] }, scans), extent.id));
  return parts.length === 0 ? withExtent(tableQuery(table, scans), "") : parts.join(" UNION ALL ");
}

function withExtent(rows: string, id: string): string {
  return `SELECT *, ${quoteText(id)} AS ${quoteIdentifier(EXTENT_COLUMN)} FROM (${rows}) AS extent`;
}

function partsOf(table: ResolvedTable, extents: readonly LocalExtent[], scans: TlmScans): string[] {
  const tlm = extents.filter(({ format }) => format === "tlm");
  const parquet = extents.filter(({ format }) => format === "parquet");
  return [...(tlm.length === 0 ? [] : [tlmPart(table.columns, tlm, scans)]), ...parquetParts(table, parquet)];
}

/** The same table, of which `at` is needed in any case. */
function withTime(table: ResolvedTable, { column }: VisibleRows): ResolvedTable {
  const { needed } = table;
  return needed === undefined || needed.includes(column) ? table : { ...table, needed: [...needed, column] };
}

/** Of a part that yields `at`, the rows that are within the retention. */
export function cutOff(part: string, { fromNs, column }: VisibleRows): string {
  return `SELECT * FROM (${part}) AS kept WHERE ${quoteIdentifier(column)} >= make_timestamp_ns(${fromNs})`;
}

const NONE: ReadonlySet<string> = new Set();

function tlmPart(columns: readonly ColumnSpec[], extents: readonly LocalExtent[], scans: TlmScans): string {
  const rows = extents.reduce((total, extent) => total + extent.rows, 0);
  const scan = scans.add({ columns, sources: extents.map(({ path }) => ({ path })), rows });
  return `SELECT ${columns.map((column) => quoteIdentifier(column.name)).join(", ")} FROM ${TLM_SCAN}(${scan})`;
}

/** More parts than that cost more than opening every file. */
const MAX_PARTS = 32;

type ParquetPart = { present: ReadonlySet<string>; unwidened: ReadonlySet<string>; extents: LocalExtent[] };

function parquetParts({ columns, needed }: ResolvedTable, extents: readonly LocalExtent[]): string[] {
  const asked = needed === undefined ? undefined : new Set(needed);
  const parts = new Map<string, ParquetPart>();
  for (const extent of extents) {
    const { columns: own } = extent;
    const present = new Set(asked === undefined ? own : own.filter((name) => asked.has(name)));
    const unwidened = new Set(extent.unwidened?.filter((name) => present.has(name)));
    const key = JSON.stringify(columns.map(({ name }) => (unwidened.has(name) ? 2 : Number(present.has(name)))));
    const part = parts.get(key);
    if (part === undefined) parts.set(key, { present, unwidened, extents: [extent] });
    else part.extents.push(extent);
  }
  if (parts.size > MAX_PARTS) {
    const present = new Set(extents.flatMap((extent) => extent.columns));
    const unwidened = new Set(extents.flatMap((extent) => extent.unwidened ?? []));
    return [`${selectOf(columns, present, unwidened)} FROM read_parquet(${filesOf(extents)}, union_by_name = true)`];
  }
  return [...parts.values()].map(
    ({ present, unwidened, extents: own }) =>
      `${selectOf(columns, present, unwidened)} FROM read_parquet(${filesOf(own)})`,
  );
}

function filesOf(extents: readonly LocalExtent[]): string {
  return `[${extents.map(({ path }) => quoteText(path)).join(", ")}]`;
}

/** All columns, NULL for those that are not there, and the `unwidened` ones of the type that they have now. */
export function selectOf(
  columns: readonly ColumnSpec[],
  present: ReadonlySet<string>,
  unwidened: ReadonlySet<string> = NONE,
): string {
  const items = columns.map(({ name, type }) => {
    const column = quoteIdentifier(name);
    if (!present.has(name)) return `CAST(NULL AS ${sqlTypeOf(type)}) AS ${column}`;
    // Parquet has no fixed-size list, so a vector comes back as a list of unknown length.
    const isCast = type.kind === "vector" || unwidened.has(name);
    return isCast ? `CAST(${column} AS ${sqlTypeOf(type)}) AS ${column}` : column;
  });
  return `SELECT ${items.join(", ")}`;
}
