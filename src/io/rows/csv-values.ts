import { foldName } from "../../core/names.ts";
import { TIME_COLUMN, TIME_STAND_INS, type ColumnSpec, type ColumnType } from "../../format/types.ts";

/** How a field of a CSV file is written as JSON; null: it has no value. */
export type FieldWriter = (text: string) => string;

/** A number as JSON has it, so that its digits arrive as they stand in the file. */
const NUMBER = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/;

const asString: FieldWriter = (text) => JSON.stringify(text);
const asNumber: FieldWriter = (text) => (NUMBER.test(text) ? text : JSON.stringify(text));
const asBool: FieldWriter = (text) => (/^(?:true|false)$/i.test(text) ? text.toLowerCase() : JSON.stringify(text));
const asJson: FieldWriter = (text) => (isJson(text) ? text : JSON.stringify(text));

/**
 * CSV has no types: what a field is, its column in the table says. A number is sent as a number only to a column of
 * numbers or of times, and only if it is one as JSON writes it (`007`, `+1`, `1,000` are texts); `true` and `false`, in
 * any case, are bools for a `bool` column; columns of `dynamic` and `vector` take JSON. All else is text, to columns that
 * are not there yet too: those become `string`. What does not fit its column the engine keeps in `props`.
 */
export function fieldWriter(name: string, columns: readonly ColumnSpec[]): FieldWriter {
  const folded = foldName(name);
  const type = columns.find((column) => foldName(column.name) === folded)?.type;
  if (type !== undefined) return WRITERS[type.kind];
  const isTime = folded === TIME_COLUMN || TIME_STAND_INS.some((standIn) => folded === standIn);
  return isTime ? asNumber : asString;
}

const WRITERS: Readonly<Record<ColumnType["kind"], FieldWriter>> = {
  bool: asBool,
  int: asNumber,
  long: asNumber,
  real: asNumber,
  timestamp: asNumber,
  string: asString,
  dynamic: asJson,
  vector: asJson,
};

/** One value on one line: a line break within it would end the row that it is sent in. */
function isJson(text: string): boolean {
  if (!/^[[{"\-0-9tf]/.test(text) || /[\r\n]/.test(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
