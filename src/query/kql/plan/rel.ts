import { Column, columnExpr, type Expr, type Plan, type Sql, isSameInAllRows } from "./expression.ts";
import { mentioned, type OrderKey } from "./plan.ts";
import { filteredPlan, openSelect, PickPlan, SelectPlan, type Picked } from "./plans.ts";

export type Named = { name: string; column: Column };

/**
 * The rows of a tabular expression: a plan, the columns that it shows, and the order of its rows, if it has one. An
 * order is kept as keys and becomes SQL only where it matters: in front of a limit, in windows, and at the very end.
 */
export class Rel {
  readonly plan: Plan;
  readonly columns: readonly Named[];
  readonly order: readonly OrderKey[];
  /** Whether the rows have an order that functions such as `prev()` may read. */
  readonly isSerialized: boolean;

  constructor(
    plan: Plan,
    columns: readonly Named[],
    more: { order?: readonly OrderKey[]; isSerialized?: boolean } = {},
  ) {
    this.plan = plan;
    this.columns = columns;
    this.order = more.order ?? [];
    this.isSerialized = more.isSerialized ?? false;
  }

  column(name: string): Column | undefined {
    return this.columns.find((one) => one.name === name)?.column;
  }

  /** With another plan that gives at least the same columns. */
  over(plan: Plan): Rel {
    return new Rel(plan, this.columns, this);
  }

  showing(columns: readonly Named[]): Rel {
    return new Rel(this.plan, columns, this);
  }

  /** What is the same in all rows orders none, and DuckDB refuses some of it. */
  ordered(keys: readonly OrderKey[]): Rel {
    const order = keys.filter(({ by }) => !isSameInAllRows(by));
    return new Rel(this.plan, this.columns, { order, isSerialized: true });
  }

  serialized(): Rel {
    return new Rel(this.plan, this.columns, { order: this.order, isSerialized: true });
  }

  unordered(): Rel {
    return new Rel(this.plan, this.columns);
  }
}

/** The rows in which the condition is true. */
export function filtered(rel: Rel, condition: Expr): Rel {
  return rel.over(filteredPlan(rel.plan, condition));
}

/**
 * Computes columns beside those that are there, and says which column holds each value: a bare column is itself. The
 * columns that `rel` shows stay the same.
 */
export function computed(rel: Rel, items: readonly { name: string; value: Expr }[]): { rel: Rel; columns: Column[] } {
  const added = new Map<Column, Expr>();
  const columns = items.map(({ name, value }) => {
    const [only] = value.sql;
    if (value.sql.length === 1 && only instanceof Column && only.type === value.type) return only;
    const column = new Column(name, value.type, value.nullable);
    added.set(column, value);
    return column;
  });
  if (added.size === 0) return { rel, columns };
  const { parts } = openSelect(rel.plan, [...added.values()]);
  const plan = new SelectPlan({ ...parts, computed: new Map([...parts.computed, ...added]) });
  return { rel: rel.over(plan), columns };
}

/** The first rows in the order of `rel`, or any. */
export function limited(rel: Rel, limit: Sql): Rel {
  const reads = rel.order.map(({ by }) => by);
  const { parts } = openSelect(rel.plan, reads);
  return rel.over(new SelectPlan({ ...parts, order: rel.order, limit }));
}

/**
 * One row per group. `keys` are computed first, so that aggregates may read what they shadow; aggregates come back as
 * columns in the order given. Without keys there is one row, also where there are no rows.
 */
export function grouped(
  rel: Rel,
  keys: readonly { name: string; value: Expr }[],
  aggregates: readonly { name: string; value: Expr }[],
  picks: readonly Picked[] = [],
): { rel: Rel; keys: Column[]; aggregates: Column[]; picks: Column[][] } {
  const before = computed(rel, keys);
  const reads = aggregates.map(({ value }) => value);
  const picked = picks.flatMap(({ values: own }) => own);
  const { parts } = openSelect(before.rel.plan, [...reads, ...picked, ...before.columns.map(columnExpr)]);
  const columns = aggregates.map(({ name, value }) => new Column(name, value.type, value.nullable));
  const values = columns.map((column, i): [Column, Expr] => [column, reads[i] ?? columnExpr(column)]);
  const own = { ...parts, computed: new Map([...parts.computed, ...values]), groupBy: before.columns };
  const chosen = picks.map((pick) => ({ ...pick, columns: pick.values.map(({ type }) => new Column("picked", type)) }));
  const plan = chosen.length === 0 ? new SelectPlan(own) : new PickPlan(own, chosen);
  const shown = [...before.columns, ...columns].map((column) => ({ name: column.hint, column }));
  return {
    rel: new Rel(plan, shown),
    keys: before.columns,
    aggregates: columns,
    picks: chosen.map((pick) => pick.columns),
  };
}

/** Each combination of values once. */
export function distinct(rel: Rel, columns: readonly Named[]): Rel {
  const plan = new SelectPlan({
    from: rel.plan,
    computed: new Map(),
    where: [],
    groupBy: columns.map((c) => c.column),
  });
  return new Rel(plan, columns);
}
