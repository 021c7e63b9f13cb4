import { classOf, elementsOf, textOf, the, type SyntaxExpression } from "../bind/library.ts";
import { Column, columnExpr, expr, sql, type Expr, type Plan, type Rendering } from "../plan/expression.ts";
import { mentioned } from "../plan/plan.ts";
import { filteredPlan, JoinPlan, SelectPlan, type JoinKind } from "../plan/plans.ts";
import { Rel, type Named } from "../plan/rel.ts";
import type { OperatorContext, Translating } from "../scope.ts";
import { str } from "../values/coerce.ts";
import { boundColumns } from "./columns.ts";
import { parametersOf } from "./rows.ts";
import { operator, type OperatorTable } from "./table.ts";

/** Operators that put rows of two tables side by side. */
export const JOINS: OperatorTable = {
  JoinOperator: operator<Kusto.Language.Syntax.JoinOperator>((node, input, context) => {
    const kind = textOf(parametersOf(node.Parameters).get("kind")) || "innerunique";
    return joined({ node, kind, right: the(node.Expression), clause: node.ConditionClause }, input, context);
  }),
  LookupOperator: operator<Kusto.Language.Syntax.LookupOperator>((node, input, context) => {
    const kind = textOf(parametersOf(node.Parameters).get("kind")) || "leftouter";
    return joined(
      { node, kind, right: the(node.Expression), clause: node.LookupClause, isLookup: true },
      input,
      context,
    );
  }),
};

type Join = {
  node: Kusto.Language.Syntax.QueryOperator;
  kind: string;
  right: SyntaxExpression;
  clause: Kusto.Language.Syntax.JoinConditionClause | null;
  /** The keys of the right side are not repeated. */
  isLookup?: true;
};

/** What each kind is in SQL, and whose columns it shows. */
const KINDS: Readonly<Record<string, { sql: JoinKind; shows: "both" | "left" | "right" } | undefined>> = {
  innerunique: { sql: "INNER", shows: "both" },
  inner: { sql: "INNER", shows: "both" },
  leftouter: { sql: "LEFT", shows: "both" },
  rightouter: { sql: "RIGHT", shows: "both" },
  fullouter: { sql: "FULL", shows: "both" },
  leftsemi: { sql: "SEMI", shows: "left" },
  rightsemi: { sql: "SEMI", shows: "right" },
  anti: { sql: "ANTI", shows: "left" },
  leftanti: { sql: "ANTI", shows: "left" },
  leftantisemi: { sql: "ANTI", shows: "left" },
  rightanti: { sql: "ANTI", shows: "right" },
  rightantisemi: { sql: "ANTI", shows: "right" },
};

function joined(join: Join, left: Rel, { translator, variables }: OperatorContext): Rel {
  const { node, kind, clause, isLookup } = join;
  const made = KINDS[kind];
  if (made === undefined || clause === null || classOf(clause) !== "JoinOnClause") {
    throw translator.refuse(`a join of kind ${kind} is not supported`, node);
  }
  const right = translator.rows(join.right, variables);
  const conditions = elementsOf<SyntaxExpression>((clause as Kusto.Language.Syntax.JoinOnClause).Expressions);
  const keys = conditions.flatMap((one) => keysOf(one, left, right, translator));
  const dynamic = keys.find(({ own, other }) => own.type === "dynamic" || other.type === "dynamic");
  if (dynamic !== undefined) throw translator.refuse("a key of a join cannot be dynamic: convert it first", clause);
  const on = keys.map(({ own, other }) => expr("bool", sql`${key(own)} = ${key(other)}`));
  if (made.shows === "left") return oneSided(made.sql, left, right, on);
  if (made.shows === "right") return oneSided(made.sql, right, left, on);
  const sides = { left: left.plan, leftColumns: columnsOf(left), right: right.plan };
  const plan =
    kind === "innerunique"
      ? new InnerUniquePlan(
          sides,
          keys.map(({ own }) => key(own)),
          on,
        )
      : new JoinPlan({ kind: made.sql, ...sides, on });
  const repeated = new Set(isLookup === true ? keys.map(({ other }) => other) : []);
  const shown = [
    ...left.columns.map(({ column }) => ({ column, isOuter: made.sql === "RIGHT" || made.sql === "FULL" })),
    ...right.columns
      .filter(({ column }) => !repeated.has(column))
      .map(({ column }) => ({ column, isOuter: made.sql === "LEFT" || made.sql === "FULL" })),
  ];
  return showingOuter(plan, shown, boundColumns(node));
}

