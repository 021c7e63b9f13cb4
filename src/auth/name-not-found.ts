import type { Catalog } from "../catalog/catalog.ts";
import { EngineError, type ErrorDetails } from "../core/errors.ts";
import { nearest } from "../core/nearest.ts";
import { mayUseDatabase, type Caller } from "./caller.ts";

type Place = Pick<ErrorDetails, "refused" | "line" | "column">;

/**
 * What is said of a database that does not exist, and of one that the caller may not use. Suggests a name of those that
 * the caller may use.
 */
export async function databaseNotFound(
  catalog: Pick<Catalog, "databases">,
  { caller, database: name }: { caller: Pick<Caller, "databases">; database: string },
  place: Place = {},
): Promise<EngineError> {
  const names = (await catalog.databases()).map((database) => database.name);
  const seen = names.filter((other) => mayUseDatabase(caller, other));
  return nameNotFound("database", name, nearest(name, seen), place);
}

export function nameNotFound(
  thing: "database" | "table",
  name: string,
  suggestion: string | undefined,
  place: Place,
): EngineError {
  const hint = suggestion === undefined ? "" : `; did you mean ${JSON.stringify(suggestion)}?`;
  return new EngineError(`${thing}_not_found`, `there is no ${thing} ${JSON.stringify(name)}${hint}`, {
    ...place,
    ...(suggestion === undefined ? {} : { suggestion }),
  });
}
