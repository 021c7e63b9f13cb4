import { quoteText } from "../../io/duckdb/duckdb.ts";

/** What a `SHOW` lists: databases, or the tables of one; of the query's own unless it says which. */
export type Listing = { of: "databases" } | { of: "tables"; database?: string };

/** The view of the names that a listing has, by its place among those of the query. */
export const listingView = (listing: number): string => `engine_listing_${listing}`;

/** The column that the names are in, as DuckDB calls it. */
const COLUMNS = { databases: "database_name", tables: "name" } as const;

/** The statement that makes the names of a listing visible to its query. */
export function createListing(place: number, listing: Listing, names: readonly string[]): string {
  const column = COLUMNS[listing.of];
  const values = names.map((name) => `(${quoteText(name)})`);
  const rows = values.length === 0 ? "SELECT '' WHERE false" : `VALUES ${values.join(", ")}`;
  return `CREATE TEMP VIEW ${listingView(place)} AS SELECT ${column} FROM (${rows}) AS list(${column}) ORDER BY ${column}`;
}
