import { foldName } from "../../core/names.ts";
import { quoteIdentifier, quoteText } from "../../io/duckdb/duckdb.ts";
import { TLM_SCAN, type TlmScans } from "../../io/duckdb/tlm-scan.ts";
import type { LocalExtent, ResolvedTable } from "../contract/tables.ts";
import { PLACE_COLUMN } from "../parse/row-condition.ts";
import { reachesBeyond } from "../prune/retention.ts";
import { cutOff, selectOf, storedIn, tableQuery } from "./views.ts";

/**
 * Extents with the place of each row, for live tails: row r (from 0) of the table's i-th extent has the place
 * `placeOf(i, r)`. The rows of an extent have the order of its file, which never changes; so a row has the same place
 * wherever and whenever the same extents are read.
 */
const PLACES_PER_EXTENT = 2 ** 32;

export function placeOf(extent: number, row: number): number {
  return extent * PLACES_PER_EXTENT + row;
}

/** The extent and the row in it. */
export function atPlace(place: number): { extent: number; row: number } {
  return { extent: Math.floor(place / PLACES_PER_EXTENT), row: place % PLACES_PER_EXTENT };
}

/** The SELECT that yields a table's rows, numbered where that is asked for. */
export function viewQuery(table: ResolvedTable, scans: TlmScans): string {
  const { numberedFrom, extents } = table;
  if (numberedFrom === undefined) return tableQuery(table, scans);
  if (extents.length === 0) return `SELECT *, CAST(0 AS BIGINT) AS ${PLACE} FROM (${tableQuery(table, scans)}) AS none`;
  return extents.map((extent, i) => numberedRows(table, { extent, i, from: numberedFrom }, scans)).join(" UNION ALL ");
}

const PLACE = quoteIdentifier(PLACE_COLUMN);

function numberedRows(
  { columns, visible }: ResolvedTable,
  { extent, i, from }: { extent: LocalExtent; i: number; from: number },
  scans: TlmScans,
): string {
  const first = placeOf(i, 0);
  const all = extent.format === "tlm" ? ofTlm(columns, { extent, first }, scans) : ofParquet(columns, extent, first);
  const wanted = first >= from ? all : `SELECT * FROM (${all}) AS numbered WHERE ${PLACE} >= ${from}`;
  return reachesBeyond(extent, visible) ? cutOff(wanted, visible) : wanted;
}

type Columns = ResolvedTable["columns"];

function ofTlm(columns: Columns, { extent, first }: { extent: LocalExtent; first: number }, scans: TlmScans): string {
  const { path, rows } = extent;
  const scan = scans.add({ columns, sources: [{ path }], rows, numbered: { name: PLACE_COLUMN, first } });
  const names = [...columns.map(({ name }) => quoteIdentifier(name)), PLACE];
  return `SELECT ${names.join(", ")} FROM ${TLM_SCAN}(${scan})`;
}

/** DuckDB's own name for the number of a row in its file. */
const ROW_NUMBER = "file_row_number";

function ofParquet(columns: Columns, extent: LocalExtent, first: number): string {
  const { path, columns: present } = extent;
  const file = quoteText(path);
  const items = selectOf(columns, storedIn(extent, columns, undefined));
  // Where a column has that name the rows are counted as they come, which keeps the order of one file.
  if (present.some((name) => foldName(name) === ROW_NUMBER)) {
    return `${items}, row_number() OVER () - 1 + ${first} AS ${PLACE} FROM read_parquet(${file})`;
  }
  return `${items}, ${ROW_NUMBER} + ${first} AS ${PLACE} FROM read_parquet(${file}, ${ROW_NUMBER} = true)`;
}
