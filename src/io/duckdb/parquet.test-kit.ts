import { isNanosecondName, nanosecondName } from "../../format/parquet-times.ts";
import { quoteIdentifier } from "./duckdb.ts";
import { nanosecondsOf, parquetFrom } from "./parquet.ts";

/** A `tlm` extent as a Parquet file of version 1. */
export async function tlmToParquet(tlm: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
  const { bytes } = await parquetFrom(tlm, {});
  return bytes;
}

/**
 * What is to be selected of a Parquet extent of either version, so that its columns are those of its table, and times
 * are `TIMESTAMP_NS`. `described` is what DuckDB's DESCRIBE says of the file: names and types.
 */
export function itemsToRead(described: readonly (readonly [name: string, type: string])[]): string {
  const names = new Set(described.map(([name]) => name));
  const items = described.flatMap(([name, type]) => {
    if (isNanosecondName(name)) return [];
    const column = quoteIdentifier(name);
    if (names.has(nanosecondName(name))) return `${quoteIdentifier(nanosecondName(name))} AS ${column}`;
    return type === "TIMESTAMP WITH TIME ZONE" ? `${nanosecondsOf(name)} AS ${column}` : column;
  });
  return items.join(", ");
}
