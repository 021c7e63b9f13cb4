import type { StatsTest, StatValue, ValueRange } from "../../catalog/stats-test.ts";
import { foldName } from "../../core/names.ts";
import { textsAfter } from "../../format/columns/text-bounds.ts";
import type { ColumnSpec } from "../../format/types.ts";
import type { Comparison, Constant, Predicate } from "../resolve/predicates.ts";

/**
 * What statistics of a table's columns can say about predicates: comparisons become ranges of values of the column's
 * type, as DuckDB would compare. Where it would cast the column, in a way that loses order or exactness, only that
 * NULL satisfies no comparison is left; a column that the table lacks says nothing, for the name may be another thing.
 */
export function statsTests(predicates: readonly Predicate[], columns: readonly ColumnSpec[]): StatsTest[] {
  const byName = new Map(columns.map((column) => [foldName(column.name), column]));
  const testOf = (predicate: Predicate): StatsTest | undefined => {
    if (predicate.kind === "and" || predicate.kind === "or") {
      const of = predicate.of.flatMap((part) => testOf(part) ?? []);
      if (predicate.kind === "or") return of.length < predicate.of.length ? undefined : { kind: "any", of };
      return of.length === 0 ? undefined : { kind: "all", of };
    }
    const column = byName.get(foldName(predicate.column));
    return column === undefined ? undefined : columnTest(predicate, column);
  };
  return predicates.flatMap((predicate) => testOf(predicate) ?? []);
}

type ColumnPredicate = Exclude<Predicate, { kind: "and" | "or" }>;

function columnTest(predicate: ColumnPredicate, { name: column, type }: ColumnSpec): StatsTest {
  switch (predicate.kind) {
    case "null":
    case "not_null":
      return { kind: predicate.kind, column };
    case "prefix":
      return type.kind === "string" ? within(column, [prefixRange(predicate.text)]) : { kind: "not_null", column };
    case "contains": {
      const isText = type.kind === "string" || type.kind === "dynamic";
      return isText ? { kind: "contains", column, needles: predicate.texts } : { kind: "not_null", column };
    }
    case "compare":
      return within(column, rangesOf(type, predicate.operator, predicate.value));
    case "between": {
      const lower = within(column, rangesOf(type, ">=", predicate.lower));
      return { kind: "all", of: [lower, within(column, rangesOf(type, "<=", predicate.upper))] };
    }
    case "in": {
      const all = predicate.values.map((value) => rangesOf(type, "=", value));
      return within(column, all.includes(undefined) ? undefined : all.flatMap((ranges) => ranges ?? []));
    }
  }
}

function within(column: string, ranges: readonly ValueRange[] | undefined): StatsTest {
  return ranges === undefined ? { kind: "not_null", column } : { kind: "within", column, ranges: ascending(ranges) };
}

/** The values of a column of that type of which the comparison may be true; undefined when they cannot be told. */
function rangesOf(type: ColumnSpec["type"], operator: Comparison, value: Constant): ValueRange[] | undefined {
  switch (type.kind) {
    case "int":
    case "long":
      return integerRanges(operator, value);
    case "real":
      return realRanges(operator, value);
    case "string":
      return value.kind === "text" ? textRanges(operator, value.value) : undefined;
    case "bool":
      return value.kind === "bool" ? exactRanges(operator, value.value ? 1n : 0n) : undefined;
    case "timestamp": {
      const ns = value.kind === "instant" || (value.kind === "text" && value.isLiteral) ? value.ns : undefined;
      return ns === undefined ? undefined : exactRanges(operator, ns);
    }
    case "dynamic":
    case "vector":
      return undefined;
  }
}

function exactRanges(operator: Comparison, value: bigint): ValueRange[] {
  switch (operator) {
    case "=":
      return [{ min: value, max: value }];
    case "<>":
      return [{ max: value - 1n }, { min: value + 1n }];
    case "<":
      return [{ max: value - 1n }];
    case "<=":
      return [{ max: value }];
    case ">":
      return [{ min: value + 1n }];
    case ">=":
      return [{ min: value }];
  }
}

/** Text that DuckDB reads as an integer without rounding. */
const INTEGER_TEXT = /^[+-]?\d{1,18}$/;

function integerRanges(operator: Comparison, value: Constant): ValueRange[] | undefined {
  switch (value.kind) {
    case "integer":
      return exactRanges(operator, value.value);
    case "decimal":
      return fractionRanges(operator, value.digits, 10n ** BigInt(value.scale));
    case "double":
      return integersByDouble(operator, value.value);
    case "text":
      return value.isLiteral && INTEGER_TEXT.test(value.value) ? exactRanges(operator, BigInt(value.value)) : undefined;
    case "float":
    case "bool":
    case "instant":
      return undefined;
  }
}

/** Integers compared with a fraction. */
function fractionRanges(operator: Comparison, numerator: bigint, denominator: bigint): ValueRange[] | undefined {
  const truncated = numerator / denominator;
  if (truncated * denominator === numerator) return exactRanges(operator, truncated);
  const floor = numerator < 0n ? truncated - 1n : truncated;
  switch (operator) {
    case "=":
      return [];
    case "<>":
      return undefined;
    case "<":
    case "<=":
      return [{ max: floor }];
    case ">":
    case ">=":
      return [{ min: floor + 1n }];
  }
}

