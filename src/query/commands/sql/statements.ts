import { tokenize } from "../../parse/tokens.ts";

/** A statement, without the `;` behind it. */
export type Statement = {
  text: string;
  /** Where it begins in the whole text, in characters. */
  start: number;
};

/**
 * Cuts a text at its `;`, but not at those within quotes and comments. `rest` is what follows the last one: undefined
 * where that has nothing to run, though perhaps a comment.
 */
export function splitStatements(text: string): { statements: Statement[]; rest: Statement | undefined } {
  const statements: Statement[] = [];
  let first: number | undefined;
  for (const { kind, start, end } of tokenize(text)) {
    const isEnd = kind === "symbol" && text.slice(start, end) === ";";
    if (!isEnd) first ??= start;
    else if (first !== undefined) {
      statements.push({ text: text.slice(first, start).trimEnd(), start: first });
      first = undefined;
    }
  }
  if (first === undefined) return { statements, rest: undefined };
  return { statements, rest: { text: text.slice(first).trimEnd(), start: first } };
}

/** The statement as it is sent: so far down and to the right that places in errors are those of the whole text. */
export function inPlace(text: string, { text: statement, start }: Statement): string {
  const before = text.slice(0, start).replace(/\r\n?/g, "\n");
  const lines = before.split("\n");
  return "\n".repeat(lines.length - 1) + " ".repeat(lines.at(-1)?.length ?? 0) + statement;
}
