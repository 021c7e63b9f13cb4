import type { Catalog, TableRecord } from "../catalog/catalog.ts";
import { EngineError } from "../core/errors.ts";
import { checkMayUse, type Caller } from "./caller.ts";

/** Throws `forbidden`, `table_not_found`. */
export async function existingTable(
  catalog: Pick<Catalog, "table">,
  caller: Caller,
  database: string,
  name: string,
): Promise<TableRecord> {
  checkMayUse(caller, database);
  const table = await catalog.table(database, name);
  if (table !== undefined) return table;
  throw new EngineError("table_not_found", `table ${JSON.stringify(`${database}.${name}`)} does not exist`);
}
