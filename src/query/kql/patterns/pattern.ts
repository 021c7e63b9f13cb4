import { readClass } from "./class.ts";
import { readEscape } from "./escape.ts";
import { Reader } from "./reader.ts";

/** A regular expression of the language in RE2's dialect, which is DuckDB's. */
export type Pattern = {
  re2: string;
  /** The names of its groups in order; undefined where one has none. */
  groups: readonly (string | undefined)[];
  /** It has a Unicode word boundary, and RE2's are those of ASCII: only texts of ASCII words match alike. */
  hasWordBoundary: boolean;
};

const MOST_GROUPS = 16;
const MOST_REPETITIONS = 1000;

/**
 * The pattern in RE2's dialect. The language has that of Rust's `regex`: its classes are Unicode's, it has other escapes,
 * names of groups and flags. Throws {@link PatternError} where a pattern is wrong, or cannot be said in RE2.
 */
export function patternOf(text: string): Pattern {
  const reader = new Reader(text);
  while (!reader.isAtEnd) step(reader);
  if (reader.depth > 0) throw reader.error("a group is not closed");
  if (reader.groups.length > MOST_GROUPS) throw reader.error(`more than ${MOST_GROUPS} groups`);
  return { re2: reader.out.join(""), groups: reader.groups, hasWordBoundary: reader.hasWordBoundary };
}

function step(reader: Reader): void {
  if (reader.flags.x && skipped(reader)) return;
  const char = reader.next();
  switch (char) {
    case "\\":
      reader.emit(readEscape(reader));
      break;
    case "[":
      reader.emit(readClass(reader));
      break;
    case "(":
      open(reader);
      break;
    case ")":
      close(reader);
      break;
    case "|":
      reader.emit("|", false);
      break;
    case "*":
    case "+":
    case "?":
      repeat(reader, char);
      break;
    case "{":
      braces(reader);
      break;
    case "^":
      reader.emit(char, true);
      break;
    default:
      reader.emit(char === "}" || char === "]" ? `\\${char}` : char);
  }
}

/** Verbose patterns: whitespace and comments say nothing. */
function skipped(reader: Reader): boolean {
  if (/\s/u.test(reader.peek())) {
    reader.next();
    return true;
  }
  if (reader.peek() !== "#") return false;
  while (!reader.isAtEnd && reader.next() !== "\n");
  return true;
}

function open(reader: Reader): void {
  if (reader.peek() !== "?") {
    reader.push("(", undefined);
    return;
  }
  const named = reader.take(/^\?P?<(?<name>[A-Za-z_][\w.[\]]*)>/u);
  if (named !== undefined) {
    reader.push("(", named.groups?.["name"]);
    return;
  }
  const flagged = reader.take(/^\?(?<on>[a-zA-Z]*)(?:-(?<off>[a-zA-Z]+))?(?<end>[:)])/u);
  if (flagged === undefined) throw reader.error("look-around is not supported");
  const { on = "", off = "", end = "" } = flagged.groups ?? {};
  if (end === ":") reader.push("", undefined, false);
  const own = flags(reader, on, off);
  if (end === ":") reader.emit(`(?${own}:`, false);
  else if (own !== "") reader.emit(`(?${own})`, false);
}

/** Those that RE2 shall know; the others are for the reader. */
function flags(reader: Reader, on: string, off: string): string {
  const unknown = /[^imsUux]/u.exec(on + off)?.[0];
  if (unknown !== undefined) throw reader.error(`flag ${unknown} is not supported`);
  const next = { ...reader.flags };
  for (const flag of ["u", "x"] as const) {
    if (on.includes(flag)) next[flag] = true;
    if (off.includes(flag)) next[flag] = false;
  }
  reader.flags = next;
  const [set, unset] = [on, off].map((all) => all.replaceAll(/[ux]/gu, ""));
  return unset === "" ? `${set}` : `${set}-${unset}`;
}

function close(reader: Reader): void {
  if (reader.depth === 0) throw reader.error("a group is closed and not opened");
  reader.pop();
}

function repeat(reader: Reader, operator: string): void {
  if (!reader.canRepeat) throw reader.error(`${operator} has nothing to repeat`);
  const lazy = reader.take(/^\?/u) === undefined ? "" : "?";
  reader.emit(operator + lazy, false);
}

function braces(reader: Reader): void {
  const counts = reader.take(/^(?<from>\d+)(?:,(?<to>\d*))?\}/u);
  if (counts === undefined) throw reader.error("{ is neither a repetition nor escaped");
  const { from = "", to } = counts.groups ?? {};
  if (Math.max(Number(from), Number(to ?? 0)) > MOST_REPETITIONS) {
    throw reader.error(`more than ${MOST_REPETITIONS} repetitions`);
  }
  if (to !== undefined && to !== "" && Number(to) < Number(from))
    throw reader.error("a repetition ends before it begins");
  repeat(reader, `{${counts[0]}`);
}
