import { AGGREGATES } from "./aggregates/aggregates.ts";
import { valuesPicked, type AggregateRule } from "./aggregates/table.ts";
import { kqlTypeOf, refusal, type BoundText } from "./bind/bind.ts";
import { InsertionNeeded, placeWithout } from "./bind/insertions.ts";
import {
  arrayOf,
  classOf,
  elementsOf,
  library,
  textOf,
  the,
  type LanguageSymbol,
  type SyntaxExpression,
  type SyntaxNode,
} from "./bind/library.ts";
import { isTabular } from "./bind/tabular.ts";
import type { KqlRefused, KqlRequest, KqlType } from "./contract.ts";
import { SCALAR_FUNCTIONS } from "./functions/functions.ts";
import type { FunctionRule } from "./functions/table.ts";
import { reasonAgainstPlugin } from "./operators/evaluate.ts";
import { OPERATORS, SOURCES } from "./operators/operators.ts";
import { parametersOf } from "./operators/rows.ts";
import {
  aggregated,
  Column,
  columnExpr,
  columnsIn,
  expr,
  isRefusedByTry,
  Scalar,
  Subquery,
  type Expr,
} from "./plan/expression.ts";
import { ONE_ROW, SelectPlan, SharedPlan, TablePlan } from "./plan/plans.ts";
import { computed, limited, Rel, type Named } from "./plan/rel.ts";
import { SCALARS } from "./scalars.ts";
import type { Call, Scope, Translating, Value, Variables } from "./scope.ts";
import { typeOfSymbol } from "./types/types.ts";
import { inTry } from "./values/bound.ts";
import { as, literal } from "./values/coerce.ts";

/** Turns a bound text into plans and expressions. One for each text. */
export class Translator implements Translating {
  readonly request: KqlRequest;
  readonly #text: BoundText;
  /** What was bound for a call, and what it is a copy of. */
  readonly #bodies = new WeakMap<object, SyntaxNode>();
  #isInPlace = false;
  /** By the node of rows: the names that `as` has given in its pipe. */
  readonly #named = new WeakMap<SyntaxNode, Variables>();

  constructor(request: KqlRequest, text: BoundText) {
    this.request = request;
    this.#text = text;
  }

  /** An error at a node, or of the whole text. */
  refuse(message: string, node?: SyntaxNode | null): KqlRefused {
    const place = node === undefined || node === null ? undefined : this.#placeOf(node, node.TextStart);
    return refusal(this.#text.text, { code: "invalid_query", message }, place);
  }

  insert(node: SyntaxExpression, text: string, usesKeys = false): void {
    const at = this.#placeOf(node, node.End);
    const known = this.#text.insertions.find((one) => one.at === at);
    if (known?.text === text) return;
    if (at === undefined || known !== undefined) {
      throw this.refuse("the arguments of a function decide which columns there are: name them", node);
    }
    throw new InsertionNeeded({ at, text, usesKeys });
  }

  isInserted(node: SyntaxNode): boolean {
    const at = this.#placeOf(node, node.TextStart);
    return this.#text.insertions.some((one) => one.at === at);
  }

  /** A place in the user's text. What was bound for a call counts from the beginning of the function's body. */
  #placeOf({ Root }: SyntaxNode, position: number): number | undefined {
    if (Root === this.#text.root) return placeWithout(this.#text.insertions, position);
    const declared = Root === null ? undefined : this.#bodies.get(Root);
    if (Root === null || declared === undefined) return undefined;
    return this.#placeOf(declared, declared.TextStart + position - Root.TextStart);
  }

  /** What is translated within is evaluated in its place, not once for the query: it may read rows around it. */
  inPlace<T>(translate: () => T): T {
    const before = this.#isInPlace;
    this.#isInPlace = true;
    try {
      return translate();
    } finally {
      this.#isInPlace = before;
    }
  }

  /** The keys of a plugin whose columns depend on rows; undefined in the round that asks for them. */
  keysFor(call: SyntaxExpression): readonly string[] | undefined {
    const told = this.#text.insertions.filter(({ usesKeys }) => usesKeys);
    const at = this.#placeOf(call, call.End);
    const own = told.findIndex((one) => one.at === at);
    return this.request.keys[own === -1 ? told.length : own];
  }

  /** The rows of a tabular expression. */
  rows(node: SyntaxExpression, variables: Variables): Rel {
    const kind = classOf(node);
    if (kind === "PipeExpression") {
      return this.#piped(node as Kusto.Language.Syntax.PipeExpression, variables);
    }
    if (kind === "ParenthesizedExpression") {
      return this.rows(the((node as Kusto.Language.Syntax.ParenthesizedExpression).Expression), variables);
    }
    if (kind === "NameReference") return this.#namedRows(node as Kusto.Language.Syntax.NameReference, variables);
    if (kind === "FunctionCallExpression") {
      return this.#calledRows(node as Kusto.Language.Syntax.FunctionCallExpression, variables);
    }
    if (kind === "MaterializeExpression") {
      const inner = the((node as Kusto.Language.Syntax.MaterializeExpression).Expression);
      return this.shared(this.rows(inner, variables))();
    }
    const source = SOURCES[kind];
    if (source !== undefined) return source(node, this, variables);
    throw this.refuse(`${textOf(node.GetFirstToken())}${kind === "PathExpression" ? "()" : ""} is not supported`, node);
  }

  /** Operators see the names that `as` has given in front of them. */
  #piped(node: Kusto.Language.Syntax.PipeExpression, variables: Variables): Rel {
    const [before, operator] = [the(node.Expression), the(node.Operator)];
    const input = this.rows(before, variables);
    const inner = this.#named.get(before) ?? variables;
    if (classOf(operator) !== "AsOperator") {
      if (inner !== variables) this.#named.set(node, inner);
      return this.apply(operator, input, inner);
    }
    const { Name, Parameters } = operator as Kusto.Language.Syntax.AsOperator;
    const isOnce = textOf(parametersOf(Parameters).get("hint.materialized")) === "true";
    const make = isOnce ? this.shared(input) : () => this.rows(before, variables);
    this.#named.set(node, new Map(inner).set(Name?.SimpleName ?? "", { kind: "rows", make }));
    return isOnce ? make() : input;
  }

