import { quoteIdentifier } from "../../io/duckdb/duckdb.ts";
import { bind } from "./bind/bind.ts";
import { InsertionNeeded, type Insertion } from "./bind/insertions.ts";
import { classOf, elementsOf, textOf, the, type SyntaxExpression, type SyntaxNode } from "./bind/library.ts";
import { KqlRefused, TOO_DEEP, type KqlRequest, type KqlTranslation, type KqlType } from "./contract.ts";
import { isTabular } from "./bind/tabular.ts";
import { macrosOf } from "./macros.ts";
import { KeysNeeded } from "./operators/keys.ts";
import { columnExpr, expr, sql, type Expr } from "./plan/expression.ts";
import { Renderer, TooLarge } from "./plan/plan.ts";
import { SelectPlan } from "./plan/plans.ts";
import { computed, type Rel } from "./plan/rel.ts";
import { reasonAgainst, Translator } from "./translator.ts";
import { str } from "./values/coerce.ts";

export { namesOf } from "./bind/bind.ts";

/** Translates a text over tables that are known; throws `KqlRefused`. */
export function translate(request: KqlRequest): KqlTranslation {
  let readsNow = false;
  const watched = Object.defineProperty({ ...request }, "nowNs", {
    get: () => {
      readsNow = true;
      return request.nowNs;
    },
  });
  try {
    const made = translated(watched);
    return made.kind === "query" && readsNow ? { ...made, readsNow } : made;
  } catch (error) {
    if (error instanceof KeysNeeded) {
      const { sql: text } = rendered(error.rel);
      return { kind: "keys", sql: text, macros: macrosOf(text) };
    }
    if (error instanceof RangeError) {
      throw new KqlRefused({ code: "invalid_query", message: TOO_DEEP });
    }
    if (error instanceof TooLarge) throw new KqlRefused({ code: "invalid_query", message: error.message });
    throw error;
  }
}

/** How often a text is bound again: each time takes as long as the first. */
const MAX_INSERTIONS = 50;

function translated(request: KqlRequest): KqlTranslation {
  const insertions: Insertion[] = [];
  for (;;) {
    try {
      return translatedWith(request, insertions);
    } catch (error) {
      if (!(error instanceof InsertionNeeded)) throw error;
      insertions.push(error.insertion);
      if (insertions.length > MAX_INSERTIONS) throw new TooLarge("the query has too many plugins and inner unions");
    }
  }
}

function translatedWith(request: KqlRequest, insertions: readonly Insertion[]): KqlTranslation {
  const bound = bind(request, reasonAgainst, insertions);
  const translator = new Translator(request, bound);
  const statements = elementsOf<SyntaxNode>((bound.root as Kusto.Language.Syntax.QueryBlock).Statements);
  const tabular = statements.filter((one) => classOf(one) === "ExpressionStatement");
  const [first, second] = tabular;
  if (second !== undefined)
    throw translator.refuse("a query has one tabular statement, and a second one starts here", second);
  if (first === undefined) {
    throw new KqlRefused({ code: "parse_error", message: "the query has no tabular statement" });
  }
  if (request.isCondition === true) checkCondition(translator, first);
  const before = statements.filter((one) => one !== first).filter((one) => !isHarmless(one, translator));
  const variables = translator.letAll(before, new Map());
  const node = the((first as Kusto.Language.Syntax.ExpressionStatement).Expression);
  const { rel, render } = withoutRender(node, (inner) => translator.rows(inner, variables));
  if (rel.columns.length === 0) throw translator.refuse("the result has no columns", node);
  const { sql: text, columns } = rendered(rel);
  if (text.includes("\0")) throw translator.refuse("a name may not hold the character NUL", nulIn(bound.root));
  return { kind: "query", sql: text, columns, macros: macrosOf(text), ...(render !== undefined && { render }) };
}

/** Throws unless it is `T | where (…) | project …`, as the text of a condition is put together, and nothing in it has rows. */
function checkCondition(translator: Translator, statement: SyntaxNode): void {
  const project = the((statement as Kusto.Language.Syntax.ExpressionStatement).Expression);
  const inner = pipeOf(project, "ProjectOperator")?.Expression ?? null;
  const filtered = inner === null ? undefined : pipeOf(inner, "FilterOperator");
  const condition = (filtered?.Operator as Kusto.Language.Syntax.FilterOperator | undefined)?.Condition ?? null;
  const isOne =
    condition !== null &&
    classOf(condition) === "ParenthesizedExpression" &&
    classOf(the(filtered?.Expression ?? null)) === "NameReference";
  if (!isOne) throw translator.refuse("a condition is one expression, as it stands after where", statement);
  const rows = rowsIn(condition);
  if (rows !== undefined) throw translator.refuse("a condition takes no sub-query", rows);
}

