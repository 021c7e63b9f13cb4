import { the } from "../bind/library.ts";
import type { KqlType } from "../contract.ts";
import { Column, expr, sql, type Expr, type Sql } from "../plan/expression.ts";
import { SelectPlan } from "../plan/plans.ts";
import { CountingPlan } from "../plan/unnest.ts";
import { Rel } from "../plan/rel.ts";
import type { Translating, Variables } from "../scope.ts";
import { as, literal } from "../values/coerce.ts";
import { boundColumns } from "./columns.ts";
import { ascending } from "./expand.ts";
import { source, type SourceTable } from "./table.ts";

/** `range x from … to … step …`: numbers or times at equal distances. */
export const RANGES: SourceTable = {
  RangeOperator: source<Kusto.Language.Syntax.RangeOperator>((node, translator, variables) => {
    const [shape] = boundColumns(node);
    const { name, type } = the(shape);
    if (!RANGED.has(type)) throw translator.refuse(`a range of ${type} is not supported`, node);
    const { count, valueAt } = steps(type, boundsOf(node, type, translator, variables));
    const number = new Column("number", "long", false);
    const column = new Column(name, type, false);
    const values = new Map([[column, expr(type, valueAt(number), { nullable: false })]]);
    const plan = new SelectPlan({ from: new CountingPlan(count, number), computed: values, where: [] });
    return new Rel(plan, [{ name, column }], { order: [ascending(number)], isSerialized: true });
  }),
};

const RANGED: ReadonlySet<KqlType> = new Set(["int", "long", "real", "datetime", "timespan"]);

type Bounds = { low: Expr; high: Expr; step: Expr };

function boundsOf(
  { From, To, Step }: Kusto.Language.Syntax.RangeOperator,
  type: KqlType,
  translator: Translating,
  variables: Variables,
): Bounds {
  const [low, high, step] = [From, To, Step].map((one) => translator.scalar(the(one), { variables }));
  const own = type === "int" ? "long" : type;
  const distance = own === "datetime" ? "timespan" : own;
  return { low: as(the(low), own), high: as(the(high), own), step: as(the(step), distance) };
}

/** How many values there are, and what the value of that number is. */
function steps(type: KqlType, { low, high, step }: Bounds): { count: Sql; valueAt: (number: Column) => Sql } {
  if (type === "datetime") {
    const [from, to] = [low, high].map(nanoseconds);
    const own = { low: the(from), high: the(to), step: expr("long", sql`${step} * 100`) };
    const { count, valueAt } = steps("long", own);
    return { count, valueAt: (number) => sql`make_timestamp_ns(${valueAt(number)})` };
  }
  const name = type === "real" ? "kql_real_steps" : "kql_steps";
  const count = knownSteps(type, low, high, step) ?? sql`coalesce(${name}(${low}, ${high}, ${step}), 0)`;
  const value = (number: Column): Sql => sql`${low} + ${number} * ${step}`;
  return { count, valueAt: (number) => (type === "int" ? sql`CAST(${value(number)} AS INTEGER)` : value(number)) };
}

function nanoseconds(moment: Expr): Expr {
  if (typeof moment.constant === "bigint") return literal("long", moment.constant);
  return expr("long", sql`epoch_ns(${moment})`);
}

/** As far as the tables that count go; nobody waits for their end. */
const LONGEST_LONG = 2n ** 63n - 1n;

/** The number of whole steps, where all is known: a table that counts to a constant is read in order and in parallel. */
function knownSteps(type: KqlType, ...[low, high, step]: readonly Expr[]): Sql | undefined {
  const [from, to, by] = [low?.constant, high?.constant, step?.constant];
  if (type === "real" || typeof from !== "bigint" || typeof to !== "bigint" || typeof by !== "bigint") return undefined;
  const isEmpty = by === 0n || (by > 0n ? to < from : to > from);
  const count = isEmpty ? 0n : (to - from) / by + 1n;
  return [String(count < LONGEST_LONG ? count : LONGEST_LONG)];
}
