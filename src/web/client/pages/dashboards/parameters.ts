/**
 * What a query's `$name` stands for. Values travel beside the text, in the field `params` of the request, and the server
 * puts them in as literals: nothing that somebody types or an address brings becomes a part of a query.
 */
export type ParameterValue = string | readonly string[];

/** A value, or why there is none: it is still read, or it could not be. */
export type ParameterState = { value: ParameterValue } | { waitsFor: string } | { problem: string };

/** By name in lower case, as the server compares them. */
export type Parameters = ReadonlyMap<string, ParameterState>;

/** What a query runs with, or why it does not yet. */
export type Binding =
  | { kind: "ready"; params: Readonly<Record<string, ParameterValue>> }
  | { kind: "waiting"; for: readonly string[] }
  | { kind: "refused"; problem: string };

/**
 * Only the parameters that a query names are sent: the server refuses others. One that nothing here has is left out, and
 * the server's answer says so.
 */
export function bound({ language, text }: { language: "sql" | "kql"; text: string }, all: Parameters): Binding {
  if (language === "kql") return boundKql(text, all);
  const params: Record<string, ParameterValue> = {};
  const waiting: string[] = [];
  for (const name of parametersIn(text)) {
    const state = all.get(name);
    if (state === undefined) continue;
    if ("problem" in state) return { kind: "refused", problem: state.problem };
    if ("waitsFor" in state) waiting.push(state.waitsFor);
    else params[name] = state.value;
  }
  return waiting.length > 0 ? { kind: "waiting", for: waiting } : { kind: "ready", params };
}

/** The API takes no parameters for KQL, and a value is never written into a text. `$left` and `$right` are KQL's own. */
function boundKql(text: string, all: Parameters): Binding {
  const named = kqlNames(text).find((name) => all.has(name));
  if (named === undefined) return { kind: "ready", params: {} };
  const problem = `A query in KQL takes no parameters, so $${named} has no value here. Write this query in SQL, or give it fixed values with \`let\`.`;
  return { kind: "refused", problem };
}

/** A text in quotes (`@` before it: without escapes), a comment, or a name after `$`. */
const KQL_PARTS = /@"(?:[^"]|"")*"|@'(?:[^']|'')*'|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\/\/[^\n]*|\$([A-Za-z_]\w*)/g;

function kqlNames(text: string): string[] {
  return [...text.matchAll(KQL_PARTS)].flatMap(([, name]) => (name === undefined ? [] : [name.toLowerCase()]));
}

/** Names after `$` in a text in SQL, in lower case; not those in quotes and comments. */
export function parametersIn(text: string): Set<string> {
  const names = new Set<string>();
  let at = 0;
  while (at < text.length) {
    const [part, name] = partAt(text, at);
    if (name !== undefined) names.add(name.toLowerCase());
    at += Math.max(part, 1);
  }
  return names;
}

/** The length of what begins here, and the name of the parameter that it is. */
function partAt(text: string, at: number): [length: number, name?: string] {
  const char = text.charAt(at);
  const two = text.slice(at, at + 2);
  if (two === "--") return [lengthTo(text, at, "\n")];
  if (two === "/*") return [commentLength(text, at)];
  if (/^[eE]'$/.test(two)) return [1 + quotedLength(text, at + 1, "'", true)];
  if (char === "'" || char === '"') return [quotedLength(text, at, char, false)];
  if (char === "$") return dollarAt(text, at);
  return [matchAt(WORD, text, at)?.length ?? 1];
}

const WORD = /[\p{L}\p{N}_][\p{L}\p{N}_$]*/uy;
const NAME = /\$([A-Za-z_]\w*)/y;
const DOLLAR_QUOTE = /\$(?:[\p{L}_][\p{L}\p{N}_]*)?\$/uy;

function dollarAt(text: string, at: number): [length: number, name?: string] {
  const quote = matchAt(DOLLAR_QUOTE, text, at);
  if (quote !== undefined) {
    const end = text.indexOf(quote, at + quote.length);
    return [end === -1 ? text.length - at : end + quote.length - at];
  }
  const name = matchAt(NAME, text, at);
  return name === undefined ? [1] : [name.length, name.slice(1)];
}

function matchAt(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0];
}

function lengthTo(text: string, at: number, end: string): number {
  const found = text.indexOf(end, at);
  return (found === -1 ? text.length : found + end.length) - at;
}

/** A quote twice is one that stays within. */
function quotedLength(text: string, at: number, quote: string, hasEscapes: boolean): number {
  let end = at + 1;
  while (end < text.length) {
    if (hasEscapes && text.charAt(end) === "\\") end += 2;
    else if (text.charAt(end) !== quote) end++;
    else if (text.charAt(end + 1) === quote) end += 2;
    else return end + 1 - at;
  }
  return text.length - at;
}

/** Comments nest, as in PostgreSQL, whose lexer DuckDB has. */
function commentLength(text: string, at: number): number {
  let depth = 0;
  let end = at;
  while (end < text.length) {
    const two = text.slice(end, end + 2);
    if (two === "/*") depth++;
    if (two === "*/") depth--;
    end += two === "/*" || two === "*/" ? 2 : 1;
    if (depth === 0) return end - at;
  }
  return text.length - at;
}

const INTERVAL_UNITS: Readonly<Record<string, string>> = {
  ms: "milliseconds",
  s: "seconds",
  m: "minutes",
  h: "hours",
  d: "days",
  w: "weeks",
};

const INTERVAL = /^([1-9]\d{0,8})(ms|s|m|h|d|w)$/;

/** `5m` as SQL casts it to INTERVAL: `5 minutes`. `auto` follows the range. */
export function intervalText(value: string, rangeMs: number): string {
  const [, count, unit] = INTERVAL.exec(value === "auto" ? autoInterval(rangeMs) : value) ?? [];
  // What an address brings may be anything; as text in its place it is what the server says no to.
  return count === undefined || unit === undefined ? value : `${count} ${INTERVAL_UNITS[unit]}`;
}

const STEPS_S: readonly [seconds: number, text: string][] = [
  [1, "1s"],
  [2, "2s"],
  [5, "5s"],
  [10, "10s"],
  [15, "15s"],
  [30, "30s"],
  [60, "1m"],
  [120, "2m"],
  [300, "5m"],
  [600, "10m"],
  [900, "15m"],
  [1_800, "30m"],
  [3_600, "1h"],
  [7_200, "2h"],
  [10_800, "3h"],
  [21_600, "6h"],
  [43_200, "12h"],
  [86_400, "1d"],
  [604_800, "7d"],
  [2_592_000, "30d"],
];

/** Points that a chart of usual width shows apart. */
const AUTO_POINTS = 150;

/** The shortest usual step by which a range has no more points than a chart shows. */
export function autoInterval(rangeMs: number): string {
  const wanted = rangeMs / 1_000 / AUTO_POINTS;
  return STEPS_S.find(([seconds]) => seconds >= wanted)?.[1] ?? "30d";
}
