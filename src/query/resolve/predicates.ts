import { columnPath, isColumnRef, isObject, objectsOf, textOf, type Json, type JsonObject } from "../parse/tree.ts";
import { isConstant } from "../parse/constant-expression.ts";

/**
 * What a WHERE clause says about the columns of one table, so that extents without a row of interest are never opened.
 * Every row that matters satisfies all of a mention's predicates; NULL satisfies none but `null`. As with bounds on
 * `at`, they may say too little, never too much: whatever is not plain is left out.
 *
 * The query process finds them without knowing the tables: which constant compares with which type of column, and
 * how, is for the planner to say (`prune.ts`).
 */
export type Predicate = PredicateOver<Constant>;

export type PredicateOver<Value> =
  | { kind: "compare"; column: string; operator: Comparison; value: Value }
  /** Both bounds are of one kind, as are all values of a list: DuckDB compares them as one type. */
  | { kind: "between"; column: string; lower: Value; upper: Value }
  | { kind: "in"; column: string; values: readonly Value[] }
  | { kind: "null"; column: string }
  | { kind: "not_null"; column: string }
  /** Text that begins like this. */
  | { kind: "prefix"; column: string; text: string }
  /** Text that has all of these somewhere inside. */
  | { kind: "contains"; column: string; texts: readonly string[] }
  | { kind: "and"; of: readonly PredicateOver<Value>[] }
  | { kind: "or"; of: readonly PredicateOver<Value>[] };

export type Comparison = "=" | "<>" | "<" | "<=" | ">" | ">=";

/** A value by its DuckDB type: all integers, DECIMAL as digits / 10^scale, DOUBLE, FLOAT, VARCHAR, BOOLEAN, a moment. */
export type Constant =
  | { kind: "integer"; value: bigint }
  | { kind: "decimal"; digits: bigint; scale: number }
  | { kind: "double"; value: number }
  | { kind: "float"; value: number }
  /** Only a literal takes the type of what it is compared with; `ns` is the moment that it is when it reads as one. */
  | { kind: "text"; value: string; isLiteral: boolean; ns?: bigint }
  | { kind: "bool"; value: boolean }
  | { kind: "instant"; ns: bigint };

/** A constant as the tree gives it, or an expression to be evaluated. */
export type Operand = Constant | { kind: "expression"; node: JsonObject };
export type Condition = PredicateOver<Operand>;

/** Gives the column of the table in question that a path names. */
export type ColumnOf = (path: readonly string[]) => string | undefined;

type Context = {
  columnOf: ColumnOf;
  /**
   * Whether an outer join may put NULLs in the place of the table's rows: then a row must not be dropped for not being
   * NULL, since the row that it joins with would come back with NULLs.
   */
  mayBeNull: boolean;
};

/** Of a list; longer ones are in most extents somewhere. */
const MAX_VALUES = 1_000;

/** What the expression demands of the table's columns; undefined when nothing. */
export function conditionOf(node: JsonObject, context: Context): Condition | undefined {
  if (node["class"] === "CONJUNCTION") return conjunctionOf(node, context);
  if (node["class"] === "COMPARISON") return comparisonOf(node, context);
  if (node["class"] === "BETWEEN") return betweenOf(node, context);
  if (node["class"] === "OPERATOR") return operatorOf(node, context);
  if (node["class"] === "FUNCTION") return functionOf(node, context);
  const column = columnIn(node, context);
  return column === undefined ? undefined : isTrue(column, true);
}

function conjunctionOf(node: JsonObject, context: Context): Condition | undefined {
  const children = objectsOf(node["children"]);
  const parts = children.flatMap((child) => conditionOf(child, context) ?? []);
  if (node["type"] === "CONJUNCTION_OR") {
    return parts.length === children.length && parts.length > 0 ? { kind: "or", of: parts } : undefined;
  }
  return parts.length === 0 ? undefined : { kind: "and", of: parts };
}

