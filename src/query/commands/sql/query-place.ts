import { displayWidth, visible } from "../../../client/text.ts";

const MARGIN = "  ";
/** Characters of a long line that are shown on each side of the place. */
const AROUND_CHARS = 60;

/**
 * The line of a query with a caret below the column, for an error. `line` and `column` are 1-based; undefined when the
 * text has no such line.
 */
export function showPlace(text: string, line: number, column: number): string | undefined {
  const shown = text.split(/\r\n|\n|\r/)[line - 1];
  if (shown === undefined || column < 1 || column > shown.length + 1) return undefined;
  const start = Math.max(0, column - 1 - AROUND_CHARS);
  const end = Math.min(shown.length, column - 1 + AROUND_CHARS);
  const before = (start > 0 ? "…" : "") + printable(shown.slice(start, column - 1));
  const after = printable(shown.slice(column - 1, end)) + (end < shown.length ? "…" : "");
  return `${MARGIN}${before}${after}\n${MARGIN}${" ".repeat(displayWidth(before))}^`;
}

/** A tab takes one column here, so that the caret stays in place. */
function printable(text: string): string {
  return visible(text.replaceAll("\t", " "));
}
