import { LIMITS } from "../core/limits.ts";
import { lowerBound, upperBound } from "../format/columns/text-bounds.ts";
import type { ColumnSpec, ColumnStats } from "../format/types.ts";
import type { FixtureRow, FixtureValue } from "../io/duckdb/tlm.test-kit.ts";

/** Statistics of a column of fixture rows, independently of the sealer; a column with a NaN has no maximum. */
export function fixtureStats({ name, type }: ColumnSpec, rows: readonly FixtureRow[]): ColumnStats {
  const values = rows.map((row) => row[name] ?? null).filter((value) => value !== null);
  const stats: ColumnStats = { name, nullCount: rows.length - values.length };
  if (values.length === 0 || type.kind === "dynamic" || type.kind === "vector") return stats;
  if (type.kind === "string") return { ...stats, ...textBounds(values) };
  const ordered = values.filter((value) => !Number.isNaN(value)).sort(compareValues);
  const [min, max] = [ordered[0], ordered.at(-1)];
  if (min !== undefined && Math.abs(Number(min)) !== Infinity) stats.min = String(min);
  const isBounded = ordered.length === values.length && Math.abs(Number(max)) !== Infinity;
  if (max !== undefined && isBounded) stats.max = String(max);
  return stats;
}

function textBounds(values: readonly FixtureValue[]): { min?: string; max?: string } {
  const utf8 = values.map((value) => Buffer.from(String(value))).sort((a, b) => Buffer.compare(a, b));
  const [least, greatest] = [utf8[0], utf8.at(-1)];
  if (least === undefined || greatest === undefined) return {};
  const max = upperBound(greatest, LIMITS.stringStatBytes);
  return { min: lowerBound(least, LIMITS.stringStatBytes), ...(max === undefined ? {} : { max }) };
}

function compareValues(a: FixtureValue, b: FixtureValue): number {
  if (a === b || a === null || b === null) return 0;
  return a < b ? -1 : 1;
}
