/** Macros over numbers: whole ones wrap around in 64 bits, as in the language. */
export const NUMBER_MACROS: Readonly<Record<string, string>> = {
  kql_wrap: `(value) AS CAST(CASE WHEN value BETWEEN -9223372036854775808 AND 9223372036854775807 THEN value
    ELSE ((value + 9223372036854775808) % 18446744073709551616 + 18446744073709551616) % 18446744073709551616
      - 9223372036854775808 END AS BIGINT)`,
  kql_add: "(a, b) AS kql_wrap(CAST(a AS HUGEINT) + b)",
  kql_subtract: "(a, b) AS kql_wrap(CAST(a AS HUGEINT) - b)",
  kql_multiply: "(a, b) AS kql_wrap(CAST(a AS HUGEINT) * b)",
  kql_divide: `(a, b) AS CASE WHEN b = 0 AND NOT isnan(a) THEN
    CASE WHEN a = 0 THEN CAST('nan' AS DOUBLE) WHEN a > 0 THEN CAST('inf' AS DOUBLE) ELSE CAST('-inf' AS DOUBLE) END ELSE a / b END`,
  kql_modulo: "(a, b) AS (a % nullif(b, 0) + abs(b)) % abs(nullif(b, 0))",
  kql_range_long: "(low, high, step) AS generate_series(low, high, step)",
  kql_range_timespan: "(low, high, step) AS generate_series(low, high, step)",
  kql_range_real: `(low, high, step) AS list_transform(generate_series(0, CAST(floor((high - low) / step) AS BIGINT)),
    lambda i: low + i * step)`,
  kql_range_datetime: `(low, high, step) AS list_transform(generate_series(epoch_ns(low), epoch_ns(high), step * 100),
    lambda ns: make_timestamp_ns(ns))`,
  kql_steps: "(distance, step) AS (distance - (distance % step + step) % step) // step",
  kql_bin_real: "(value, step) AS floor(value / nullif(step, 0)) * step",
};