/** Rows of one side alone: those with a partner, or those without. */
function oneSided(kind: JoinKind, shown: Rel, other: Rel, on: readonly Expr[]): Rel {
  const plan = new JoinPlan({ kind, left: shown.plan, leftColumns: columnsOf(shown), right: other.plan, on });
  return new Rel(plan, shown.columns);
}

function columnsOf({ columns }: Rel): Set<Column> {
  return new Set(columns.map(({ column }) => column));
}

/** The columns of a side that may have no partner have new identities: they may be NULL now. */
function showingOuter(
  plan: Plan,
  columns: readonly { column: Column; isOuter: boolean }[],
  shape: readonly { name: string }[],
): Rel {
  const renewed = new Map<Column, Expr>();
  const shown = columns.map(({ column, isOuter }, i): Named => {
    const { name } = the(shape[i]);
    if (!isOuter || column.nullable) return { name, column };
    const own = new Column(column.hint, column.type, true);
    renewed.set(own, columnExpr(column));
    return { name, column: own };
  });
  if (renewed.size === 0) return new Rel(plan, shown);
  return new Rel(new SelectPlan({ from: plan, computed: renewed, where: [] }), shown);
}

/** A string that is NULL is the empty one, and equals it. */
function key(column: Column): Expr {
  const value = columnExpr(column);
  return value.type === "string" ? str(value) : value;
}

type Key = { own: Column; other: Column };

/** `name`, or `$left.name == $right.name`, or several of the latter joined by `and`. */
function keysOf(node: SyntaxExpression, left: Rel, right: Rel, translator: Translating): Key[] {
  if (classOf(node) === "ParenthesizedExpression") {
    return keysOf(the((node as Kusto.Language.Syntax.ParenthesizedExpression).Expression), left, right, translator);
  }
  if (classOf(node) === "NameReference") {
    const name = (node as Kusto.Language.Syntax.NameReference).SimpleName ?? "";
    return [{ own: the(left.column(name)), other: the(right.column(name)) }];
  }
  const { Left, Right, Operator } = node as Kusto.Language.Syntax.BinaryExpression;
  const [one, two] = [the(Left), the(Right)];
  if (textOf(Operator) === "and") {
    return [...keysOf(one, left, right, translator), ...keysOf(two, left, right, translator)];
  }
  const names = [one, two].map((side) => selectedName(side));
  const [own, other] = [left.column(names[0] ?? ""), right.column(names[1] ?? "")];
  if (own === undefined || other === undefined)
    throw translator.refuse("a join's condition is $left.x == $right.y", node);
  return [{ own, other }];
}

function selectedName(node: SyntaxExpression): string | undefined {
  if (classOf(node) !== "PathExpression") return undefined;
  const selector = the((node as Kusto.Language.Syntax.PathExpression).Selector);
  return (selector as Kusto.Language.Syntax.NameReference).SimpleName ?? undefined;
}

type Sides = { left: Plan; leftColumns: ReadonlySet<Column>; right: Plan };

/**
 * One row of the left side for each key. A condition over the left side that follows filters that side before one row is
 * chosen: the reference promises that it finds a row that fulfils it.
 */
class InnerUniquePlan implements Plan {
  readonly #sides: Sides;
  readonly #keys: readonly Expr[];
  readonly #on: readonly Expr[];
  readonly #join: JoinPlan;

  constructor(sides: Sides, keys: readonly Expr[], on: readonly Expr[]) {
    this.#sides = sides;
    this.#keys = keys;
    this.#on = on;
    this.#join = new JoinPlan({ kind: "INNER", ...sides, left: new OneEachPlan(sides.left, keys), on });
  }

  render(needed: ReadonlySet<Column>, renderer: Rendering): string {
    return this.#join.render(needed, renderer);
  }

  filtered(condition: Expr): Plan | undefined {
    const { left, leftColumns } = this.#sides;
    if (condition.isFixed === true || ![...mentioned([condition])].every((column) => leftColumns.has(column)))
      return undefined;
    return new InnerUniquePlan({ ...this.#sides, left: filteredPlan(left, condition) }, this.#keys, this.#on);
  }
}

/** One row for each combination of keys. */
class OneEachPlan implements Plan {
  readonly #from: Plan;
  readonly #keys: readonly Expr[];

  constructor(from: Plan, keys: readonly Expr[]) {
    this.#from = from;
    this.#keys = keys;
  }

  render(needed: ReadonlySet<Column>, renderer: Rendering): string {
    const source = this.#from.render(new Set([...needed, ...mentioned(this.#keys)]), renderer);
    const items = [...needed].map((column) => renderer.nameOf(column)).join(", ") || "1";
    const keys = this.#keys.map(({ sql: own }) => renderer.text(own)).join(", ");
    return `SELECT DISTINCT ON (${keys}) ${items} FROM (${source})`;
  }
}
