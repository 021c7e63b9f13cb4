import { BLOCK_BYTES, MAX_BLOCKS } from "../format/filter/block-bloom.ts";
import type { ColumnFilter } from "../format/filter/filter.ts";
import { GramFilterBuilder } from "../format/filter/gram-filter.ts";
import { ValueFilterBuilder, valueFilterBytesFor } from "../format/filter/value-filter.ts";
import { looksLikeIds } from "../format/columns/column-filters.ts";
import { quoteIdentifier, type Connection, type DuckDb } from "../io/duckdb/duckdb.ts";
import { readTexts, STRUCT_BYTES } from "../io/duckdb/text-vector.ts";

/**
 * Filters of merged files, kept in the catalog as those of fresh extents are. Parquet has Bloom filters of its own,
 * which DuckDB writes for columns that it encodes with a dictionary; the columns that filters are for, ids, have none,
 * and to ask a filter in a file the file must be opened.
 *
 * Ids get a filter of their values, as when sealing. Text gets one of its grams, which sealing cannot afford. Both take
 * what they read as it streams by, so nothing but the filter is in memory.
 */
export type TextProfile = {
  name: string;
  values: number;
  /** An estimate that may be a fifth off. */
  distinct: number;
  textBytes: number;
  /** Values with a space in them. */
  spaced: number;
  /** The hashes of all values, where they have been kept (`hashRange`). */
  hashes?: readonly Int32Array[] | undefined;
  /** All grams, where they have been gathered. */
  grams?: GramFilterBuilder | undefined;
};

type FilterSource = { duckdb: DuckDb; connection: Connection; from: string; sizeBytes: number };

/** All filters of a file take at most this part of its size; a small file may always have some. */
const SIZE_SHARE = 1 / 24;
const MIN_BUDGET_BYTES = 1024 * 1024;
/** With fewer bits for a value a filter lets more than one in five pass. */
const MIN_BITS_PER_VALUE = 4.8;
/** What the estimate of different values may be short by. */
const MARGIN = 1.2;
export const GRAM_LIMIT = 1 << 20;
const MIN_TEXT_DISTINCT = 64;
const LONG_TEXT_BYTES = 64;

export async function buildFilters(source: FilterSource, profiles: readonly TextProfile[]): Promise<ColumnFilter[]> {
  const filters: ColumnFilter[] = [];
  let leftBytes = Math.max(source.sizeBytes * SIZE_SHARE, MIN_BUDGET_BYTES);
  const add = (filter: ColumnFilter | undefined): void => {
    if (filter === undefined || filter.bytes.length > leftBytes) return;
    leftBytes -= filter.bytes.length;
    filters.push(filter);
  };
  for (const profile of profiles.toSorted((a, b) => b.distinct - a.distinct)) {
    if (isWorthValues(profile, leftBytes)) add(await valueFilter(source, profile));
    if (isText(profile)) add(await gramFilter(source, profile));
  }
  return filters;
}

function isWorthValues(profile: TextProfile, leftBytes: number): boolean {
  const isTold = profile.distinct * MIN_BITS_PER_VALUE <= MAX_BLOCKS * BLOCK_BYTES * 8;
  return isTold && looksLikeIds(profile) && valueFilterBytesFor(profile.distinct * MARGIN) <= leftBytes;
}

/** Words rather than ids, or long: something that is searched in. */
function isText(profile: TextProfile): boolean {
  return profile.distinct >= MIN_TEXT_DISTINCT && looksLikeText(profile);
}

export function looksLikeText({ values, textBytes, spaced }: Omit<TextProfile, "name" | "distinct">): boolean {
  return isLongText(textBytes, values) || spaced * 2 >= values;
}

/** Too long for ids, too. */
export function isLongText(textBytes: number, values: number): boolean {
  return textBytes > values * LONG_TEXT_BYTES;
}

async function valueFilter(source: FilterSource, { name, distinct, hashes }: TextProfile): Promise<ColumnFilter> {
  const builder = new ValueFilterBuilder(Math.ceil(distinct * MARGIN));
  if (hashes !== undefined) {
    for (const some of hashes) for (let i = 0; i < some.length; i++) builder.addHash(some[i] as number);
    return { name, kind: "values", bytes: builder.finish() };
  }
  await eachText(source, name, (view, start, length) => {
    builder.add(view, start, length);
    return true;
  });
  return { name, kind: "values", bytes: builder.finish() };
}

async function gramFilter(source: FilterSource, { name, grams }: TextProfile): Promise<ColumnFilter | undefined> {
  const builder = grams ?? (await gramsOf(source, name));
  const bytes = builder.finish();
  return bytes && { name, kind: "grams", bytes };
}

async function gramsOf(source: FilterSource, name: string): Promise<GramFilterBuilder> {
  const builder = new GramFilterBuilder(GRAM_LIMIT);
  await eachText(source, name, (view, start, length) => {
    builder.add(view, start, start + length);
    return !builder.isFull;
  });
  return builder;
}

type Visit = (view: DataView, start: number, length: number) => boolean;

/** Shows every text of a column until one is refused. */
async function eachText({ duckdb, connection, from }: FilterSource, name: string, visit: Visit): Promise<void> {
  const column = quoteIdentifier(name);
  const sql = `SELECT ${column} FROM ${from} WHERE ${column} IS NOT NULL`;
  const statement = await duckdb.prepare(connection, sql);
  try {
    const result = await duckdb.execute_prepared_streaming(statement);
    for (;;) {
      const chunk = await duckdb.fetch_chunk(result);
      const rows = chunk === null ? 0 : duckdb.data_chunk_get_size(chunk);
      if (chunk === null || rows === 0) return;
      const structs = duckdb.vector_get_data(duckdb.data_chunk_get_vector(chunk, 0), rows * STRUCT_BYTES);
      const { bytes, starts, lengths } = readTexts(duckdb, structs, () => true);
      const view = new DataView(bytes.buffer);
      for (let row = 0; row < rows; row++) {
        if (!visit(view, starts[row] as number, lengths[row] as number)) return;
      }
    }
  } finally {
    duckdb.destroy_prepare_sync(statement);
  }
}
