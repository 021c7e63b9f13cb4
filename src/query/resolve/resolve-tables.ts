import { databaseNotFound } from "../../auth/name-not-found.ts";
import { mayUseDatabase } from "../../auth/caller.ts";
import { usableDatabases } from "../../auth/usable-databases.ts";
import type { Catalog, Resolution, TableRecord } from "../../catalog/catalog.ts";
import { foldName } from "../../core/names.ts";
import type { QueryRequest } from "../contract/query.ts";
import { isSystemSchema, tablesOfSchema } from "../system-tables/system-tables.ts";
import type { Listing } from "./listings.ts";
import type { NeededTable, Needs } from "./needs.ts";
import { placeOf } from "./not-found.ts";

/** Who asks, and of which database. */
type Asker = Pick<QueryRequest, "caller" | "database">;

type Resolved = Pick<Resolution, "head" | "tables">;

/**
 * The tables of a query, by their place among its needs, and the snapshot that all are read at. Those of the query's own
 * database are asked for at once: each question is a way to the catalog.
 */
export async function resolveTables(catalog: Catalog, request: Asker, needs: Needs): Promise<Resolved> {
  const own = needs.tables.filter(({ database }) => database === undefined);
  const names = own.map(({ name }) => name);
  const resolution = await catalog.resolve(request.database, names);
  // A query without own tables asks for nothing that only a database has.
  if (resolution === undefined && (own.length > 0 || !isImpliedDatabase(request.database))) {
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

/** Whether it is the database that is meant where none is named: before its first row nobody made it. */
export function isImpliedDatabase(name: string): boolean {
  return foldName(name) === "default";
}

/** The names that a listing has for the caller. */
export async function namesOf(catalog: Catalog, { caller, database }: Asker, listing: Listing): Promise<string[]> {
  if (listing.of === "databases") return await usableDatabases(catalog, caller);
  const { database: of = database } = listing;
  if (isSystemSchema(of) && listing.database !== undefined) return tablesOfSchema(of);
  if (!mayUseDatabase(caller, of)) throw await databaseNotFound(catalog, { caller, database: of }, { refused: true });
  const isKnown = listing.database === undefined || (await catalog.database(of)) !== undefined;
  if (!isKnown) throw await databaseNotFound(catalog, { caller, database: of });
  return (await catalog.tables(of)).map(({ name }) => name);
}
