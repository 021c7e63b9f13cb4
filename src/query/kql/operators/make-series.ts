import { classOf, elementsOf, textOf, the, type SyntaxExpression } from "../bind/library.ts";
import type { KqlType } from "../contract.ts";
import { columnExpr, commaList, expr, raw, sql, type Column, type Expr, type Sql } from "../plan/expression.ts";
import { computed, filtered, grouped, type Named, type Rel } from "../plan/rel.ts";
import type { OperatorContext } from "../scope.ts";
import { as, dyn, literal } from "../values/coerce.ts";
import { boundColumns, unnamed, valuesOf } from "./columns.ts";
import { parametersOf } from "./rows.ts";
import { aggregateOf, key } from "./summarize.ts";
import { operator, type OperatorTable } from "./table.ts";

type MakeSeries = Kusto.Language.Syntax.MakeSeriesOperator;
type MakeSeriesExpression = Kusto.Language.Syntax.MakeSeriesExpression;

/** The most values that a series has. */
const MAX_VALUES = 1_048_576;

/** `make-series`: aggregates at equal distances along an axis, as arrays. */
export const SERIES: OperatorTable = { MakeSeriesOperator: operator<MakeSeries>(makeSeries) };

/** An axis is counted in whole steps from an origin. */
type Axis = {
  /** Where a row is on it. */
  index: Expr;
  /** Which rows are on it. */
  conditions: readonly Expr[];
  /** The first and the last index of every series; undefined: each series has its own. */
  low?: Sql;
  high?: Sql;
  valueAt: (index: Expr) => Expr;
};

/** An aggregate of a number, and what stands where there are no rows. */
type Series = { value: Expr; otherwise: Expr };

function makeSeries(node: MakeSeries, input: Rel, context: OperatorContext): Rel {
  const { scope, translator } = context;
  const names = boundColumns(node).map(({ name }) => name);
  const nodes = elementsOf<SyntaxExpression>(node.ByClause?.Expressions);
  const keys = valuesOf(nodes, scope, translator).map((value, i) => ({ name: the(names[i]), value: key(value) }));
  const series = elementsOf<MakeSeriesExpression>(node.Aggregates).map((one) => seriesOf(one, context));
  const axis = axisOf(node, context);

  const points = grouped(
    axis.conditions.reduce(filtered, input.unordered()),
    [...keys, { name: "index", value: axis.index }],
    series.map(({ value }, i) => ({ name: the(names[keys.length + i]), value })),
  );
  const by = points.keys.slice(0, -1);
  const index = columnExpr(the(points.keys.at(-1)));
  const { rel, at } = filledUp(points.rel, by, index, axis);
  const elements = series.map(({ otherwise }, i) => {
    const [value, none] = alike(columnExpr(the(points.aggregates[i])), otherwise);
    return expr(value.type, sql`CASE WHEN ${at} = ${index} THEN ${value} ELSE ${none} END`);
  });
  const arrays = [...elements, axis.valueAt(at)].map((element) => sql`to_json(list(${plain(element)} ORDER BY ${at}))`);

  const isNeverEmpty = textOf(parametersOf(node.Parameters).get("kind")) === "nonempty";
  const values = isNeverEmpty ? orDefaults(arrays, series, axis) : arrays;
  if (values === undefined || (isNeverEmpty && keys.length > 0)) {
    throw translator.refuse("make-series with kind=nonempty takes from and to, and no keys", node);
  }
  const items = values.map((value, i) => ({ name: the(names[keys.length + i]), value: expr("dynamic", value) }));
  const groups = by.map((column) => ({ name: column.hint, value: columnExpr(column) }));
  // Of no rows there is no series: without a key there would be one.
  const all = groups.length === 0 && !isNeverEmpty ? [{ name: "all", value: literal("bool", true) }] : groups;
  const made = grouped(rel, all, items);
  const columns = [...made.keys.slice(0, keys.length), ...made.aggregates];
  return made.rel.showing(names.map((name, i): Named => ({ name, column: the(columns[i]) })));
}

const NUMBERS: ReadonlySet<KqlType> = new Set<KqlType>(["int", "long", "real", "decimal"]);

function seriesOf(node: MakeSeriesExpression, context: OperatorContext): Series {
  const { translator, variables } = context;
  const inner = the(node.Expression);
  const value = aggregateOf(inner, context);
  if (value === undefined || !NUMBERS.has(value.type)) {
    throw translator.refuse(`make-series takes aggregates that are one number: ${textOf(inner)} is none`, inner);
  }
  const own = node.DefaultExpression?.Expression ?? null;
  return { value, otherwise: own === null ? literal("long", 0n) : translator.scalar(own, { variables }) };
}