const EXACT = 2 ** 53;
/** Past every 64-bit integer, also when cast to a double. */
const BEYOND = 2 ** 64;

/** Integers cast to doubles and then compared: past 2^53 several become the same double. */
function integersByDouble(operator: Comparison, value: number): ValueRange[] | undefined {
  if (Number.isNaN(value) || value >= BEYOND) return operator.startsWith("<") ? undefined : [];
  if (value <= -BEYOND) return operator === "<>" || operator.startsWith(">") ? undefined : [];
  if (Math.abs(value) >= EXACT) return around(operator, BigInt(nextDown(value)), BigInt(nextUp(value)));
  if (Number.isInteger(value)) return exactRanges(operator, BigInt(value));
  return fractionRanges(operator, BigInt(Math.floor(value)) * 2n + 1n, 2n);
}

/** As a comparison with something between the two, which are compared with themselves too. */
function around<T extends StatValue>(operator: Comparison, below: T, above: T): ValueRange[] | undefined {
  switch (operator) {
    case "=":
      return [{ min: below, max: above }];
    case "<>":
      return undefined;
    case "<":
    case "<=":
      return [{ max: above }];
    case ">":
    case ">=":
      return [{ min: below }];
  }
}

function realRanges(operator: Comparison, value: Constant): ValueRange[] | undefined {
  switch (value.kind) {
    case "double":
    case "float":
      return doubleRanges(operator, value.value);
    case "integer": {
      const double = Number(value.value);
      return Math.abs(double) < EXACT ? doubleRanges(operator, double) : nearDouble(operator, double);
    }
    case "decimal":
      return nearDouble(operator, Number(`${value.digits}e-${value.scale}`));
    case "text":
    case "bool":
    case "instant":
      return undefined;
  }
}

/** DuckDB's cast of long numbers to doubles may miss the nearest by a little. */
function nearDouble(operator: Comparison, value: number): ValueRange[] | undefined {
  return around(operator, nextDown(nextDown(value)), nextUp(nextUp(value)));
}

/** NaN is equal to itself and greater than everything else. */
function doubleRanges(operator: Comparison, value: number): ValueRange[] | undefined {
  switch (operator) {
    case "=":
      return [{ min: value, max: value }];
    case "<>":
      return undefined;
    case "<":
      return value === -Infinity ? [] : [{ max: nextDown(value) }];
    case "<=":
      return [{ max: value }];
    case ">":
      return Number.isNaN(value) ? [] : [{ min: nextUp(value) }];
    case ">=":
      return [{ min: value }];
  }
}

function textRanges(operator: Comparison, value: string): ValueRange[] | undefined {
  switch (operator) {
    case "=":
      return [{ min: value, max: value }];
    case "<>":
      return undefined;
    case "<":
      return [{ max: value, maxIsOpen: true }];
    case "<=":
      return [{ max: value }];
    case ">":
      return [{ min: value, minIsOpen: true }];
    case ">=":
      return [{ min: value }];
  }
}

/** From the prefix to the first text after all that begin with it, where there is one. */
function prefixRange(prefix: string): ValueRange {
  const [after] = textsAfter(prefix);
  return after === undefined ? { min: prefix } : { min: prefix, max: after, maxIsOpen: true };
}

/** In ascending order, those that overlap as one. Open ends only come alone. */
function ascending(ranges: readonly ValueRange[]): ValueRange[] {
  if (ranges.length < 2) return [...ranges];
  const merged: ValueRange[] = [];
  for (const range of [...ranges].sort((a, b) => compareEnds(a.min, b.min))) {
    const last = merged.at(-1);
    if (last?.max !== undefined && range.min !== undefined && compareEnds(last.max, range.min) < 0) merged.push(range);
    else if (last === undefined) merged.push({ ...range });
    else if (range.max === undefined) delete last.max;
    else if (last.max !== undefined && compareEnds(range.max, last.max) > 0) last.max = range.max;
  }
  return merged;
}

/** Of lower ends, absent is the least; values are of one type, and NaN is the greatest. */
function compareEnds(a: StatValue | undefined, b: StatValue | undefined): number {
  if (a === undefined || b === undefined) return a === b ? 0 : a === undefined ? -1 : 1;
  if (typeof a === "string" && typeof b === "string") return Buffer.compare(Buffer.from(a), Buffer.from(b));
  if (Number.isNaN(a) || Number.isNaN(b)) return Number(Number.isNaN(a)) - Number(Number.isNaN(b));
  return a === b ? 0 : a < b ? -1 : 1;
}

/** Neighbours of doubles, in DuckDB's order: NaN is equal to itself and comes after infinity. */
const double = new Float64Array(1);
const bits = new BigInt64Array(double.buffer);

/** The least double greater than the value; NaN for infinity and NaN. */
function nextUp(value: number): number {
  if (Number.isNaN(value) || value === Infinity) return NaN;
  if (value === 0) return Number.MIN_VALUE;
  double[0] = value;
  bits[0] = (bits[0] ?? 0n) + (value > 0 ? 1n : -1n);
  return double[0];
}

/** The greatest double less than the value; -Infinity for itself. */
function nextDown(value: number): number {
  if (Number.isNaN(value)) return Infinity;
  return value === -Infinity ? -Infinity : -nextUp(-value);
}
