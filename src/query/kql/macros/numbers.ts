/** Macros over numbers: whole ones wrap around in 64 bits, as in the language. */
export const NUMBER_MACROS: Readonly<Record<string, string>> = {
  // What is mentioned once does not multiply where operators are nested.
  kql_wrap: "(big) AS CAST(((big + 9223372036854775808) & 18446744073709551615) - 9223372036854775808 AS BIGINT)",
  kql_add: "(a, b) AS kql_wrap(CAST(a AS HUGEINT) + b)",
  kql_subtract: "(a, b) AS kql_wrap(CAST(a AS HUGEINT) - b)",
  kql_multiply: "(a, b) AS kql_wrap(CAST(a AS HUGEINT) * b)",
  // The same for columns and constants, ten times as fast.
  kql_plain_add: "(a, b) AS coalesce(TRY(a + b), kql_add(a, b))",
  kql_plain_subtract: "(a, b) AS coalesce(TRY(a - b), kql_subtract(a, b))",
  kql_plain_multiply: "(a, b) AS coalesce(TRY(a * b), kql_multiply(a, b))",
  kql_divide: `(a, b) AS list_transform([{'a': a, 'b': nullif(b, 0)}],
    lambda p: CASE p.b WHEN -1 THEN kql_subtract(0, p.a) ELSE p.a // p.b END)[1]`,
  // Never negative.
  kql_modulo: `(a, b) AS list_transform([{'a': a, 'b': nullif(b, 0)}], lambda p: CASE
    WHEN p.b = -1 THEN 0 WHEN p.a % p.b >= 0 THEN p.a % p.b
    WHEN p.b < 0 THEN p.a % p.b - p.b ELSE p.a % p.b + p.b END)[1]`,
  kql_modulo_real: `(a, b) AS list_transform([{'rest': a % b, 'b': b}],
    lambda p: CASE WHEN p.rest < 0 THEN p.rest + abs(p.b) ELSE p.rest END)[1]`,
  // Decimals have 17 digits after the point; the exact product has 34, and little room before it.
  kql_multiply_decimal: `(a, b) AS list_transform([{'a': a, 'b': b}], lambda p: coalesce(
    TRY(CAST(p.a * p.b AS DECIMAL(38, 17))), CAST(CAST(p.a AS DECIMAL(38, 8)) * CAST(p.b AS DECIMAL(38, 9)) AS DECIMAL(38, 17))))[1]`,
  // The least number has no positive one: it stays itself.
  kql_negate: "(a) AS coalesce(TRY(-a), a)",
  kql_abs: "(a) AS coalesce(TRY(abs(a)), a)",

  kql_bin_long: `(value, step) AS list_transform([{'v': value, 'step': step}], lambda p: CASE WHEN p.step > 0
    THEN kql_plain_subtract(p.v, CASE WHEN p.v % p.step < 0 THEN p.v % p.step + p.step ELSE p.v % p.step END) END)[1]`,
  kql_bin_real: `(value, step) AS list_transform([{'v': value, 'step': step}],
    lambda p: CASE WHEN p.step > 0 THEN floor(p.v / p.step) * p.step END)[1]`,
  kql_bin_decimal: `(value, step) AS list_transform([{'v': value, 'step': step}], lambda p: CASE WHEN p.step > 0
    THEN p.v - CASE WHEN p.v % p.step < 0 THEN p.v % p.step + p.step ELSE p.v % p.step END END)[1]`,

  // DuckDB refuses what is not a number, or infinite.
  kql_or_nan: "(value, x) AS coalesce(TRY(value), CASE WHEN x IS NOT NULL THEN CAST('nan' AS DOUBLE) END)",
  kql_log: "(value, x) AS coalesce(TRY(value), CASE WHEN x = 0 THEN CAST('-inf' AS DOUBLE) END)",
  kql_cot: "(x) AS coalesce(TRY(cot(x)), CASE WHEN x = 0 THEN CAST('inf' AS DOUBLE) END)",
  kql_shift_left: `(value, n) AS list_transform([{'v': CAST(value AS HUGEINT), 'n': n}],
    lambda p: CASE WHEN p.n >= 0 THEN kql_wrap(p.v * (CAST(1 AS HUGEINT) << CAST(p.n % 64 AS INTEGER))) END)[1]`,
  kql_shift_right: `(value, n) AS list_transform([{'v': value, 'n': n}],
    lambda p: CASE WHEN p.n >= 0 THEN p.v >> (p.n % 64) END)[1]`,
  kql_pad_hex: "(t, n) AS lpad(t, CAST(greatest(length(t), least(n, 16)) AS INTEGER), '0')",
};
