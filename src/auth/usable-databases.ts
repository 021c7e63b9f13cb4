import type { Catalog } from "../catalog/catalog.ts";
import { mayUseDatabase, type Caller } from "./caller.ts";

/** The names of the databases that the caller may use, as the catalog has them. */
export async function usableDatabases(
  catalog: Pick<Catalog, "databases">,
  caller: Pick<Caller, "databases">,
): Promise<string[]> {
  return (await catalog.databases()).map(({ name }) => name).filter((name) => mayUseDatabase(caller, name));
}
