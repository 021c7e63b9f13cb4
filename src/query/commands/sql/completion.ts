import { foldName } from "../../../core/names.ts";
import { tokenize } from "../../parse/tokens.ts";
import { visible } from "../../../client/text.ts";
import { COMMANDS } from "./commands.ts";
import type { SchemaTable, SchemaTree } from "./schema-tree.ts";

const KEYWORDS = (
  "ALL AND ANTI AS ASC ASOF AT BETWEEN BY CASE CAST COUNT CROSS DESC DESCRIBE DISTINCT ELSE END EXCEPT EXISTS EXPLAIN " +
  "FALSE FILTER FROM FULL GROUP HAVING ILIKE IN INNER INTERSECT INTERVAL IS JOIN LEFT LIKE LIMIT NATURAL NOT NULL NULLS " +
  "OFFSET ON OR ORDER OUTER OVER PARTITION PIVOT QUALIFY RECURSIVE RIGHT ROWS SAMPLE SELECT SEMI SUMMARIZE THEN TRUE " +
  "UNION UNNEST UNPIVOT USING VALUES WHEN WHERE WINDOW WITH"
).split(" ");

/** Behind these stands a table. */
const BEFORE_TABLES = new Set(["from", "join", "describe", "summarize"]);
const WORD = /(?:"(?:[^"]|"")*"?|[\p{L}\p{N}_$])*$/u;

/**
 * What may stand in the place of the last word of the text, and that word, as `node:readline` asks for it. `before` are
 * the lines of the statement above.
 */
export function complete(
  text: string,
  { before, tree, database }: { before: string; tree: SchemaTree; database: string },
): [string[], string] {
  const tables = tree.find(({ name }) => foldName(name) === foldName(database))?.tables ?? [];
  if (before === "" && text.startsWith("\\")) return completeCommand(text, tables, tree);
  const word = WORD.exec(text)?.[0] ?? "";
  const front = text.slice(0, text.length - word.length);
  const owner = /([\p{L}\p{N}_$]+|"(?:[^"]|"")*")\.$/u.exec(front)?.[1];
  const statement = `${before}\n${text}`;
  if (owner !== undefined) return [matching(word, columnsOf(unquoted(owner), statement, { tables, tree })), word];
  const previous = /([A-Za-z]+)\s+$/.exec(front.length > 0 ? front : `${before} `)?.[1];
  if (previous !== undefined && BEFORE_TABLES.has(previous.toLowerCase())) {
    return [
      matching(
        word,
        tables.map(({ name }) => name),
      ),
      word,
    ];
  }
  const mentioned = mentionedTables(statement, tables);
  // Until a table is named any may be meant; columns of all would be too many to choose from.
  const columns = mentioned.flatMap((table) => table.columns.map(({ name }) => name));
  const keywords = matchingKeywords(word);
  return [[...matching(word, [...columns, ...tables.map(({ name }) => name)]), ...keywords], word];
}

function completeCommand(text: string, tables: readonly SchemaTable[], tree: SchemaTree): [string[], string] {
  const [, command = "", word] = /^(\\\S*)(?:\s+(.*))?$/s.exec(text) ?? [];
  if (word === undefined) {
    return [COMMANDS.map(({ name }) => name).filter((name) => name.startsWith(command)), command];
  }
  const names = command === "\\d" ? tables : command === "\\c" ? tree : [];
  return [
    matching(
      word,
      names.map(({ name }) => name),
    ),
    word,
  ];
}

/** Columns of what is called so in the statement, be it a table, its alias or a database. */
function columnsOf(
  owner: string,
  statement: string,
  { tables, tree }: { tables: readonly SchemaTable[]; tree: SchemaTree },
): string[] {
  const folded = foldName(owner);
  const byName = tables.find(({ name }) => foldName(name) === folded);
  const found = byName ?? aliased(folded, statement, tables);
  if (found !== undefined) return found.columns.map(({ name }) => name);
  return tree.find(({ name }) => foldName(name) === folded)?.tables.map(({ name }) => name) ?? [];
}

/** `FROM requests AS r`, `FROM requests r`. */
function aliased(folded: string, statement: string, tables: readonly SchemaTable[]): SchemaTable | undefined {
  const words = tokenize(statement).map(({ start, end }) => foldName(unquoted(statement.slice(start, end))));
  for (const [i, word] of words.entries()) {
    if (word !== folded || i === 0) continue;
    const owner = words[i - 1] === "as" ? words[i - 2] : words[i - 1];
    const found = tables.find(({ name }) => foldName(name) === owner);
    if (found !== undefined) return found;
  }
  return undefined;
}

function mentionedTables(statement: string, tables: readonly SchemaTable[]): SchemaTable[] {
  const words = new Set(tokenize(statement).map(({ start, end }) => foldName(unquoted(statement.slice(start, end)))));
  return tables.filter(({ name }) => words.has(foldName(name)));
}

/** Names that begin like the word, in quotes where they need them; what a terminal cannot show is left out. */
function matching(word: string, names: readonly string[]): string[] {
  const isQuoted = word.startsWith('"');
  const prefix = foldName(isQuoted ? word.slice(1).replaceAll('""', '"') : word);
  const found = names.filter((name) => foldName(name).startsWith(prefix) && visible(name) === name);
  return [...new Set(found)].map((name) => (isQuoted || !isPlain(name) ? `"${name.replaceAll('"', '""')}"` : name));
}

/** Reserved words need quotes; `at` does not, here. */
function isPlain(name: string): boolean {
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) return false;
  return foldName(name) === "at" || !KEYWORDS.includes(name.toUpperCase());
}

function unquoted(name: string): string {
  return name.startsWith('"') ? name.slice(1, name.endsWith('"') ? -1 : undefined).replaceAll('""', '"') : name;
}

/** In the case of what was typed. */
function matchingKeywords(word: string): string[] {
  if (word === "" || !/^[A-Za-z]+$/.test(word)) return [];
  const found = KEYWORDS.filter((keyword) => keyword.startsWith(word.toUpperCase()));
  return /[a-z]/.test(word) ? found.map((keyword) => keyword.toLowerCase()) : found;
}
