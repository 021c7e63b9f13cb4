import { nameNotFound } from "../../auth/name-not-found.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import type { EngineError } from "../../core/errors.ts";
import { isName } from "../../core/names.ts";
import { nearest } from "../../core/nearest.ts";
import type { NeededTable } from "./needs.ts";

/** Suggests a name of those that the caller may see. */
export async function tableNotFound(
  catalog: Pick<Catalog, "tables">,
  database: string,
  need: NeededTable,
): Promise<EngineError> {
  const tables = await catalog.tables(database);
  const suggestion = nearest(need.name, [
    ...tables.map((table) => table.name),
    ...(need.cte === undefined ? [] : [need.cte]),
  ]);
  const place = placeOf(need);
  // No table can have such a name: somebody tries what else it may lead to.
  const details = isName(need.name) ? place : { ...place, refused: true as const };
  return nameNotFound("table", need.name, suggestion, details);
}

export function placeOf(need: NeededTable): { line?: number; column?: number } {
  const { line, column } = need;
  return line === undefined || column === undefined ? {} : { line, column };
}