function rowsIn(node: SyntaxNode): SyntaxNode | undefined {
  if (isTabular(node as SyntaxExpression)) return node;
  for (let i = 0; i < node.ChildCount; i++) {
    const child = node.GetChild(i);
    const found = child === null || child.IsToken ? undefined : rowsIn(child as SyntaxNode);
    if (found !== undefined) return found;
  }
  return undefined;
}

function pipeOf(node: SyntaxExpression, operator: string): Kusto.Language.Syntax.PipeExpression | undefined {
  if (classOf(node) !== "PipeExpression") return undefined;
  const pipe = node as Kusto.Language.Syntax.PipeExpression;
  return classOf(the(pipe.Operator)) === operator ? pipe : undefined;
}

/** The first token that means a NUL: SQL would end there. */
function nulIn(node: SyntaxNode): SyntaxNode | null {
  for (let token = node.GetFirstToken(); token !== null; token = token.GetNextToken()) {
    if (String(token.ValueText).includes("\0")) return token.Parent;
  }
  return null;
}

/** Options of `set` that change no rows. */
const WITHOUT_EFFECT: ReadonlySet<string> = new Set([
  "norequesttimeout",
  "notruncation",
  "query_language",
  "servertimeout",
  "truncationmaxrecords",
  "truncationmaxsize",
]);

function isHarmless(statement: SyntaxNode, translator: Translator): boolean {
  const kind = classOf(statement);
  if (kind === "LetStatement") return false;
  if (kind === "SetOptionStatement") {
    const name = textOf((statement as Kusto.Language.Syntax.SetOptionStatement).Name);
    if (WITHOUT_EFFECT.has(name.toLowerCase())) return true;
    throw translator.refuse(`set ${name} is not supported`, statement);
  }
  throw translator.refuse(`${textOf(statement.GetFirstToken())} is not supported`, statement);
}

type Render = NonNullable<Extract<KqlTranslation, { kind: "query" }>["render"]>;

/** `render` changes no rows: it travels beside them. */
function withoutRender(node: SyntaxExpression, rows: (node: SyntaxExpression) => Rel): { rel: Rel; render?: Render } {
  if (classOf(node) !== "PipeExpression") return { rel: rows(node) };
  const { Expression, Operator } = node as Kusto.Language.Syntax.PipeExpression;
  if (classOf(the(Operator)) !== "RenderOperator") return { rel: rows(node) };
  const operator = the(Operator) as Kusto.Language.Syntax.RenderOperator;
  const properties: Record<string, unknown> = {};
  const listed = elementsOf<Kusto.Language.Syntax.NamedParameter>(operator.WithClause?.Properties);
  for (const { Name, Expression: value } of listed) properties[Name?.SimpleName ?? ""] = valueOf(value);
  return { rel: rows(the(Expression)), render: { kind: textOf(operator.ChartType), properties } };
}

function valueOf(node: SyntaxExpression | null): unknown {
  if (node === null) return null;
  if (typeof node.LiteralValue === "string") return node.LiteralValue;
  const text = textOf(node);
  return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text === "true" || text === "false" ? text === "true" : text;
}

/** The statement that gives the rows as they are shown: timespans as text, strings without NULL, in their order. */
function rendered(rel: Rel): { sql: string; columns: { name: string; type: KqlType }[] } {
  const items = rel.columns.map(({ name, column }) => ({ name, value: shown(columnExpr(column)) }));
  const { rel: made, columns } = computed(rel, items);
  const renderer = new Renderer();
  const outputs = columns.map((column, i) => ({ column, name: quoteIdentifier(rel.columns[i]?.name ?? "") }));
  const reads = rel.order.map(({ by }) => by);
  const plan =
    made.plan instanceof SelectPlan && made.plan.isOpen && !made.plan.isReadBy(reads)
      ? new SelectPlan({ ...made.plan.parts, order: rel.order })
      : new SelectPlan({ from: made.plan, computed: new Map(), where: [], order: rel.order });
  const body = plan.renderAs(outputs, renderer);
  return {
    sql: renderer.statement(body),
    columns: rel.columns.map(({ name, column }) => ({ name, type: column.type })),
  };
}

function shown(value: Expr): Expr {
  if (value.type === "timespan") return expr("string", sql`kql_timespan_text(${value})`);
  return value.type === "string" ? str(value) : value;
}