  /** The rows that an operator makes of others. */
  apply(node: Kusto.Language.Syntax.QueryOperator, input: Rel, variables: Variables): Rel {
    const rule = OPERATORS[classOf(node)];
    if (rule === undefined || "refused" in rule) throw this.refuse(reasonAgainst(node) ?? "", node);
    return rule.apply(node, input, { translator: this, variables, scope: { variables, rel: input } });
  }

  /** Rows that are evaluated once, whoever reads them: each call gives columns of its own. */
  shared(rel: Rel): () => Rel {
    const plan = this.#isInPlace ? rel.plan : new SharedPlan(rel.plan);
    return () => {
      const columns = rel.columns.map(({ name, column }) => ({
        name,
        column: new Column(column.hint, column.type, column.nullable),
        from: column,
      }));
      const values = new Map(columns.map(({ column, from }) => [column, columnExpr(from)]));
      return new Rel(new SelectPlan({ from: plan, computed: values, where: [] }), columns);
    };
  }

  #namedRows(node: Kusto.Language.Syntax.NameReference, variables: Variables): Rel {
    const name = node.SimpleName ?? "";
    const value = variables.get(name);
    if (value?.kind === "rows") return value.make();
    if (value?.kind === "function") return this.#rowsOfCall(value, [], node, variables);
    const table = this.request.tables.find((one) => one.name === name);
    if (table === undefined) throw this.refuse(`${name} is not a table`, node);
    return this.table(table);
  }

  /** The rows of a stored table. */
  table(table: KqlRequest["tables"][number]): Rel {
    const own = new Map<Column, string>();
    const columns = table.columns.map(({ name, type }): Named => {
      const column = new Column(name, kqlTypeOf(type));
      own.set(column, name);
      return { name, column };
    });
    const stored = new Rel(new TablePlan(table.name, own), columns);
    const vectors = new Set(table.columns.filter(({ type }) => type.kind === "vector").map(({ name }) => name));
    if (vectors.size === 0) return stored;
    const items = columns.map(({ name, column }) => ({
      name,
      value: vectors.has(name) ? expr("dynamic", ["to_json(", column, ")"]) : columnExpr(column),
    }));
    const { rel, columns: made } = computed(stored, items);
    return rel.showing(columns.map(({ name, column }, i) => ({ name, column: made[i] ?? column })));
  }

  #calledRows(node: Kusto.Language.Syntax.FunctionCallExpression, variables: Variables): Rel {
    const name = node.Name?.SimpleName ?? "";
    const value = variables.get(name);
    if (value?.kind === "function") {
      return this.#rowsOfCall(value, elementsOf<SyntaxExpression>(node.ArgumentList?.Expressions), node, variables);
    }
    const called = node.ReferencedSymbol;
    if (name === "table") return this.#tableCall(node);
    throw this.refuse(`${called?.Name ?? name}() is not supported as a source of rows`, node);
  }

  /** `table("name")`. */
  #tableCall(node: Kusto.Language.Syntax.FunctionCallExpression): Rel {
    const [first] = elementsOf<SyntaxExpression>(node.ArgumentList?.Expressions);
    const name = first === undefined ? undefined : this.constant(first, { variables: new Map() });
    const table = this.request.tables.find((one) => one.name === name);
    if (table === undefined) throw this.refuse(`${String(name)} is not a table`, node);
    return this.table(table);
  }

  /** The rows that a function of the text's gives. */
  #rowsOfCall(
    called: Extract<Value, { kind: "function" }>,
    args: readonly SyntaxExpression[],
    node: SyntaxExpression,
    variables: Variables,
  ): Rel {
    const { inner, body } = this.#enter(called, args, node, { variables });
    return this.rows(this.#valueIn(body, node), inner);
  }

  invoke(node: Kusto.Language.Syntax.FunctionCallExpression, input: () => Rel, variables: Variables): Rel {
    const name = node.Name?.SimpleName ?? "";
    const value = variables.get(name);
    if (value?.kind !== "function") throw this.refuse(`${name} is not a function of this query`, node);
    const args = elementsOf<SyntaxExpression>(node.ArgumentList?.Expressions);
    const { inner, body } = this.#enter(value, args, node, { variables }, input);
    return this.rows(this.#valueIn(body, node), inner);
  }

  /** What a function gives: the last statement of its body, which the grammar lets it do without. */
  #valueIn(body: Kusto.Language.Syntax.FunctionBody, node: SyntaxExpression): SyntaxExpression {
    if (body.Expression === null)
      throw this.refuse("the function has no value: its body must end with an expression", node);
    return body.Expression;
  }

  /** The names in the body of a function for one call of it, and the body as it was bound for that call. */
  #enter(
    { declaration, scope }: Extract<Value, { kind: "function" }>,
    args: readonly SyntaxExpression[],
    node: SyntaxExpression,
    outer: Scope,
    input?: () => Rel,
  ): { inner: Variables; body: Kusto.Language.Syntax.FunctionBody } {
    const bound = node.GetCalledFunctionBody() as Kusto.Language.Syntax.FunctionBody | null;
    const body = bound ?? the(declaration.Body);
    if (bound !== null && bound.Root !== null) this.#bodies.set(bound.Root, the(declaration.Body));
    const parameters = elementsOf<Kusto.Language.Syntax.FunctionParameter>(declaration.Parameters?.Parameters);
    const named = new Map<string, SyntaxExpression>();
    const positional: SyntaxExpression[] = [];
    for (const arg of args) {
      const own = arg as Kusto.Language.Syntax.SimpleNamedExpression;
      const name = classOf(arg) === "SimpleNamedExpression" ? own.Name?.SimpleName : undefined;
      if (name !== undefined && name !== null) named.set(name, the(own.Expression));
      else positional.push(arg);
    }
    const inner = new Map(scope);
    if (input !== undefined) {
      const first = parameters.shift()?.NameAndType;
      if (
        first === null ||
        first === undefined ||
        first.Type === null ||
        classOf(first.Type) !== "SchemaTypeExpression"
      ) {
        throw this.refuse("invoke needs a function whose first parameter is a table", node);
      }
      inner.set(first.Name?.SimpleName ?? "", { kind: "rows", make: input });
    }
    for (const parameter of parameters) {
      const { Name, Type } = the(parameter.NameAndType);
      const name = Name?.SimpleName ?? "";
      const given = named.get(name) ?? positional.shift() ?? parameter.DefaultValue?.Value;
      if (given === undefined || given === null) throw this.refuse(`${name} has no value`, node);
      inner.set(name, this.#argument(given, Type, outer));
    }
    return { inner: this.letAll(elementsOf(body.Statements), inner), body };
  }

  #argument(given: SyntaxExpression, type: Kusto.Language.Syntax.TypeExpression | null, scope: Scope): Value {
    if (type !== null && classOf(type) === "SchemaTypeExpression") {
      return { kind: "rows", make: () => this.rows(given, scope.variables) };
    }
    const value = this.scalar(given, scope);
    const declared = type === null ? undefined : (typeOfSymbol(type.ResultType) ?? undefined);
    return { kind: "scalar", value: declared === undefined ? value : as(value, declared) };
  }

  /** The names after these statements. */
  letAll(statements: readonly SyntaxNode[], variables: Variables): Variables {
    let names = variables;
    for (const statement of statements) {
      if (classOf(statement) !== "LetStatement") throw this.refuse("only let statements may stand here", statement);
      names = this.#let(statement as Kusto.Language.Syntax.LetStatement, names);
    }
    return names;
  }

  #let({ Name, Expression }: Kusto.Language.Syntax.LetStatement, variables: Variables): Variables {
    const name = Name?.SimpleName ?? "";
    const node = the(Expression);
    return new Map(variables).set(name, this.#valueOf(node, variables));
  }

  #valueOf(node: SyntaxExpression, variables: Variables): Value {
    const kind = classOf(node);
    if (kind === "FunctionDeclaration") {
      return { kind: "function", declaration: node as Kusto.Language.Syntax.FunctionDeclaration, scope: variables };
    }
    if (kind === "MaterializeExpression") {
      const inner = the((node as Kusto.Language.Syntax.MaterializeExpression).Expression);
      return { kind: "rows", make: this.shared(this.rows(inner, variables)) };
    }
    if (isTabular(node)) return { kind: "rows", make: () => this.rows(node, variables) };
    return { kind: "scalar", value: this.once(this.scalar(node, { variables })) };
  }

  /** A value that is evaluated once, also where it is random. */
  once(value: Expr): Expr {
    if (this.#isInPlace || value.constant !== undefined) return value;
    // Of a row's columns, in the body of a function that is called for it, there is no one value.
    if (value.isFixed !== true || columnsIn(value.sql).length > 0) return value;
    const column = new Column("value", value.type, value.nullable);
    const plan = new SelectPlan({ from: ONE_ROW, computed: new Map([[column, value]]), where: [] });
    return expr(value.type, [new Scalar(plan, column)], { nullable: value.nullable });
  }

  /** The one value of these rows, evaluated once; null where there is none. */
  toScalar(rel: Rel, type: KqlType): Expr {
    const [first] = rel.columns;
    if (first === undefined) return literal(type, null);
    const { plan } = limited(rel, ["1"]);
    if (this.#isInPlace) return expr(first.column.type, ["(", new Subquery(plan, first.column), ")"]);
    return expr(first.column.type, [new Scalar(plan, first.column)]);
  }

  /** A value that is known while translating; throws where the expression is no such. */
  constant(node: SyntaxExpression, scope: Scope): NonNullable<Expr["constant"]> | null {
    const { constant } = this.scalar(node, scope);
    if (constant === undefined) throw this.refuse("a constant is expected here", node);
    return constant;
  }

  /** A scalar expression in its scope. */
  scalar(node: SyntaxExpression, scope: Scope): Expr {
    const kind = classOf(node);
    if (kind === "NameReference") return this.#name(node as Kusto.Language.Syntax.NameReference, scope);
    if (kind === "FunctionCallExpression")
      return this.#call(node as Kusto.Language.Syntax.FunctionCallExpression, scope);
    const rule = SCALARS[kind];
    if (rule === undefined) throw this.refuse(`${describe(kind)} is not supported here`, node);
    return rule(node, scope, this);
  }

  #name(node: Kusto.Language.Syntax.NameReference, scope: Scope): Expr {
    const name = node.SimpleName ?? "";
    const symbol = node.ReferencedSymbol;
    const isColumn = symbol !== null && classOf(symbol) === "ColumnSymbol";
    const column = scope.rel?.column(name);
    if (isColumn && column !== undefined) return columnExpr(column);
    const value = scope.variables.get(name);
    if (value?.kind === "scalar") return value.value;
    if (value?.kind === "ofRow") {
      throw this.refuse(`${name} differs from row to row: toscalar() and in () are evaluated once`, node);
    }
    if (column !== undefined) return columnExpr(column);
    throw this.refuse(`${name} is not known here`, node);
  }

  /** A call of a function of the language, of an aggregate, or of the text's own. */
  #call(node: Kusto.Language.Syntax.FunctionCallExpression, scope: Scope): Expr {
    const name = node.Name?.SimpleName ?? "";
    const argumentNodes = elementsOf<SyntaxExpression>(node.ArgumentList?.Expressions);
    const own = scope.variables.get(name);
    if (own?.kind === "function") {
      const { inner, body } = this.#enter(own, argumentNodes, node, scope);
      return this.scalar(this.#valueIn(body, node), { variables: inner });
    }
    const type = typeOfSymbol(node.ResultType) ?? "dynamic";
    const refuse = (message: string): KqlRefused => this.refuse(message, node);
    const call: Call = { name, node, type, scope, translator: this, argumentNodes, refuse };
    if (scope.aggregates === true && isAggregate(node.ReferencedSymbol)) {
      const rule = AGGREGATES[name];
      if (rule === undefined || "refused" in rule) throw this.refuse(unsupported("aggregate", name, rule), node);
      const inner: Scope = { ...scope, aggregates: false };
      return aggregated(oneOf(rule, { ...call, scope: inner }));
    }
    const rule = SCALAR_FUNCTIONS[name];
    if (rule === undefined || "refused" in rule) throw this.refuse(unsupported("function", name, rule), node);
    if ("special" in rule) return rule.special(call);
    const values = argumentNodes.map((argument) => this.scalar(argument, scope));
    return values.some(isRefusedByTry) ? translatedInTry(rule, values, call) : rule.translate(values, call);
  }
}