/** Both of one type, so that they may stand in one list. */
function alike(value: Expr, otherwise: Expr): [Expr, Expr] {
  if (otherwise.constant === null || otherwise.type === value.type) return [value, as(otherwise, value.type)];
  if (NUMBERS.has(otherwise.type) && (value.type === "real" || otherwise.type === "long")) {
    return [value, as(otherwise, value.type)];
  }
  return [dyn(value), dyn(otherwise)];
}

/** As an element of a list that becomes JSON. */
function plain(value: Expr): Expr {
  return value.type === "long" || value.type === "int" ? value : dyn(value);
}

/**
 * A row for each index of each series, and that index: every row that is there is followed by those that are missing
 * behind it, the first one also led by those in front of it.
 */
function filledUp(points: Rel, by: readonly Column[], index: Expr, { low, high }: Axis): { rel: Rel; at: Expr } {
  const partition = by.length === 0 ? [] : ["PARTITION BY ", ...commaList(by.map((column) => [column])).raw];
  const window = (call: Sql, order: Sql): Expr => {
    return expr("long", sql`${raw(call)} OVER (${raw(partition)}${raw(order)})`, { isFixed: true });
  };
  const { rel, columns } = computed(points, [
    { name: "next", value: window(sql`lead(${index})`, sql` ORDER BY ${index}`) },
    { name: "first", value: window(sql`min(${index})`, []) },
  ]);
  const [next, first] = [the(columns[0]), the(columns[1])];
  const start = low === undefined ? sql`${index}` : sql`CASE WHEN ${index} = ${first} THEN ${low} ELSE ${index} END`;
  const end = sql`coalesce(${next} - 1, ${raw(high ?? sql`${index}`)})`;
  const checked = sql`CASE WHEN ${end} - ${low ?? [first]} >= ${MAX_VALUES}
    THEN error('make-series makes at most ${MAX_VALUES} values') ELSE ${end} END`;
  const rows = sql`unnest(generate_series(${raw(start)}, ${raw(checked)}))`;
  const number = expr("long", rows, { nullable: false, isFixed: true });
  const filled = computed(rel, [{ name: "at", value: number }]);
  return { rel: filled.rel, at: columnExpr(the(filled.columns[0])) };
}

/** Arrays of defaults where there are no rows; undefined where nobody knows how long they are. */
function orDefaults(
  arrays: readonly Sql[],
  series: readonly Series[],
  { low, high, valueAt }: Axis,
): Sql[] | undefined {
  if (low === undefined || high === undefined) return undefined;
  const number = expr("long", ["i"], { nullable: false });
  const defaults = [...series.map(({ value, otherwise }) => alike(value, otherwise)[1]), valueAt(number)];
  return arrays.map((array, i) => {
    const values = sql`list_transform(generate_series(${raw(low)}, ${raw(high)}), lambda i: ${plain(the(defaults[i]))})`;
    return sql`coalesce(${raw(array)}, to_json(${raw(values)}))`;
  });
}

function axisOf(node: MakeSeries, { translator, scope, variables }: OperatorContext): Axis {
  const written = translator.scalar(unnamed(the(the(node.OnClause).Expression)), scope);
  const type = POSITIONS[written.type];
  if (type === undefined) throw translator.refuse(`make-series cannot go along a ${written.type}`, node.OnClause);
  const value = as(written, type);
  const { from, to, step, isInclusive } = boundsOf(node);
  const distance = as(translator.scalar(step, { variables }), type === "datetime" ? "timespan" : type);
  if (Number(distance.constant ?? 1) <= 0) throw translator.refuse("the step of make-series is not above zero", step);
  const [low, high] = [from, to].map((one) =>
    one === null ? undefined : as(translator.scalar(one, { variables }), type),
  );
  const axis = isInclusive ? within(value, distance, the(low), the(high)) : between(value, distance, low, high);
  const isThere = expr("bool", sql`${value} IS NOT NULL`, { nullable: false });
  return value.nullable ? { ...axis, conditions: [isThere, ...axis.conditions] } : axis;
}

type Bounds = {
  from: SyntaxExpression | null;
  to: SyntaxExpression | null;
  step: SyntaxExpression;
  isInclusive: boolean;
};

