import { LIMITS } from "../../core/limits.ts";
import {
  kindAt,
  hasLoneSurrogate,
  nestingOf,
  skipSpace,
  stringEnd,
  stringValue,
  valueEnd,
  type ValueKind,
} from "./json-text.ts";
import { RowRefused } from "./row-refused.ts";

/**
 * One line of NDJSON, read the plain way: JSON.parse decides what is JSON, and a walk over the text that it accepted
 * finds the fields, so that numbers keep their digits and keys their order. This is the reference that a faster reader
 * has to agree with, on every input.
 *
 * Beyond what JSON.parse refuses, refused are: a value that is not an object, a surrogate escape without its other
 * half (it has no UTF-8), and nesting deeper than `LIMITS.jsonNesting` (the row itself is level 1).
 */
export type Row = {
  text: string;
  /** Fields in the order of the source, one per key: of duplicates the last, at the place of the first. */
  count: number;
  keys: string[];
  kinds: ValueKind[];
  /** Where the field's value stands in `text`. */
  starts: number[];
  ends: number[];
};

/** An empty row to be filled again and again. */
export function newRow(): Row {
  return { text: "", count: 0, keys: [], kinds: [], starts: [], ends: [] };
}

/** Reads one line, without its line feed, into `row`. Throws `RowRefused`. */
export function readRow(text: string, row: Row): void {
  // A shorter line cannot close that many levels, so JSON.parse refuses it anyway. Asked first, because JSON.parse
  // would build what it is asked to parse.
  if (text.length > 2 * LIMITS.jsonNesting && nestingOf(text) > LIMITS.jsonNesting) {
    throw new RowRefused(`arrays and objects are nested deeper than ${LIMITS.jsonNesting} levels`);
  }
  const value = parse(text);
  if (text.includes("\\u") && hasLoneSurrogate(text)) {
    throw new RowRefused("a \\u escape is half of a surrogate pair and stands alone");
  }
  const start = skipSpace(text, 0);
  if (kindAt(text, start) !== "object") throw new RowRefused(`the line is ${described(value)}, not an object`);
  walk(text, start, row);
  if (Object.keys(value as object).length !== row.count) dropDuplicates(row);
}

/** The text of field `index` when it is a string. */
export function textOf(row: Row, index: number): string {
  return stringValue(row.text, row.starts[index] ?? 0, row.ends[index] ?? 0);
}

/** The characters of field `index` as they stand in the source. */
export function tokenOf(row: Row, index: number): string {
  return row.text.slice(row.starts[index], row.ends[index]);
}

function walk(text: string, start: number, row: Row): void {
  row.text = text;
  row.count = 0;
  let at = skipSpace(text, start + 1);
  while (text[at] === '"') {
    const keyEnd = stringEnd(text, at);
    const valueStart = skipSpace(text, skipSpace(text, keyEnd) + 1);
    const kind = kindAt(text, valueStart);
    const end = valueEnd(text, valueStart, kind);
    const index = row.count++;
    row.keys[index] = stringValue(text, at, keyEnd);
    row.kinds[index] = kind;
    row.starts[index] = valueStart;
    row.ends[index] = end;
    at = skipSpace(text, end);
    if (text[at] === ",") at = skipSpace(text, at + 1);
  }
}

function dropDuplicates(row: Row): void {
  const places = new Map<string, number>();
  for (let index = 0; index < row.count; index++) {
    const key = row.keys[index] ?? "";
    const place = places.get(key) ?? places.size;
    places.set(key, place);
    row.keys[place] = key;
    row.kinds[place] = row.kinds[index] ?? "null";
    row.starts[place] = row.starts[index] ?? 0;
    row.ends[place] = row.ends[index] ?? 0;
  }
  row.count = places.size;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new RowRefused(reasonOf(text, error));
  }
}

// oxlint-disable-next-line no-control-regex -- control characters are what it is about
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f]/;

/** Why JSON.parse refused the text, for the person who sent it. */
function reasonOf(text: string, error: unknown): string {
  if (text.startsWith("\uFEFF")) return "the line begins with a byte order mark (U+FEFF); send UTF-8 without one";
  const control = CONTROL.exec(text);
  if (control !== null) {
    const code = control[0].charCodeAt(0).toString(16).toUpperCase().padStart(4, "0");
    return `raw control character U+${code} at character ${control.index + 1}; JSON has it only as an escape in a string`;
  }
  // V8's own words, less its "(line 1 column 9)": the line it counts is not the body's.
  const said = (error instanceof Error ? error.message : String(error)).replace(/ \(line \d+ column \d+\)$/, "");
  const position = / at position (\d+)$/.exec(said);
  if (
    said.startsWith("Unexpected end") ||
    said.startsWith("Unterminated string") ||
    position?.[1] === `${text.length}`
  ) {
    return "the line ends before its JSON does; is it cut off?";
  }
  if (position === null) return said;
  return `${said.slice(0, position.index)} at character ${Number(position[1]) + 1}`;
}

function described(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "an array" : `a ${typeof value}`;
}
