import { elementsOf, the } from "../bind/library.ts";
import type { KqlType } from "../contract.ts";
import { Column, columnExpr, commaList, expr, sql, type Expr, type Plan, type Sql } from "../plan/expression.ts";
import { orderSql } from "../plan/plan.ts";
import { JoinPlan, UnionPlan, type Branch } from "../plan/plans.ts";
import { computed, filtered, grouped, Rel, type Named } from "../plan/rel.ts";
import type { OperatorContext } from "../scope.ts";
import { as, literal } from "../values/coerce.ts";
import { boundColumns } from "./columns.ts";
import { keysBy, orderingOf, rowCount, type Ordering } from "./rows.ts";
import { aggregateOf, key } from "./summarize.ts";
import { operator, type OperatorTable } from "./table.ts";

type TopNested = Kusto.Language.Syntax.TopNestedOperator;
type Clause = Kusto.Language.Syntax.TopNestedClause;
type Shape = { name: string; type: KqlType };

/** `top-nested`: the values with the greatest aggregates, and within each of them those of the next level. */
export const TOP_NESTED: OperatorTable = { TopNestedOperator: operator<TopNested>(nested) };

/** What a level chooses among the rows of each value that the level above has chosen. */
type Level = {
  key: Shape;
  aggregate: Shape;
  /** How many values; undefined: all. */
  count: Sql | undefined;
  ordering: Ordering;
  /** Stands for the values that are not chosen. */
  others: Expr | undefined;
  aggregateOf: (rel: Rel) => Expr;
};

/** Makes the rows that come in, each time as new columns, with the keys of all levels beside them. */
type Source = () => { rel: Rel; keys: readonly Column[] };

/** Makes what a level has chosen: a key and an aggregate for each level down to it. */
type Chosen = () => Rel;

function nested(node: TopNested, input: Rel, context: OperatorContext): Rel {
  const { translator, scope } = context;
  const clauses = elementsOf<Clause>(node.Clauses);
  const shape = boundColumns(node);
  const levels = clauses.map((clause, i) => levelOf(clause, the(shape[2 * i]), the(shape[2 * i + 1]), context));
  const keys = clauses.map((clause, i) => {
    const { name, type } = the(levels[i]).key;
    return { name, value: as(key(translator.scalar(the(clause.OfExpression), scope)), type) };
  });
  const source = sourceOf(input, keys, context);
  const chosen: Chosen[] = [];
  for (const [i, level] of levels.entries()) {
    chosen.push(translator.shared(chosenAt(i, level, source, chosen[i - 1])));
  }
  const { plan, columns } = the(chosen.at(-1))();
  const rows: Rows[] = [{ plan, values: columns.map(({ column }) => columnExpr(column)) }];
  // What falls out at a level is among the others of that level, or of one below.
  for (const i of levels.keys()) {
    if (levels.slice(i).some(({ others }) => others !== undefined)) rows.push(othersAt(i, levels, source, chosen));
  }
  return unionOf(rows, shape);
}

function levelOf(clause: Clause, own: Shape, aggregate: Shape, context: OperatorContext): Level {
  const { translator, scope, variables } = context;
  if (own.name === "") {
    throw translator.refuse("a computed value of top-nested needs a name: top-nested of name = …", clause.OfExpression);
  }
  const { value, ...ordering } = orderingOf(the(clause.ByExpression));
  const others = clause.WithOthersClause?.Expression ?? null;
  return {
    key: own,
    aggregate,
    count: clause.Expression === null ? undefined : rowCount(clause.Expression, scope, translator),
    ordering,
    others: others === null ? undefined : othersAs(translator.scalar(others, { variables }), own.type, clause, context),
    aggregateOf: (rel) => {
      const only = aggregateOf(value, { ...context, scope: { ...scope, rel } });
      if (only === undefined || only.type === "dynamic") {
        throw translator.refuse("top-nested orders by one number, text or time", value);
      }
      return as(only, aggregate.type);
    },
  };
}

const NUMBERS: ReadonlySet<KqlType> = new Set<KqlType>(["int", "long", "real", "decimal"]);

function othersAs(value: Expr, type: KqlType, clause: Clause, { translator }: OperatorContext): Expr {
  if (value.type === type || (NUMBERS.has(value.type) && NUMBERS.has(type))) return as(value, type);
  throw translator.refuse(`others is of type ${value.type}, and the values of type ${type}`, clause.WithOthersClause);
}