/** The same for values that TRY does not take: what a function becomes may have its arguments inside of TRY. */
function translatedInTry(
  rule: Extract<FunctionRule, { translate: unknown }>,
  values: readonly Expr[],
  call: Call,
): Expr {
  const plain = rule.translate(values, call);
  // A window reads rows, which are not within reach there.
  if (plain.isFixed === true || plain.constant !== undefined) return plain;
  const own = inTry(values, (given) => rule.translate(given, call).sql);
  return expr(plain.type, own, { nullable: plain.nullable });
}

/** The value of an aggregate that stands in an expression: it has one column. */
function oneOf(rule: Exclude<AggregateRule, { refused: string }>, call: Call): Expr {
  if ("translate" in rule) return rule.translate(call);
  const [value, ...more] = "tuple" in rule ? rule.tuple(call) : valuesPicked(rule.picked(call));
  if (value === undefined || more.length > 0) {
    throw call.refuse(`${call.name}() makes several columns, and stands alone`);
  }
  return value;
}

function unsupported(kind: string, name: string, rule: { refused: string } | undefined): string {
  return `${kind} ${name}() is not supported${rule === undefined ? "" : `: ${rule.refused}`}`;
}

let aggregateNames: ReadonlySet<string> | undefined;

function isAggregate(symbol: LanguageSymbol | null): boolean {
  const { Aggregates } = library();
  aggregateNames ??= new Set(arrayOf<LanguageSymbol>(Aggregates.All).flatMap(({ Name }) => Name ?? []));
  if (symbol === null || !aggregateNames.has(symbol.Name ?? "")) return false;
  return arrayOf<LanguageSymbol>(Aggregates.All).includes(symbol);
}

