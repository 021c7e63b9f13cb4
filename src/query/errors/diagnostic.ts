import { EngineError, type ErrorCode } from "../../core/errors.ts";
import type { Diagnostic, Place } from "../contract/check.ts";
import type { QueryLanguage } from "../contract/query.ts";
import { tokenize } from "../parse/tokens.ts";

/** What is wrong with a text; all else is wrong with the request, or the server. */
const OF_THE_TEXT: ReadonlySet<ErrorCode> = new Set([
  "parse_error",
  "invalid_query",
  "invalid_parameter",
  "execution_error",
  "database_not_found",
  "table_not_found",
  "snapshot_expired",
]);

/**
 * The error as a mark in the text: from the place that it names to the end of the word there (of KQL, of what the
 * language service means); the whole text where it names none. Undefined for an error that is not the text's.
 */
export function diagnosticOf(
  error: unknown,
  { text, language }: { text: string; language: QueryLanguage },
  length?: number,
): Diagnostic | undefined {
  if (!(error instanceof EngineError) || !OF_THE_TEXT.has(error.code)) return undefined;
  const { line, column, suggestion, hint } = error.details;
  const offset = line === undefined || typeof column !== "number" ? undefined : offsetOf(text, language, line, column);
  const [start, end] =
    offset === undefined ? wholeOf(text) : [offset, length === undefined ? endOfWord(text, offset) : offset + length];
  return {
    severity: "error",
    code: error.code,
    message: error.message,
    from: placeOf(text, language, start),
    to: placeOf(text, language, Math.min(Math.max(start, end), text.length)),
    ...(suggestion !== undefined && { suggestion }),
    ...(hint !== undefined && { hint }),
  };
}

/** Where a line begins: the language service of KQL counts line feeds alone. */
const LINE_ENDS: Readonly<Record<QueryLanguage, RegExp>> = { sql: /\r\n|\n|\r/g, kql: /\n/g };

function lineStarts(text: string, language: QueryLanguage): number[] {
  return [0, ...Array.from(text.matchAll(LINE_ENDS[language]), (end) => end.index + end[0].length)];
}

function offsetOf(text: string, language: QueryLanguage, line: number, column: number): number {
  const start = lineStarts(text, language)[line - 1] ?? text.length;
  let offset = start;
  for (let i = 1; i < column && offset < text.length; i++) offset += (text.codePointAt(offset) ?? 0) > 0xffff ? 2 : 1;
  return offset;
}

function placeOf(text: string, language: QueryLanguage, offset: number): Place {
  const starts = lineStarts(text, language);
  const line = starts.findLastIndex((start) => start <= offset);
  const column = Array.from(text.slice(starts[line], offset)).length + 1;
  return { line: line + 1, column, offset };
}

function wholeOf(text: string): [start: number, end: number] {
  const start = text.length - text.trimStart().length;
  return [start, Math.max(start, text.trimEnd().length)];
}

/** Only what is near is looked at: a text may have megabytes of tokens. */
const MAX_WORD_CHARS = 1_000;

function endOfWord(text: string, offset: number): number {
  const [first] = tokenize(text.slice(offset, offset + MAX_WORD_CHARS));
  return first === undefined || first.start > 0 ? offset : offset + first.end;
}