function sourceOf(
  input: Rel,
  items: readonly { name: string; value: Expr }[],
  { translator }: OperatorContext,
): Source {
  const { rel, columns } = computed(input.unordered(), items);
  const named = columns.map((column): Named => ({ name: column.hint, column }));
  const make = translator.shared(rel.showing([...rel.columns, ...named]));
  return () => {
    const made = make();
    const keys = made.columns.slice(input.columns.length).map(({ column }) => column);
    return { rel: made.showing(made.columns.slice(0, input.columns.length)), keys };
  };
}

/** The rows whose values the levels above have all chosen, beside what those have chosen. */
function within(source: Source, above: Chosen | undefined): { rel: Rel; keys: readonly Column[]; path: Column[] } {
  const { rel, keys } = source();
  if (above === undefined) return { rel, keys, path: [] };
  const chosen = above();
  const path = chosen.columns.map(({ column }) => column);
  return { rel: rel.over(joined("INNER", rel, keys, chosen)), keys, path };
}

function joined(
  kind: "INNER" | "ANTI",
  left: Rel,
  keys: readonly Column[],
  chosen: Rel,
  beside: readonly Column[] = [],
): Plan {
  const leftColumns = new Set([...left.columns.map(({ column }) => column), ...keys, ...beside]);
  const theirs = chosen.columns.filter((_, i) => i % 2 === 0);
  const on = theirs.map(({ column }, i) => {
    return expr("bool", sql`${the(keys[i])} IS NOT DISTINCT FROM ${column}`, { nullable: false });
  });
  return new JoinPlan({ kind, left: left.plan, leftColumns, right: chosen.plan, on });
}

/** A key and an aggregate for each level down to this one. */
function chosenAt(i: number, level: Level, source: Source, above: Chosen | undefined): Rel {
  const { rel, keys, path } = within(source, above);
  const by = [...path, the(keys[i])].map((column) => ({ name: column.hint, value: columnExpr(column) }));
  const made = grouped(rel, by, [{ name: level.aggregate.name, value: level.aggregateOf(rel) }]);
  if (level.count === undefined) return made.rel;
  const order = orderSql(keysBy(columnExpr(the(made.aggregates[0])), level.ordering));
  const parts = made.keys.slice(0, -1).map((column): Sql => [column]);
  const partition = parts.length === 0 ? [] : ["PARTITION BY ", ...commaList(parts).raw, " "];
  const place = expr("long", ["row_number() OVER (", ...partition, "ORDER BY ", ...order, ")"], {
    nullable: false,
    isFixed: true,
  });
  const { rel: placed, columns } = computed(made.rel, [{ name: "place", value: place }]);
  return filtered(placed, expr("bool", sql`${the(columns[0])} <= ${level.count}`, { nullable: false }));
}

type Rows = { plan: Plan; values: readonly Expr[] };

/** One row for the values that a level has not chosen: those without others of their own have no value there. */
function othersAt(i: number, levels: readonly Level[], source: Source, chosen: readonly Chosen[]): Rows {
  const { rel, keys, path } = within(source, chosen[i - 1]);
  const left = rel.over(joined("ANTI", rel, keys, the(chosen[i])(), path));
  const by = path.map((column) => ({ name: column.hint, value: columnExpr(column) }));
  // Of no rows there are no others.
  const groups = by.length === 0 ? [{ name: "all", value: literal("bool", true) }] : by;
  const below = levels.slice(i);
  const counted = below.filter(({ others }) => others !== undefined);
  const made = grouped(
    left,
    groups,
    counted.map((level) => ({ name: level.aggregate.name, value: level.aggregateOf(left) })),
  );
  const aggregates = [...made.aggregates];
  const values = below.flatMap(({ key: own, aggregate, others }) => {
    if (others === undefined) return [literal(own.type, null), literal(aggregate.type, null)];
    return [others, columnExpr(the(aggregates.shift()))];
  });
  return { plan: made.rel.plan, values: [...made.keys.slice(0, path.length).map(columnExpr), ...values] };
}

function unionOf(rows: readonly Rows[], shape: readonly Shape[]): Rel {
  const columns = shape.map(({ name, type }): Named => ({ name, column: new Column(name, type) }));
  const branches = rows.map(({ plan, values }): Branch => {
    return { plan, values: new Map(columns.map(({ column }, i) => [column, the(values[i])])) };
  });
  return new Rel(new UnionPlan(branches), columns);
}
