/** The range of the integers that a database stores. */
export const INT64_MIN = -(2n ** 63n);
export const INT64_MAX = 2n ** 63n - 1n;

/** The nearest integer that a database stores. */
export function clampToInt64(value: bigint): bigint {
  if (value < INT64_MIN) return INT64_MIN;
  return value > INT64_MAX ? INT64_MAX : value;
}
