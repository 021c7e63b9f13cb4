import { EngineError } from "./errors.ts";
import { LIMITS } from "./limits.ts";

/**
 * Names of databases, tables and columns.
 *
 * Databases and tables: an ASCII letter, then letters, digits, `_` or `-`; at most 128 characters. A leading `_` and
 * the name `system` are reserved for the engine. The alphabet is the intersection of what an object-store key
 * segment, a URL path segment, an HTTP header and a quoted SQL identifier carry unchanged.
 *
 * Columns: any text of 1 to 255 bytes of UTF-8 without control characters. A field with any other name is not
 * promoted to a column and goes to `props`.
 *
 * All three are unique without regard to (ASCII) case, as in DuckDB, and keep the spelling they were created with.
 */

const NAME = /^[A-Za-z][A-Za-z0-9_-]*$/;
// oxlint-disable-next-line no-control-regex -- control characters are what it is about
const CONTROL = /[\u0000-\u001f\u007f]/;
const RESERVED = new Set(["system"]);

export type NamedThing = "database" | "table";

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
