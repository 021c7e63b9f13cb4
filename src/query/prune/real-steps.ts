/** Neighbours of doubles, in DuckDB's order: NaN is equal to itself and comes after infinity. */
const double = new Float64Array(1);
const bits = new BigInt64Array(double.buffer);

/** The least double greater than the value; NaN for infinity and NaN. */
export function nextUp(value: number): number {
  if (Number.isNaN(value) || value === Infinity) return NaN;
  if (value === 0) return Number.MIN_VALUE;
  double[0] = value;
  bits[0] = (bits[0] ?? 0n) + (value > 0 ? 1n : -1n);
  return double[0];
}

/** The greatest double less than the value; -Infinity for itself. */
export function nextDown(value: number): number {
  if (Number.isNaN(value)) return Infinity;
  return value === -Infinity ? -Infinity : -nextUp(-value);
}