function boundsOf({ RangeClause: clause }: MakeSeries): Bounds {
  if (classOf(the(clause)) === "MakeSeriesInRangeClause") {
    const { Arguments } = clause as Kusto.Language.Syntax.MakeSeriesInRangeClause;
    const [from, to, step] = elementsOf<SyntaxExpression>(Arguments?.Expressions);
    return { from: the(from), to: the(to), step: the(step), isInclusive: true };
  }
  const { MakeSeriesFromClause, MakeSeriesToClause, MakeSeriesStepClause } =
    clause as Kusto.Language.Syntax.MakeSeriesFromToStepClause;
  return {
    from: MakeSeriesFromClause?.Expression ?? null,
    to: MakeSeriesToClause?.Expression ?? null,
    step: the(MakeSeriesStepClause?.Expression),
    isInclusive: false,
  };
}

/** What an axis may be of, and the type that it is counted in. */
const POSITIONS: Partial<Record<KqlType, "datetime" | "timespan" | "long" | "real">> = {
  datetime: "datetime",
  timespan: "timespan",
  int: "long",
  long: "long",
  real: "real",
  decimal: "real",
};

/** From a value, if there is one, up to but not including another. */
function between(value: Expr, distance: Expr, from: Expr | undefined, to: Expr | undefined): Axis {
  const scale = scaleOf(distance, value.type);
  const origin = from === undefined ? scale.zero : scale.position(from);
  const conditions = [
    ...(from === undefined ? [] : [expr("bool", sql`${value} >= ${from}`)]),
    ...(to === undefined ? [] : [expr("bool", sql`${value} < ${to}`)]),
  ];
  return {
    index: expr("long", scale.steps(sql`${scale.position(value)} - ${origin}`), { nullable: value.nullable }),
    conditions,
    ...(from !== undefined && { low: ["0"] }),
    ...(to !== undefined && { high: scale.stepsBelow(sql`${scale.position(to)} - ${origin}`) }),
    valueAt: (index) => scale.valueAt(origin, index),
  };
}

/** All multiples of the step from one value to another, if it is one. */
function within(value: Expr, distance: Expr, from: Expr, to: Expr): Axis {
  const scale = scaleOf(distance, value.type);
  const stepsTo = (one: Expr): Sql => sql`${scale.position(one)} - ${scale.zero}`;
  const index = expr("long", scale.steps(stepsTo(value)), { nullable: value.nullable });
  const low = sql`${scale.stepsBelow(stepsTo(from))} + 1`;
  const high = scale.steps(stepsTo(to));
  const isOn = expr("bool", sql`${index} BETWEEN ${low} AND ${high}`);
  return { index, conditions: [isOn], low, high, valueAt: (at) => scale.valueAt(scale.zero, at) };
}

/** Numbers for the values of a type, and how to count steps in them. */
type Scale = {
  position: (value: Expr) => Sql;
  /** Where multiples of the step begin. */
  zero: Sql;
  /** How many whole steps there are in a distance. */
  steps: (distance: Sql) => Sql;
  /** The greatest number of steps that is less than a distance. */
  stepsBelow: (distance: Sql) => Sql;
  valueAt: (origin: Sql, index: Expr) => Expr;
};

function scaleOf(distance: Expr, type: KqlType): Scale {
  if (type === "real") {
    return {
      position: (value) => value.sql,
      zero: ["0"],
      steps: (own) => sql`CAST(floor(${own} / ${distance}) AS BIGINT)`,
      stepsBelow: (own) => sql`CAST(ceil(${own} / ${distance}) AS BIGINT) - 1`,
      valueAt: (origin, index) => expr("real", sql`${origin} + ${index} * ${distance}`, { nullable: false }),
    };
  }
  const isTime = type === "datetime";
  const step = isTime ? sql`${distance} * 100` : distance.sql;
  return {
    position: (value) => (isTime ? sql`epoch_ns(${value})` : value.sql),
    zero: isTime ? sql`epoch_ns(kql_bin_datetime(make_timestamp_ns(0), ${distance}))` : ["0"],
    steps: (own) => sql`kql_whole_steps(${raw(own)}, ${raw(step)})`,
    stepsBelow: (own) => sql`kql_whole_steps(${own} - 1, ${raw(step)})`,
    valueAt: (origin, index) => {
      const at = sql`CAST(${origin} + ${index} * ${step} AS BIGINT)`;
      return expr(type, isTime ? sql`make_timestamp_ns(${raw(at)})` : at, { nullable: false });
    },
  };
}
