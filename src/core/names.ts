import { EngineError } from "./errors.ts";
import { LIMITS } from "./limits.ts";

/**
 * Names of databases, tables, columns and graphs.
 *
 * Databases, tables and graphs: an ASCII letter, then letters, digits, `_` or `-`; at most 128 characters. A leading `_` and
 * the name `system` are reserved for the engine. The alphabet is the intersection of what an object-store key
 * segment, a URL path segment, an HTTP header and a quoted SQL identifier carry unchanged.
 *
 * Columns: any text of 1 to 255 bytes of UTF-8 without control characters. A field with any other name is not
 * promoted to a column and goes to `props`.
 *
 * A new database has no name of DuckDB's own catalogs and schemas either, see `checkNewDatabase`.
 *
 * All three are unique without regard to (ASCII) case, as in DuckDB, and keep the spelling they were created with.
 */

const NAME = /^[A-Za-z][A-Za-z0-9_-]*$/;
// oxlint-disable-next-line no-control-regex -- control characters are what it is about
const CONTROL = /[\u0000-\u001f\u007f]/;
const RESERVED = new Set(["system"]);

export type NamedThing = "database" | "table" | "graph";

/** Returns `name` when it is acceptable; throws `invalid_name` naming the rule it breaks. */
export function checkName(thing: NamedThing, name: string): string {
  const problem = problemOf(name);
  if (problem === undefined) return name;
  const shown = name.length > 40 ? `${name.slice(0, 40)}…` : name;
  throw new EngineError("invalid_name", `${thing} name ${JSON.stringify(shown)} ${problem}`);
}

/** Whether a database or a table may have the name. */
export function isName(name: string): boolean {
  return problemOf(name) === undefined;
}

/** What DuckDB calls catalogs and schemas of its own, in folded form. */
const DUCKDB_NAMES = new Set(["main", "memory", "temp", "information_schema"]);
/** What DuckDB, its extensions and this program begin names of their own with. */
const DUCKDB_PREFIX = /^(?:duckdb|engine|pg|sqlite)_/;

/** Whether a name already means something in a query. */
export function isDuckDbName(name: string): boolean {
  const folded = foldName(name);
  return DUCKDB_NAMES.has(folded) || DUCKDB_PREFIX.test(folded);
}

/**
 * Throws `invalid_name` for a database that is to be made and whose name already means something in a query. Databases
 * that have such a name from before stay as they are.
 */
export function checkNewDatabase(name: string): void {
  if (!isDuckDbName(checkName("database", name))) return;
  throw new EngineError(
    "invalid_name",
    `database name ${JSON.stringify(name)} is reserved: no new database is called main, memory, temp or ` +
      "information_schema, and none begins with duckdb_, engine_, pg_ or sqlite_",
  );
}

function problemOf(name: string): string | undefined {
  if (name === "") return "is empty";
  if (name.length > LIMITS.nameChars) return `has ${name.length} characters; at most ${LIMITS.nameChars} are accepted`;
  if (name.startsWith("_")) return "starts with '_', which is reserved";
  if (!NAME.test(name)) return "must start with an ASCII letter and hold only letters, digits, '_' and '-'";
  if (RESERVED.has(foldName(name))) return "is reserved";
  return undefined;
}

/** Whether a field of that name may become a column. */
export function isColumnName(name: string): boolean {
  if (name.length === 0 || name.length > LIMITS.columnNameBytes) return false;
  return Buffer.byteLength(name) <= LIMITS.columnNameBytes && !CONTROL.test(name);
}

/** The form under which names are compared: ASCII letters lower-cased, everything else as it is (DuckDB's rule). */
export function foldName(name: string): string {
  return name.replace(/[A-Z]+/g, (run) => run.toLowerCase());
}
