import { mayUseDatabase } from "../../auth/caller.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import { EngineError, type ErrorDetails } from "../../core/errors.ts";
import { isName } from "../../core/names.ts";
import { nearest } from "../../core/nearest.ts";
import type { QueryRequest } from "../contract/query.ts";
import type { NeededTable } from "./needs.ts";

/** Suggests a name of those that the caller may see. */
export async function databaseNotFound(
  catalog: Pick<Catalog, "databases">,
  { caller, database: name }: Pick<QueryRequest, "caller" | "database">,
  details: Pick<ErrorDetails, "refused" | "line" | "column"> = {},
): Promise<EngineError> {
  const names = (await catalog.databases()).map((database) => database.name);
  const seen = names.filter((other) => mayUseDatabase(caller, other));
  const suggestion = nearest(name, seen);
  return notFound("database_not_found", "database", name, suggestion, details);
}

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
  return notFound("table_not_found", "table", need.name, suggestion, details);
}

function notFound(
  code: "database_not_found" | "table_not_found",
  thing: string,
  name: string,
  suggestion: string | undefined,
  place: Pick<ErrorDetails, "line" | "column" | "refused">,
): EngineError {
  const hint = suggestion === undefined ? "" : `; did you mean ${JSON.stringify(suggestion)}?`;
  return new EngineError(code, `there is no ${thing} ${JSON.stringify(name)}${hint}`, {
    ...place,
    ...(suggestion === undefined ? {} : { suggestion }),
  });
}

export function placeOf(need: NeededTable): { line?: number; column?: number } {
  const { line, column } = need;
  return line === undefined || column === undefined ? {} : { line, column };
}
