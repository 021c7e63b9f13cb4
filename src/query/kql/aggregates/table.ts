import type { SyntaxExpression } from "../bind/library.ts";
import { expr, raw, separated, sql, type Expr, type Sql } from "../plan/expression.ts";
import type { Picked } from "../plan/plans.ts";
import type { Call } from "../scope.ts";
import { as } from "../values/coerce.ts";

/** What becomes of an aggregate: its translation, those that make several columns, or the reason why not. */
export type AggregateRule =
  | { translate: (call: Call) => Expr }
  | { tuple: (call: Call) => readonly Expr[] }
  /** Several columns of one row. */
  | { picked: (call: Call) => Picked }
  | { refused: string };

export type AggregateTable = Readonly<Record<string, AggregateRule | undefined>>;

/** An aggregate of its arguments' values. */
export function aggregate(translate: (args: readonly Expr[], call: Call) => Expr): AggregateRule {
  return { translate: (call) => translate(valuesOf(call, call.argumentNodes), call) };
}

/** An aggregate that is not supported, and why. */
export function no(reason: string): AggregateRule {
  return { refused: reason };
}

export function valuesOf(call: Call, nodes: readonly SyntaxExpression[]): Expr[] {
  return nodes.map((node) => call.translator.scalar(node, call.scope));
}

/** The argument in that place; the binder has counted them. */
export function arg(args: readonly Expr[], i: number): Expr {
  const value = args[i];
  if (value === undefined) throw new Error(`an aggregate has no argument ${i}`);
  return value;
}

/** ` FILTER (WHERE …)`: only rows in which all of these are true count. */
export function where(...conditions: readonly (Expr | Sql | undefined)[]): { raw: Sql } {
  const all = conditions.flatMap((one): Sql[] => {
    if (one === undefined) return [];
    return "sql" in one ? [truth(one)] : [one];
  });
  if (all.length === 0) return raw([]);
  return raw(
    sql` FILTER (WHERE ${separated(
      " AND ",
      all.map((one) => sql`${one}`),
    )})`,
  );
}

function truth(condition: Expr): Sql {
  const own = as(condition, "bool");
  return own.filter ?? own.sql;
}

/** Values of a picked row, where nothing stands between it and the aggregate. */
export function valuesPicked({ values, choose }: Picked): Expr[] {
  return values.map((value) =>
    expr(value.type, sql`struct_extract(${raw(choose(sql`struct_pack(c := ${value})`))}, 'c')`),
  );
}