/** `GraphMatchOperator` as words. */
function describe(kind: string): string {
  return kind
    .replace(/(Expression|Operator|Statement|Clause)$/, "")
    .replace(/(?<=[a-z])(?=[A-Z])/g, " ")
    .toLowerCase();
}

/** Why an operator is refused wherever it stands; undefined for those that are not, and for other nodes. */
export function reasonAgainst(node: SyntaxNode): string | undefined {
  const kind = classOf(node);
  if (kind in STATEMENTS) return `${STATEMENTS[kind] ?? ""} is not supported`;
  if (kind === "EvaluateOperator") return reasonAgainstPlugin(node);
  if (kind === "FunctionCallExpression")
    return reasonAgainstSource(node as Kusto.Language.Syntax.FunctionCallExpression);
  if (!kind.endsWith("Operator") || SOURCES[kind] !== undefined) return undefined;
  const rule = OPERATORS[kind];
  if (rule !== undefined && !("refused" in rule)) return undefined;
  const reason = rule === undefined ? "" : `: ${rule.refused}`;
  return `operator ${textOf(node.GetFirstToken())} is not supported${reason}`;
}

/** Statements of programs that put users' queries together. */
const STATEMENTS: Readonly<Record<string, string | undefined>> = {
  AliasStatement: "alias",
  PatternStatement: "declare pattern",
  QueryParametersStatement: "declare query_parameters",
  RestrictStatement: "restrict access",
};

/** What names tables elsewhere. */
const ELSEWHERE: ReadonlySet<string> = new Set([
  "app",
  "cluster",
  "database",
  "external_table",
  "resource",
  "workspace",
]);

function reasonAgainstSource({
  Name,
  ReferencedSymbol,
}: Kusto.Language.Syntax.FunctionCallExpression): string | undefined {
  const name = Name?.SimpleName ?? "";
  const isOwn = ReferencedSymbol !== null && classOf(ReferencedSymbol) === "VariableSymbol";
  return ELSEWHERE.has(name) && !isOwn ? `${name}() is not supported: a query reads one database` : undefined;
}
