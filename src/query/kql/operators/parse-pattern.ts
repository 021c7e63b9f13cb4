import type { KqlType } from "../contract.ts";
import type { Pattern } from "../patterns/pattern.ts";

/** A part of the pattern of `parse`: a `*`, a text, in kind `regex` a regular expression instead, or a column. */
export type PatternPart = { skip: true } | { text: string } | { regex: Pattern } | { name: string; type: KqlType };

export type PatternKind = "simple" | "relaxed" | "regex";

/** The groups of a pattern in order; those of the user's own expressions are of no column. */
export type PatternGroup = { group: string; column?: string };

/**
 * The regular expression (RE2) of a pattern. It must match the whole text, but for what a `*` at its end leaves. In kind
 * `regex` a string takes as much as it can, unless the flags say `U`, which turns that round.
 */
export function patternOf(
  parts: readonly PatternPart[],
  kind: PatternKind,
  flags: string,
): { pattern: string; groups: PatternGroup[] } {
  const isRegex = kind === "regex";
  const groups: PatternGroup[] = [];
  let pattern = "";
  for (const [i, part] of parts.entries()) {
    const next = parts[i + 1];
    if ("skip" in part) pattern += next === undefined ? "" : few(".*", flags);
    else if ("text" in part) pattern += escaped(part.text);
    else if ("regex" in part) {
      pattern += `(?:${part.regex.re2})`;
      for (const _ of part.regex.groups) groups.push({ group: `g${groups.length}` });
    } else {
      pattern += `(${isRegex ? regexCapture(part.type, flags) : capture(part.type, next, kind)})`;
      groups.push({ group: `g${groups.length}`, column: part.name });
    }
  }
  const last = parts.at(-1);
  const end = last !== undefined && "skip" in last ? "" : "\\z";
  return { pattern: `${flagsText(isRegex ? flags : "s")}\\A${pattern}${end}`, groups };
}

function flagsText(flags: string): string {
  return flags === "" ? "" : `(?${flags})`;
}

/** As little as possible. */
function few(pattern: string, flags: string): string {
  return flags.includes("U") ? pattern : `${pattern}?`;
}

/** What a number looks like, in kind `regex`; anything else is cast afterwards. */
function regexCapture(type: KqlType, flags: string): string {
  if (type === "string") return ".*";
  return NUMBERS[type] ?? few(".*", flags);
}

const NUMBERS: Partial<Record<KqlType, string>> = {
  int: "[-+]?\\d+",
  long: "[-+]?\\d+",
  real: "[-+]?\\d+(?:\\.\\d+)?(?:[eE][-+]?\\d+)?",
  decimal: "[-+]?\\d+(?:\\.\\d+)?",
};

/** What values look like where a `*` follows: nothing else would say where they end. */
const SHAPES: Partial<Record<KqlType, string>> = {
  ...NUMBERS,
  bool: "(?i:true|false)|[01]",
  guid: "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
  timespan: "[-+]?(?:\\d+\\.)?\\d{1,2}:\\d{2}(?::\\d{2}(?:\\.\\d+)?)?",
  datetime: "\\d{1,4}[-/]\\d{1,2}[-/]\\d{1,4}(?:[T ]\\d{1,2}:\\d{2}(?::\\d{2}(?:\\.\\d+)?)?)?(?:Z|[-+]\\d{2}:?\\d{2})?",
};

/** A value reaches to the next text, or to the end. */
function capture(type: KqlType, next: PatternPart | undefined, kind: PatternKind): string {
  if (next === undefined) return ".*";
  if ("text" in next) return ".*?";
  const shape = SHAPES[type] ?? ".*?";
  return kind === "relaxed" ? `(?:${shape})?` : shape;
}

function escaped(text: string): string {
  return text.replace(/[\\^$.|?+*()[\]{}]/g, "\\$&");
}