const COMPARISONS: Readonly<Record<string, Comparison>> = {
  COMPARE_EQUAL: "=",
  COMPARE_NOT_DISTINCT_FROM: "=",
  COMPARE_NOTEQUAL: "<>",
  COMPARE_LESSTHAN: "<",
  COMPARE_LESSTHANOREQUALTO: "<=",
  COMPARE_GREATERTHAN: ">",
  COMPARE_GREATERTHANOREQUALTO: ">=",
};

const FLIPPED = { "=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<=" } as const;

function comparisonOf(node: JsonObject, context: Context): Condition | undefined {
  const operator = COMPARISONS[textOf(node["type"])];
  if (operator === undefined) return undefined;
  const left = columnIn(node["left"], context);
  const column = left ?? columnIn(node["right"], context);
  const value = operandOf(left === undefined ? node["left"] : node["right"]);
  if (column === undefined || value === undefined) return undefined;
  return { kind: "compare", column, operator: left === undefined ? FLIPPED[operator] : operator, value };
}

function betweenOf(node: JsonObject, context: Context): Condition | undefined {
  const column = columnIn(node["input"], context);
  const lower = operandOf(node["lower"]);
  const upper = operandOf(node["upper"]);
  if (column === undefined || lower === undefined || upper === undefined) return undefined;
  return { kind: "between", column, lower, upper };
}

function operatorOf(node: JsonObject, context: Context): Condition | undefined {
  const [first, ...others] = objectsOf(node["children"]);
  const column = columnIn(first, context);
  if (column === undefined) return undefined;
  switch (textOf(node["type"])) {
    case "OPERATOR_IS_NULL":
      return context.mayBeNull ? undefined : { kind: "null", column };
    case "OPERATOR_IS_NOT_NULL":
      return { kind: "not_null", column };
    case "OPERATOR_NOT":
      return isTrue(column, false);
    case "COMPARE_IN":
      return listOf(column, others);
    default:
      return undefined;
  }
}

function isTrue(column: string, value: boolean): Condition {
  return { kind: "compare", column, operator: "=", value: { kind: "bool", value } };
}

function listOf(column: string, nodes: readonly JsonObject[]): Condition | undefined {
  const operands = nodes.filter((node) => !isNull(node)).map(operandOf);
  const values = operands.filter((operand) => operand !== undefined);
  if (values.length !== operands.length || values.length === 0 || values.length > MAX_VALUES) return undefined;
  return { kind: "in", column, values };
}

const PREFIX_FUNCTIONS = new Set(["starts_with", "prefix", "^@"]);
const INSIDE_FUNCTIONS = new Set(["contains", "ends_with", "suffix"]);

function functionOf(node: JsonObject, context: Context): Condition | undefined {
  const [first, second, ...others] = objectsOf(node["children"]);
  const column = columnIn(first, context);
  const pattern = second === undefined ? undefined : operandOf(second);
  if (column === undefined || pattern?.kind !== "text" || !pattern.isLiteral || others.length > 0) return undefined;
  const name = textOf(node["function_name"]).toLowerCase();
  if (name === "~~") return likeOf(column, pattern.value);
  if (PREFIX_FUNCTIONS.has(name)) return prefixOf(column, pattern.value);
  return INSIDE_FUNCTIONS.has(name) ? { kind: "contains", column, texts: [pattern.value] } : undefined;
}

/** `LIKE`: `%` stands for any text, `_` for any one character, and there is no escape. */
function likeOf(column: string, pattern: string): Condition {
  const texts = pattern.split(/[%_]/);
  const [start = ""] = texts;
  if (texts.length === 1) {
    return { kind: "compare", column, operator: "=", value: { kind: "text", value: pattern, isLiteral: false } };
  }
  const inside = texts.filter((text) => text !== "");
  const contains: Condition = { kind: "contains", column, texts: inside };
  if (start !== "") return { kind: "and", of: [{ kind: "prefix", column, text: start }, contains] };
  return inside.length === 0 ? { kind: "not_null", column } : contains;
}

