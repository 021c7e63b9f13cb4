import type { Random } from "../../../src/core/random.ts";
import { arrayOf, library } from "../../../src/query/kql/bind/library.ts";

const TOKEN =
  /\/\/[^\n]*|\s+|```[\s\S]*?```|@?[hH]?"(?:[^"\\\n]|\\.)*"|@?[hH]?'(?:[^'\\\n]|\\.)*'|[\p{L}_$][\p{L}\p{N}_]*|\d[\w.]*|[!=<>]=|[=!]~|\.\.|./gsu;

/** Values of each type, as texts. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  bool: ["true", "false", "bool(null)", "b", "n > 5", "label == 'a'", "isnull(n)"],
  int: ["int(1)", "int(-5)", "int(null)", "int(2147483647)", "i", "i % 3"],
  long: [
    "0",
    "1",
    "-1",
    "5",
    "9223372036854775807",
    "-9223372036854775808",
    "0x7f",
    "long(null)",
    "n",
    "n + 1",
    "strlen(label)",
  ],
  real: ["1.5", "-0.0", "1e308", "1e-320", "real(nan)", "real(+inf)", "real(null)", "r", "r / 0"],
  decimal: ["decimal(1.5)", "decimal(null)", "todecimal(n)"],
  string: [
    "''",
    "'a'",
    '"it\'s"',
    "'a\"b'",
    "@'\\d+(a|b)'",
    "'[a-'",
    "'%_\\\\'",
    "'ünï \u{1f600}'",
    "'\\u0000x'",
    "'a\\nb'",
    "label",
    "tostring(n)",
    "strcat(label, 'x')",
  ],
  datetime: [
    "datetime(2024-05-01)",
    "datetime(1969-12-31T23:59:59.9999999Z)",
    "datetime(null)",
    "datetime(2262-04-11)",
    "datetime(0001-01-01)",
    "at",
    "now()",
    "ago(1h)",
    "at - 1d",
    "bin(at, 1h)",
  ],
  timespan: ["1d", "2h", "1.5s", "1tick", "-3d", "time(null)", "time(1.02:03:04.5)", "at - now()", "100000000d"],
  guid: ["guid(74be27de-1e4e-49d9-b579-fe0b331d3642)", "guid(null)"],
  dynamic: [
    "dynamic(null)",
    "dynamic([1, 'a', [true], {\"k\": null}])",
    'dynamic({"a": {"b": 1}, "c d": "x"})',
    "props",
    "props.a",
    "props['x y']",
    "props[0]",
    "props[-1].b",
    "vec",
  ],
};

const TYPES: readonly string[] = Object.keys(VALUES);
const LITERALS: readonly string[] = Object.values(VALUES).flat();

const NAMES: readonly string[] = [
  ..."at label n i r b props vec k T U x y * $left $right now() count() rand()".split(" "),
  "['a\"b']",
  "['it\\'s']",
  "['a~1']",
  '["let~1"]',
  "['größe \u{1f600}']",
];

const HOSTILE: readonly string[] = [
  ..."' \" ` ~ $ ; | ( ) [ ] { } -- /* */ // \\ \\' '' \"\" ``` @' h' \u0000 \ufeff \ud800 \u2028 \r \n \t , . .. = == ! % #".split(
    " ",
  ),
  "\u{1f600}",
  "e\u0301",
  "'; DROP TABLE T; --",
  "99999999999999999999999999999999999999999",
  "1e999999",
  "\u202e",
];

const OPERATORS =
  "+ - * / % == != < > <= >= =~ !~ has !has contains !contains_cs startswith endswith_cs hasprefix_cs and or in !in in~ has_any has_all between".split(
    " ",
  );

/** A function or aggregate of the language: how many arguments, and which types each may have. */
export type Callable = { name: string; least: number; most: number; types: readonly (readonly string[])[] };

/** What mutations draw from. */
export type Material = { texts: readonly string[]; functions: readonly Callable[] };

/** The functions and aggregates of the language, one for each signature. */
export function callables(): Callable[] {
  const { Functions, Aggregates } = library();
  type Symbol = Kusto.Language.Symbols.FunctionSymbol;
  return [...arrayOf<Symbol>(Functions.All), ...arrayOf<Symbol>(Aggregates.All)].flatMap(({ Name, Signatures }) =>
    arrayOf<Kusto.Language.Symbols.Signature>(Signatures).map((signature) => ({
      name: Name ?? "",
      least: signature.MinArgumentCount,
      most: Math.min(signature.MaxArgumentCount, 5),
      types: arrayOf<Kusto.Language.Symbols.Parameter>(signature.Parameters).map(({ DeclaredTypes }) =>
        arrayOf<Kusto.Language.Symbols.TypeSymbol>(DeclaredTypes).map((type) => type.Name ?? ""),
      ),
    })),
  );
}

