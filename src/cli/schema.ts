import { isColumnName, foldName } from "../core/names.ts";
import { LIMITS } from "../core/limits.ts";
import { nearest } from "../core/nearest.ts";
import {
  CATCH_ALL_COLUMN,
  TIME_COLUMN,
  parseColumnType,
  type ColumnSpec,
  type ScalarTypeName,
} from "../format/types.ts";
import { CliError, EXIT } from "../client/failure.ts";

const TYPES = ["bool", "int", "long", "real", "string", "timestamp", "dynamic", "vector(N)"];

/** Columns with a meaning of their own, and the type that goes with it. */
const SPECIAL: ReadonlyMap<string, { kind: ScalarTypeName; holds: string }> = new Map([
  [TIME_COLUMN, { kind: "timestamp", holds: "the time of a row" }],
  [CATCH_ALL_COLUMN, { kind: "dynamic", holds: "what fits no other column" }],
]);

/**
 * Reads `col:type, "other col":vector(3)`: columns separated by commas, each a name and a type. A name in double
 * quotes may hold anything a column name may (`""` is a quote); a bare one ends at its colon.
 * @throws CliError (exit code 2) that names the column.
 */
export function parseColumns(flag: string, text: string): ColumnSpec[] {
  const columns = splitColumns(flag, text).map(({ name, type }) => column(flag, name, type));
  const seen = new Map<string, string>();
  for (const { name } of columns) {
    const earlier = seen.get(foldName(name));
    if (earlier !== undefined)
      throw refused(flag, `column ${show(name)} is there twice (names differ by more than case)`);
    seen.set(foldName(name), name);
  }
  if (columns.length > LIMITS.columnsPerTable) {
    throw refused(flag, `a table has at most ${LIMITS.columnsPerTable} columns, here are ${columns.length}`);
  }
  return columns;
}

/** The columns of a new table: every table has its time column, first unless the schema puts it elsewhere. */
export function withTimeColumn(columns: readonly ColumnSpec[]): ColumnSpec[] {
  const hasTime = columns.some(({ name }) => foldName(name) === TIME_COLUMN);
  return hasTime ? [...columns] : [{ name: TIME_COLUMN, type: { kind: "timestamp" } }, ...columns];
}

function column(flag: string, name: string, typeText: string): ColumnSpec {
  if (!isColumnName(name)) {
    const rule = `1 to ${LIMITS.columnNameBytes} bytes without control characters`;
    throw refused(flag, `${show(name)} is no column name; expected ${rule}`);
  }
  const type = parseColumnType(typeText);
  if (type === undefined) {
    const meant = nearest(typeText.trim(), TYPES);
    const hint = meant === undefined ? `expected one of ${TYPES.join(", ")}` : `did you mean ${meant}?`;
    throw refused(flag, `column ${show(name)} has type ${show(typeText.trim())}; ${hint}`);
  }
  const special = SPECIAL.get(foldName(name));
  if (special !== undefined && type.kind !== special.kind) {
    throw refused(flag, `column ${show(name)} holds ${special.holds} and must be of type ${special.kind}`);
  }
  return { name, type };
}

const QUOTED = /^\s*"((?:[^"]|"")*)"\s*:/;
const BARE = /^\s*([^",:][^,:]*?)\s*:/;
/** A type ends at a comma that is not within its parentheses. */
const TYPE = /^\s*([^,()]*(?:\([^()]*\))?[^,()]*?)\s*(,|$)/;

function splitColumns(flag: string, text: string): { name: string; type: string }[] {
  const found: { name: string; type: string }[] = [];
  let rest = text;
  for (;;) {
    const quoted = QUOTED.exec(rest);
    const name = quoted ?? BARE.exec(rest);
    if (name === null) throw refused(flag, `expected name:type at ${show(rest.trim())}`);
    const type = TYPE.exec(rest.slice(name[0].length));
    if (type === null) throw refused(flag, `expected name:type at ${show(rest.trim())}`);
    const spelled = name[1] ?? "";
    found.push({ name: quoted === null ? spelled : spelled.replaceAll('""', '"'), type: type[1] ?? "" });
    rest = rest.slice(name[0].length + type[0].length);
    if (type[2] !== ",") return found;
  }
}

function show(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}

function refused(flag: string, reason: string): CliError {
  return new CliError(`${flag}: ${reason}`, EXIT.usage);
}
