import { endsOfQueries } from "../../editor/kql/kql-parts.ts";

/**
 * The statements of a text, cut at semicolons that are in no quotes and no comment. KQL has none of these rules: there a blank
 * line ends a query, as in its own editors.
 */
export type Statement = { from: number; to: number; text: string };

export function statementsOf(text: string, language: "sql" | "kql"): Statement[] {
  const ends = language === "sql" ? sqlEnds(text) : endsOfQueries(text);
  const statements: Statement[] = [];
  let from = 0;
  for (const to of [...ends, text.length]) {
    if (text.slice(from, to).trim() !== "") statements.push({ from, to, text: text.slice(from, to).trim() });
    from = to + (language === "sql" ? 1 : 0);
  }
  return statements;
}

/** The statement that the cursor is in or behind; the last one where it is behind all. */
export function statementAt(text: string, cursor: number, language: "sql" | "kql"): Statement | undefined {
  const all = statementsOf(text, language);
  return all.find(({ to }) => cursor <= to) ?? all.at(-1);
}

/** `head` is where the cursor is. */
export type TextSelection = { from: number; to: number; head: number };

/**
 * What Run runs: what is selected as it is, else the statement of the cursor, without the space around it. Undefined where
 * there is nothing.
 */
export function textToRun(
  text: string,
  { from, to, head }: TextSelection,
  language: "sql" | "kql",
): Statement | undefined {
  const selected = text.slice(from, to);
  if (from !== to) return selected.trim() === "" ? undefined : { from, to, text: selected };
  const statement = statementAt(text, head, language);
  if (statement === undefined) return undefined;
  const start = text.indexOf(statement.text, statement.from);
  return { from: start, to: start + statement.text.length, text: statement.text };
}

const PARTS = /'(?:[^']|'')*'?|"(?:[^"]|"")*"?|--[^\n]*|\/\*(?:[^*]|\*(?!\/))*(?:\*\/)?|\$(\w*)\$[\s\S]*?\$\1\$|;/g;

function sqlEnds(text: string): number[] {
  return [...text.matchAll(PARTS)].filter(([part]) => part === ";").map(({ index }) => index);
}
