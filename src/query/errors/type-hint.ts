import { foldName } from "../../core/names.ts";
import { quoteIdentifier } from "../../io/duckdb/duckdb.ts";
import type { TableShape } from "../contract/tables.ts";
import { titleOf, type SqlParser } from "../parse/sql-tree.ts";
import {
  columnPath,
  isColumnRef,
  isObject,
  objectsOf,
  positionOf,
  textOf,
  type Json,
  type JsonObject,
} from "../parse/tree.ts";

/**
 * What to write where text meets a number: a field that ingest finds by itself becomes a string column, so `ms > 100` and
 * `sum(ms)` are the first thing that many queries get wrong. DuckDB says which types do not go together, and where; which
 * column it is, and which cast helps, is found in the query's tree.
 */
export type TypeHint = {
  /** What is wrong, in one line, without DuckDB's list of all functions of that name. */
  problem: string;
  /** What to write. */
  hint: string;
  suggestion: string;
};

/** What DuckDB says. */
type TypeFailure = { message: string; call?: string; candidates?: string[] };

export type HintContext = {
  parser: SqlParser;
  /** The query as the user wrote it. */
  tree: JsonObject;
  /** In the user's text. */
  position: number | undefined;
  tables: readonly TableShape[];
};

/** Undefined when the error is about something else, or when it is not plain which expression it is about. */
export async function typeHint(error: TypeFailure, context: HintContext): Promise<TypeHint | undefined> {
  const found = mismatchOf(error, context) ?? callOf(error, context) ?? conversionOf(error, context);
  if (found === undefined) return undefined;
  const { operand, cast, problem, isTried, alternative } = found;
  const { written, what, castTo } = await shown(operand, context);
  if (isTried) {
    const suggestion = `TRY_CAST(${written} AS ${cast})`;
    return { problem, suggestion, hint: `${what}: write ${suggestion} for NULL where its text is no ${cast}` };
  }
  const suggestion = castTo(cast);
  const or = alternative === undefined ? "" : `, or ${alternative(written, castTo)}`;
  return { problem, suggestion, hint: `${what}: write ${suggestion}${or}` };
}

type Found = {
  operand: JsonObject;
  cast: string;
  problem: string;
  /** It is cast already. */
  isTried?: boolean;
  alternative?: (written: string, castTo: (type: string) => string) => string;
};

const MISMATCH =
  /^Cannot (?:compare|mix|combine) (?:values of type|types of) (\S.*?) and (?:type )?(\S.*?)(?: in .*)? - an explicit cast is required/;

/** Two operands whose types do not go together. */
function mismatchOf({ message }: TypeFailure, context: HintContext): Found | undefined {
  const [, left = "", right = ""] = MISMATCH.exec(message) ?? [];
  if (isText(left) === isText(right)) return undefined;
  const cast = castFor(isText(left) ? right : left);
  if (cast === undefined) return undefined;
  for (const holder of holdersAt(context)) {
    const operands = operandsOf(holder);
    const named = holder["class"] === "COMPARISON" ? [operands[isText(left) ? 0 : 1]] : operands;
    const operand = textAmong(named, context);
    if (operand !== undefined) return { operand, cast, problem: message.replace(/ - an explicit cast.*/s, "") };
  }
  return undefined;
}

/** A function that takes no text in that place. */
function callOf({ message, call = "", candidates = [] }: TypeFailure, context: HintContext): Found | undefined {
  const [, name = "", list = ""] = /^(.+?)\((.*)\)$/s.exec(call) ?? [];
  const types = list.split(/,\s*(?![^(]*\))/);
  const place = types.findIndex(isText);
  const takes = candidates.join(",");
  const numeric = ["BIGINT", "DOUBLE", "INTEGER"].find((type) => takes.includes(type));
  if (place === -1 || numeric === undefined || !message.startsWith("No function matches")) return undefined;
  const holder = holdersAt(context).find((node) => textOf(node["function_name"]).toLowerCase() === name.toLowerCase());
  const operand = holder === undefined ? undefined : objectsOf(holder["children"])[place];
  if (operand === undefined || operand["class"] === "CONSTANT") return undefined;
  const problem = `there is no ${call}`;
  const other = types.find((type) => castFor(type) !== undefined);
  if (other !== undefined) return { operand, cast: castFor(other) ?? numeric, problem };
  if (numeric !== "BIGINT" || !takes.includes("DOUBLE")) return { operand, cast: numeric, problem };
  // Nothing tells whether its text has fractions.
  return { operand, cast: numeric, problem, alternative: (_, castTo) => `${castTo("DOUBLE")} for fractions` };
}

const CONVERSION = /^Could not convert string .* to (\w+) when casting from source column (.*)$/s;