/**
 * A text that was mutated some times. The same random source gives the same text. Half of them only in ways that often
 * leave a text that binds.
 */
export function mutated(material: Material, random: Random): string {
  const isGentle = random.next() < 0.5;
  let text = isGentle && random.next() < 0.4 ? "T" : pick(material.texts, random);
  for (let left = 1 + below(3, random); left > 0; left--) {
    text = pick(isGentle ? GENTLE : ROUGH, random)(text, material, random);
  }
  return text.length > 9_000 ? text.slice(0, 9_000) : text;
}

type Mutation = (text: string, material: Material, random: Random) => string;

const GENTLE: readonly Mutation[] = [
  appendStages,
  replaceToken(isLiteral, LITERALS),
  callSomething,
  callSomething,
  callSomething,
  compareSomething,
];

const ROUGH: readonly Mutation[] = [
  replaceToken(isLiteral, LITERALS),
  replaceToken(isName, NAMES),
  replaceToken(isOperator, OPERATORS),
  swapFunction,
  deleteTokens,
  duplicateToken,
  swapTokens,
  spliceTokens,
  insertToken,
  deleteBytes,
  flipByte,
  insertHostile,
  nest,
  longLiteral,
];

export function below(bound: number, random: Random): number {
  return Math.floor(random.next() * bound);
}

export function pick<T>(list: readonly T[], random: Random): T {
  const one = list[below(list.length, random)];
  if (one === undefined) throw new Error("there is nothing to pick from");
  return one;
}

export function tokensOf(text: string): string[] {
  return text.match(TOKEN) ?? [];
}