function prefixOf(column: string, text: string): Condition {
  const contains: Condition = { kind: "contains", column, texts: [text] };
  return { kind: "and", of: [{ kind: "prefix", column, text }, contains] };
}

function columnIn(node: Json | undefined, { columnOf }: Context): string | undefined {
  return isObject(node) && isColumnRef(node) ? columnOf(columnPath(node)) : undefined;
}

function isNull(node: JsonObject): boolean {
  return node["class"] === "CONSTANT" && isObject(node["value"]) && node["value"]["is_null"] === true;
}

function operandOf(node: Json | undefined): Operand | undefined {
  if (!isObject(node) || isNull(node)) return undefined;
  const literal = literalOf(node);
  if (literal !== undefined) return literal;
  return isConstant(node) ? { kind: "expression", node } : undefined;
}

function typeOfConstant(node: JsonObject): string {
  const value = node["class"] === "CONSTANT" ? node["value"] : undefined;
  return isObject(value) && isObject(value["type"]) ? textOf(value["type"]["id"]) : "";
}

function literalOf(node: JsonObject): Constant | undefined {
  const holder = node["class"] === "CAST" && isBooleanCast(node) ? node["child"] : node;
  if (!isObject(holder) || !isObject(holder["value"])) return undefined;
  const type = typeOfConstant(holder);
  const content = holder["value"]["value"];
  if (type === "VARCHAR" && typeof content === "string") {
    // The parser makes `true` a cast of 't'.
    if (holder !== node)
      return content === "t" || content === "f" ? { kind: "bool", value: content === "t" } : undefined;
    return { kind: "text", value: content, isLiteral: true };
  }
  if (holder !== node) return undefined;
  if (type === "BOOLEAN" && typeof content === "boolean") return { kind: "bool", value: content };
  if ((type === "INTEGER" || type === "BIGINT") && Number.isSafeInteger(content)) {
    return { kind: "integer", value: BigInt(content as number) };
  }
  if (type === "DOUBLE") return { kind: "double", value: numberOf(content) };
  // Numbers of other types are written in ways that only DuckDB should read.
  return undefined;
}

/** A number that JavaScript would write differently is kept as its text (`sql-tree.ts`). */
function numberOf(content: Json | undefined): number {
  return Number(isObject(content) ? textOf(content["rawJSON"]) : content);
}

function isBooleanCast(node: JsonObject): boolean {
  return isObject(node["cast_type"]) && node["cast_type"]["id"] === "BOOLEAN";
}

/** A condition with its expressions evaluated; what hangs on one that is not known is left out. */
export function predicateOf(
  condition: Condition,
  valueOf: (operand: Operand) => Constant | undefined,
): Predicate | undefined {
  switch (condition.kind) {
    case "compare": {
      const value = valueOf(condition.value);
      return value === undefined ? undefined : { ...condition, value };
    }
    case "between": {
      const lower = valueOf(condition.lower);
      const upper = valueOf(condition.upper);
      if (lower === undefined || upper === undefined || lower.kind !== upper.kind) return undefined;
      return { ...condition, lower, upper };
    }
    case "in": {
      const values = condition.values.flatMap((operand) => valueOf(operand) ?? []);
      const isWhole = values.length === condition.values.length;
      return isWhole && values.every(({ kind }) => kind === values[0]?.kind) ? { ...condition, values } : undefined;
    }
    case "and":
    case "or": {
      const of = condition.of.flatMap((part) => predicateOf(part, valueOf) ?? []);
      if (of.length === 0 || (condition.kind === "or" && of.length < condition.of.length)) return undefined;
      return { kind: condition.kind, of };
    }
    case "null":
    case "not_null":
    case "prefix":
    case "contains":
      return condition;
  }
}

/** Every operand in a condition. */
export function operandsOf(condition: Condition): readonly Operand[] {
  if (condition.kind === "compare") return [condition.value];
  if (condition.kind === "between") return [condition.lower, condition.upper];
  if (condition.kind === "in") return condition.values;
  return condition.kind === "and" || condition.kind === "or" ? condition.of.flatMap(operandsOf) : [];
}
