import { tokenize, type Token } from "./tokens.ts";
import { QueryRefused } from "./tree.ts";

/**
 * What DuckDB's serialiser does not take, peeled off before it: `EXPLAIN`, a trailing semicolon, and the PIVOT
 * statement whose values are not listed.
 */
export type Statement = {
  /** The statement with what was peeled off blanked out, so that positions stay. */
  text: string;
  /** `EXPLAIN`, `EXPLAIN ANALYZE`, `EXPLAIN (FORMAT JSON)`, …, in our words; undefined for a plain statement. */
  explain?: string;
};

/** Byte offsets come out of DuckDB; these are UTF-16 offsets, so they are turned into bytes. */
function byteOffset(text: string, offset: number): number {
  return Buffer.byteLength(text.slice(0, offset));
}

/** Takes the text apart; throws `QueryRefused` when there is more than one statement in it. */
export function peel(text: string): Statement {
  const tokens = tokenize(text);
  const words = (i: number): string => wordOf(text, tokens[i]);
  const end = tokens.findIndex((token) => text.slice(token.start, token.end) === ";");
  const rest = end === -1 ? undefined : tokens.slice(end).find((token) => text.slice(token.start, token.end) !== ";");
  if (rest !== undefined) {
    throw new QueryRefused("a query is one statement, and a second one starts here", byteOffset(text, rest.start));
  }
  let bare = text;
  for (const token of end === -1 ? [] : tokens.slice(end)) bare = blank(bare, token.start, token.end);
  if (words(0) !== "explain") return { text: bare };
  const body = explainEnd(text, tokens);
  const from = tokens[0]?.start ?? 0;
  const to = tokens[body]?.start ?? text.length;
  return { text: blank(bare, from, to), explain: explainOf(tokens.slice(1, body).map((token) => textOf(text, token))) };
}

/** The token that begins the statement that is explained. */
function explainEnd(text: string, tokens: readonly Token[]): number {
  let i = wordOf(text, tokens[1]) === "analyze" ? 2 : 1;
  const isOptions = symbolOf(text, tokens[i]) === "(" && ["format", "analyze"].includes(wordOf(text, tokens[i + 1]));
  if (!isOptions) return i;
  while (i < tokens.length && symbolOf(text, tokens[i]) !== ")") i++;
  return i + 1;
}

const FORMATS = new Set(["text", "json", "html", "graphviz", "yaml", "mermaid"]);

/** Says again what the words before the statement ask for. */
function explainOf(words: readonly string[]): string {
  const options = words.filter((word) => !["(", ")", ","].includes(word)).map((word) => word.toLowerCase());
  const isAnalyzed = options.includes("analyze");
  const format = options[options.indexOf("format") + 1] ?? "";
  const others = options.filter((word) => word !== "analyze" && word !== "format" && word !== format);
  if (others.length > 0 || (options.includes("format") && !FORMATS.has(format))) {
    throw new QueryRefused("EXPLAIN takes ANALYZE and a FORMAT: text, json, html, graphviz, yaml or mermaid");
  }
  if (!options.includes("format")) return isAnalyzed ? "EXPLAIN ANALYZE" : "EXPLAIN";
  return `EXPLAIN (${isAnalyzed ? "ANALYZE, " : ""}FORMAT ${format.toUpperCase()})`;
}

/** A PIVOT statement whose values must first be looked up. */
export type OpenPivot = {
  /** The text with the given values (as text) put in for each expression. */
  withValues(values: readonly (readonly string[])[]): string;
  /** One query per expression without a list: its distinct values as text, in order, at most `limit`. */
  valueQueries(limit: number): string[];
};

/** Recognises `[WITH …] PIVOT source ON expressions [USING …] [GROUP BY …]` with an expression without `IN (…)`. */
export function openPivot(text: string): OpenPivot | undefined {
  const tokens = tokenize(text);
  const top = topLevel(text, tokens);
  const pivot = top.findIndex((token) => ["pivot", "pivot_wider"].includes(wordOf(text, token)));
  const on = top.findIndex((token, i) => i > pivot && wordOf(text, token) === "on");
  if (pivot === -1 || on === -1) return undefined;
  const stops = new Set(["using", "group", "order", "limit"]);
  const stop = top.findIndex((token, i) => i > on && stops.has(wordOf(text, token)));
  const items = splitItems(text, top.slice(on + 1, stop === -1 ? undefined : stop));
  const open = items.filter((item) => !item.listed);
  if (open.length === 0) return undefined;
  // Parts of the text are parsed by themselves, where these would be counted anew.
  const unnumbered = tokens.find((token) => symbolOf(text, token) === "?");
  if (unnumbered !== undefined) {
    const position = byteOffset(text, unnumbered.start);
    throw new QueryRefused("PIVOT without listed values takes parameters by name or number, $name or $1", position);
  }
  const before = text.slice(0, top[pivot]?.start ?? 0);
  const source = text.slice(top[pivot]?.end ?? 0, top[on]?.start ?? 0);
  const from = "FROM".padEnd((top[pivot]?.end ?? 0) - (top[pivot]?.start ?? 0));
  return {
    withValues(values) {
      let filled = "";
      let copied = 0;
      for (const [i, item] of open.entries()) {
        const list = (values[i] ?? []).map((value) => `'${value.replaceAll("'", "''")}'`).join(", ");
        filled += `${text.slice(copied, item.end)} IN (${list})`;
        copied = item.end;
      }
      return filled + text.slice(copied);
    },
    valueQueries: (limit) =>
      open.map((item) => {
        const expression = text.slice(item.start, item.end);
        // The source stays where it is: tables read at an older snapshot are known by their positions.
        return `${before}${from}${source} SELECT DISTINCT CAST((${expression}) AS VARCHAR) AS value
          WHERE (${expression}) IS NOT NULL ORDER BY 1 LIMIT ${limit}`;
      }),
  };
}

type Item = { start: number; end: number; listed: boolean };

function splitItems(text: string, tokens: readonly Token[]): Item[] {
  const items: Item[] = [];
  let current: Item | undefined;
  for (const token of tokens) {
    if (symbolOf(text, token) === ",") {
      current = undefined;
      continue;
    }
    if (current === undefined) {
      current = { start: token.start, end: token.end, listed: false };
      items.push(current);
    }
    current.end = token.end;
    if (wordOf(text, token) === "in") current.listed = true;
  }
  return items;
}

/** Tokens outside of brackets, with the brackets that enclose the others. */
function topLevel(text: string, tokens: readonly Token[]): Token[] {
  let depth = 0;
  return tokens.filter((token) => {
    const symbol = symbolOf(text, token);
    if (symbol === ")" || symbol === "]" || symbol === "}") depth--;
    const outside = depth === 0;
    if (symbol === "(" || symbol === "[" || symbol === "{") depth++;
    return outside;
  });
}

function textOf(text: string, token: Token): string {
  return text.slice(token.start, token.end);
}

function wordOf(text: string, token: Token | undefined): string {
  return token?.kind === "word" ? text.slice(token.start, token.end).toLowerCase() : "";
}

function symbolOf(text: string, token: Token | undefined): string {
  return token?.kind === "symbol" ? text.slice(token.start, token.end) : "";
}

function blank(text: string, start: number, end: number): string {
  // Byte for byte, so that positions after it stay where they are.
  const spaces = text.slice(start, end).replace(/[^\n\r]/g, (char) => " ".repeat(Buffer.byteLength(char)));
  return text.slice(0, start) + spaces + text.slice(end);
}