function isLiteral(token: string): boolean {
  return /^(?:\d|@?[hH]?["'])/.test(token);
}

function isName(token: string): boolean {
  return /^[\p{L}_$]/u.test(token) && token.length > 0;
}

function isOperator(token: string): boolean {
  return OPERATORS.includes(token);
}

/** Puts something else of its kind in the place of one token. */
function replaceToken(isOne: (token: string) => boolean, by: readonly string[]): Mutation {
  return (text, _, random) => {
    const tokens = tokensOf(text);
    const places = tokens.flatMap((token, i) => (isOne(token) ? [i] : []));
    if (places.length === 0) return text;
    tokens[pick(places, random)] = pick(by, random);
    return tokens.join("");
  };
}

/** Puts operators of one text behind another. */
function appendStages(text: string, { texts }: Material, random: Random): string {
  const [, ...stages] = pick(texts, random).split(/\s\|\s/);
  if (stages.length === 0) return text;
  const from = below(stages.length, random);
  return `${text} | ${stages.slice(from, from + 1 + below(2, random)).join(" | ")}`;
}

/** A call of some function, mostly with arguments of its types: as a column, as a condition, or in the place of a literal. */
function callSomething(text: string, { functions }: Material, random: Random): string {
  const call = callOf(functions, random, 2);
  const isIn = random.next() < 0.2;
  if (isIn) return replaceToken(isLiteral, [call])(text, { functions, texts: [] }, random);
  return pick(
    [
      `${text} | extend x = ${call}`,
      `${text} | where ${call}`,
      `${text} | summarize ${call} by label`,
      `${text} | summarize x = ${call}, count() by y = ${callOf(functions, random, 1)}`,
      `${text} | sort by ${call}`,
      `print ${call}`,
    ],
    random,
  );
}

function callOf(functions: readonly Callable[], random: Random, depth: number): string {
  const { name, least, most, types } = pick(functions, random);
  const count = least + below(Math.max(0, most - least) + 1, random);
  const args = Array.from({ length: count }, (_, i) => {
    if (depth > 1 && random.next() < 0.15) return callOf(functions, random, depth - 1);
    const own = types[Math.min(i, types.length - 1)] ?? [];
    const type = own.length === 0 || random.next() < 0.1 ? pick(TYPES, random) : pick(own, random);
    return pick(VALUES[type] ?? LITERALS, random);
  });
  return `${name}(${args.join(", ")})`;
}

/** An operator between values of some types, often of one. */
function compareSomething(text: string, _: Material, random: Random): string {
  const type = pick(TYPES, random);
  const values = [type, random.next() < 0.6 ? type : pick(TYPES, random)].map((one) => pick(VALUES[one] ?? [], random));
  const operator = pick(OPERATORS, random);
  const list = ["in", "!in", "in~", "has_any", "has_all"].includes(operator);
  const right = operator === "between" ? `(${values[1]} .. ${values[1]})` : list ? `(${values.join(", ")})` : values[1];
  const value = `(${values[0]}) ${operator} ${right?.startsWith("(") === true ? right : `(${right})`}`;
  return `${text} | ${pick(["extend x =", "where", "project y =", "summarize count() by", "sort by"], random)} ${value}`;
}

function swapFunction(text: string, { functions }: Material, random: Random): string {
  const calls = [...text.matchAll(/\b[a-z_]\w*(?=\()/g)];
  if (calls.length === 0) return text;
  const call = pick(calls, random);
  return `${text.slice(0, call.index)}${pick(functions, random).name}${text.slice(call.index + call[0].length)}`;
}

function deleteTokens(text: string, _: Material, random: Random): string {
  const tokens = tokensOf(text);
  tokens.splice(below(tokens.length, random), 1 + below(3, random));
  return tokens.join("");
}

function duplicateToken(text: string, _: Material, random: Random): string {
  const tokens = tokensOf(text);
  if (tokens.length === 0) return text;
  const place = below(tokens.length, random);
  tokens.splice(place, 0, ...tokens.slice(place, place + 1 + below(4, random)));
  return tokens.join("");
}

function swapTokens(text: string, _: Material, random: Random): string {
  const tokens = tokensOf(text);
  if (tokens.length < 2) return text;
  const [a, b] = [below(tokens.length, random), below(tokens.length, random)];
  [tokens[a], tokens[b]] = [tokens[b] ?? "", tokens[a] ?? ""];
  return tokens.join("");
}

function spliceTokens(text: string, { texts }: Material, random: Random): string {
  const [a, b] = [tokensOf(text), tokensOf(pick(texts, random))];
  return [...a.slice(0, below(a.length + 1, random)), ...b.slice(below(b.length + 1, random))].join("");
}

function insertToken(text: string, { texts }: Material, random: Random): string {
  const [tokens, others] = [tokensOf(text), tokensOf(pick(texts, random))];
  tokens.splice(below(tokens.length + 1, random), 0, ` ${others.length === 0 ? "" : pick(others, random)} `);
  return tokens.join("");
}

function deleteBytes(text: string, _: Material, random: Random): string {
  const place = below(text.length, random);
  return text.slice(0, place) + text.slice(place + 1 + below(3, random));
}

function flipByte(text: string, _: Material, random: Random): string {
  const place = below(text.length, random);
  return `${text.slice(0, place)}${String.fromCharCode(below(128, random))}${text.slice(place + 1)}`;
}

function insertHostile(text: string, _: Material, random: Random): string {
  const place = below(text.length + 1, random);
  return text.slice(0, place) + pick(HOSTILE, random) + text.slice(place);
}

const NESTS: readonly (readonly [string, string])[] = [
  ["(", ")"],
  ["not(", ")"],
  ["-(", ")"],
  ["strcat(", ", 'x')"],
  ["iff(true, ", ", 1)"],
  ["dynamic([", "])"],
  ["tostring(", ")"],
  ["1 + (", ")"],
];

function nest(text: string, _: Material, random: Random): string {
  const [open, close] = pick(NESTS, random);
  const depth = 1 + below(random.next() < 0.1 ? 400 : 8, random);
  const tokens = tokensOf(text);
  const place = below(tokens.length, random);
  const inner = tokens[place] ?? "1";
  tokens[place] = `${open.repeat(depth)}${inner.trim() === "" ? "1" : inner}${close.repeat(depth)}`;
  return tokens.join("");
}

function longLiteral(text: string, _: Material, random: Random): string {
  const long = pick(
    [
      `'${"x".repeat(3_000)}'`,
      `"${"\\\\".repeat(500)}"`,
      "9".repeat(400),
      `0.${"3".repeat(400)}`,
      `dynamic([${"1,".repeat(500)}1])`,
      `'${"ü\u{1f600}".repeat(300)}'`,
      `['${"c".repeat(1_500)}']`,
    ],
    random,
  );
  return replaceToken((token) => isLiteral(token) || isName(token), [long])(text, { functions: [], texts: [] }, random);
}
