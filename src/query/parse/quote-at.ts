import { tokenize, type Token } from "./tokens.ts";

/**
 * Two reserved words of DuckDB's that mean something else here are quoted before DuckDB parses the text: `at`, and
 * `default`, the database that is meant where none is named, in `default.logs` and `SHOW TABLES FROM default`.
 *
 * `at` is the time column of every table, and a reserved word in DuckDB (`SELECT at FROM logs` is a syntax error
 * there). A bare `at`, in any letter case, is quoted; it stays a keyword before
 * `TIME ZONE` and before `(VERSION =>` and `(TIMESTAMP =>`.
 *
 * White space beyond ASCII becomes plain spaces on the way, as DuckDB does it too, but character for character, so
 * that positions can be mapped back.
 */
export type QuotedText = {
  text: string;
  /** The 1-based line and column (in characters) of the original text for a byte offset in `text`. */
  place(byteOffset: number): { line: number; column: number };
};

export function quoteAt(original: string): QuotedText {
  const tokens = tokenize(original);
  const inserted: number[] = [];
  let text = "";
  let copied = 0;
  for (const [i, token] of tokens.entries()) {
    text += plainSpaces(original.slice(copied, token.start));
    const source = original.slice(token.start, token.end);
    copied = token.end;
    if (!isBareAt(original, tokens, i) && !isDefaultDatabase(original, tokens, i)) {
      text += source;
      continue;
    }
    inserted.push(text.length, text.length + source.length + 1);
    text += `"${source}"`;
  }
  text += plainSpaces(original.slice(copied));
  return { text, place: (byteOffset) => placeOf(original, text, inserted, byteOffset) };
}

function isBareAt(text: string, tokens: readonly Token[], index: number): boolean {
  const word = (offset: number): string => {
    const token = tokens[index + offset];
    return token === undefined ? "" : text.slice(token.start, token.end).toLowerCase();
  };
  if (tokens[index]?.kind !== "word" || word(0) !== "at") return false;
  if (word(1) === "time" && word(2) === "zone") return false;
  const isTravel = word(1) === "(" && (word(2) === "version" || word(2) === "timestamp");
  return !(isTravel && word(3) === "=" && word(4) === ">");
}

function isDefaultDatabase(text: string, tokens: readonly Token[], index: number): boolean {
  const word = (offset: number): string => {
    const token = tokens[index + offset];
    return token === undefined ? "" : text.slice(token.start, token.end).toLowerCase();
  };
  if (tokens[index]?.kind !== "word" || word(0) !== "default") return false;
  return word(1) === "." || (word(-1) === "from" && word(-2) === "tables" && word(-3) === "show");
}

/** Blanks between tokens, comments included: Unicode spaces outside of comments matter, inside they do no harm. */
function plainSpaces(blank: string): string {
  return blank.replace(/[^\S\n\r\t ]/g, " ");
}

function placeOf(
  original: string,
  text: string,
  inserted: readonly number[],
  byteOffset: number,
): { line: number; column: number } {
  const offset = Buffer.from(text, "utf8").subarray(0, Math.max(0, byteOffset)).toString("utf8").length;
  const added = inserted.filter((position) => position < offset).length;
  const before = original.slice(0, offset - added);
  const lines = before.split(/\r\n|\n|\r/);
  return { line: lines.length, column: Array.from(lines.at(-1) ?? "").length + 1 };
}
