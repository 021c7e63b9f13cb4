import { foldName } from "../../core/names.ts";
import { nearest } from "../../core/nearest.ts";

/** The part of DuckDB's error that tells. */
type NamedError = { message: string; subtype?: string; name?: string; candidates?: string[] };

/** A name that DuckDB did not find, in one sentence, with the name that was probably meant. */
export type UnknownName = { message: string; suggestion?: string };

const NAME = `"((?:[^"]|"")*)"`;
const OF_TABLE = new RegExp(`^(?:Values list|Table) ${NAME} does not have a column named ${NAME}`);
const OF_FROM = new RegExp(`^Referenced table ${NAME} not found!(?:\\nCandidate tables: (.*))?`);
const OF_JOIN = new RegExp(`^Column ${NAME} does not exist on (?:left|right) side of join`);
const OF_LIST = new RegExp(`^Column ${NAME} in (EXCLUDE|REPLACE|RENAME) list not found`);
const OF_UNPIVOT = new RegExp(`^Column ${NAME} referenced in UNPIVOT but no matching entry`);
const MISSING_TYPE = /^Type with name/;

/** Undefined when the error is about something else; `columns` are those of the query's tables. */
export function unknownName(error: NamedError, columns: Iterable<string>): UnknownName | undefined {
  const { message, name } = error;
  const known = [...columns, ...(error.candidates ?? [])];
  if (error.subtype === "COLUMN_NOT_FOUND" && name !== undefined) return missing("column", name, "", known);
  const ofTable = OF_TABLE.exec(message);
  if (ofTable !== null) return missing("column", ofTable[2], ` in ${JSON.stringify(ofTable[1])}`, known);
  const ofFrom = OF_FROM.exec(message);
  if (ofFrom !== null) return missing("table", ofFrom[1], " in the FROM clause", quoted(ofFrom[2]));
  const ofJoin = OF_JOIN.exec(message);
  if (ofJoin !== null) return missing("column", ofJoin[1], " on both sides of the join", known);
  const ofList = OF_LIST.exec(message);
  if (ofList !== null) return missing("column", ofList[1], ` for ${ofList[2]}`, known);
  const ofUnpivot = OF_UNPIVOT.exec(message);
  if (ofUnpivot !== null) return missing("column", ofUnpivot[1], " for UNPIVOT", known);
  if (MISSING_TYPE.test(message) && name !== undefined) return missing("type", name, "", error.candidates ?? []);
  return undefined;
}

function missing(thing: string, name = "", where: string, known: readonly string[]): UnknownName {
  // The very name may be a column of another table, or of this one at a later snapshot.
  const others = known.filter((one) => foldName(one) !== foldName(name));
  const suggestion = nearest(name, others);
  const sentence = `there is no ${thing} ${JSON.stringify(name)}${where}`;
  if (suggestion === undefined) return { message: sentence };
  return { message: `${sentence}; did you mean ${JSON.stringify(suggestion)}?`, suggestion };
}

/** The names of `"a", "b"`. */
function quoted(list = ""): string[] {
  return [...list.matchAll(new RegExp(NAME, "g"))].map((found) => found[1] ?? "");
}