/** A value of a column that is no number: cast by the query, or by DuckDB because it is compared with one. */
function conversionOf({ message }: TypeFailure, context: HintContext): Found | undefined {
  const [, to = "", column = ""] = CONVERSION.exec(message) ?? [];
  const cast = /INT/.test(to) ? "BIGINT" : castFor(to);
  if (cast === undefined) return undefined;
  const problem = message.replace(/ when casting from source column .*$/s, "");
  const holders = holdersAt(context);
  const isCast = holders.some((node) => node["class"] === "CAST");
  const ofName = (node: JsonObject): boolean => foldName(columnPath(node).at(-1) ?? "") === foldName(column);
  const nodes = holders.concat(holders.flatMap(operandsOf));
  const operand = nodes.find((node) => isColumnRef(node) && ofName(node));
  const named = operand ?? { class: "COLUMN_REF", column_names: [column] };
  if (isCast) return { operand: named, cast, problem, isTried: true };
  const alternative = (written: string): string => `TRY_CAST(${written} AS ${cast}) for NULL where its text is none`;
  return { operand: named, cast, problem, alternative };
}

function isText(type: string): boolean {
  return type === "VARCHAR" || type === "JSON";
}

/** The type to cast text to, so that it goes together with that one. */
function castFor(type: string): string | undefined {
  if (/^(?:INTEGER_LITERAL|U?(?:TINY|SMALL|BIG|HUGE)?INT(?:EGER)?)$/.test(type)) return "BIGINT";
  if (/^(?:DECIMAL|DOUBLE|FLOAT)/.test(type)) return "DOUBLE";
  return /^(?:TIMESTAMP(?:_NS| WITH TIME ZONE)?|DATE|BOOLEAN)$/.test(type) ? type : undefined;
}

/** The expressions that begin at the place of the error, and those that they are operands of. */
function holdersAt({ tree, position }: HintContext): JsonObject[] {
  const found: JsonObject[] = [];
  const parents: JsonObject[] = [];
  const walk = (value: Json, parent: JsonObject | undefined): void => {
    if (Array.isArray(value)) for (const item of value as readonly Json[]) walk(item, parent);
    if (!isObject(value)) return;
    const isExpression = typeof value["class"] === "string";
    if (isExpression && positionOf(value) === position) {
      found.push(value);
      if (parent !== undefined) parents.push(parent);
    }
    for (const child of Object.values(value)) walk(child, isExpression ? value : parent);
  };
  if (position !== undefined) walk(tree, undefined);
  return [...found, ...parents];
}

function operandsOf(node: JsonObject): JsonObject[] {
  const own = ["left", "right", "input", "lower", "upper", "child", "else_expr"].map((key) => node[key] ?? null);
  const branches = objectsOf(node["case_checks"]).map((check) => check["then_expr"] ?? null);
  const children = Array.isArray(node["children"]) ? (node["children"] as readonly Json[]) : [];
  return objectsOf([...own, ...branches, ...children]);
}

/** The operand that is text: a string column if one is, else the first that may be. */
function textAmong(operands: readonly (JsonObject | undefined)[], context: HintContext): JsonObject | undefined {
  const some = operands.filter((operand) => operand !== undefined && operand["class"] !== "CONSTANT") as JsonObject[];
  const kinds = new Map(some.map((operand) => [operand, kindOf(operand, context)]));
  return some.find((operand) => kinds.get(operand) === "string") ?? some.find((one) => kinds.get(one) === undefined);
}

/** Of a column that is the same in all tables of the query which have it. */
function kindOf(operand: JsonObject, { tables }: HintContext): string | undefined {
  if (!isColumnRef(operand)) return undefined;
  const name = foldName(columnPath(operand).at(-1) ?? "");
  const columns = tables.flatMap((table) => table.columns.filter((column) => foldName(column.name) === name));
  const kinds = new Set(columns.map(({ type }) => type.kind));
  return kinds.size === 1 ? [...kinds][0] : undefined;
}

type Shown = { written: string; what: string; castTo: (type: string) => string };

async function shown(operand: JsonObject, context: HintContext): Promise<Shown> {
  if (isColumnRef(operand)) {
    const path = columnPath(operand);
    const written = path.map((part) => (PLAIN_WORD.test(part) ? part : quoteIdentifier(part))).join(".");
    const what = kindOf(operand, context) === "string" ? "a string column" : "a string";
    return { written, what: `${JSON.stringify(path.at(-1))} is ${what}`, castTo: (type) => `${written}::${type}` };
  }
  const written = await titleOf(context.parser, operand);
  return { written, what: `${written} is a string`, castTo: (type) => `CAST(${written} AS ${type})` };
}

const PLAIN_WORD = /^[A-Za-z_][A-Za-z0-9_]*$/;
