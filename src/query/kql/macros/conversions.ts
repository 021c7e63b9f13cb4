/** Macros that convert strings; what is none of the type is NULL. */
export const CONVERSION_MACROS: Readonly<Record<string, string>> = {
  kql_long_of: `(t) AS list_transform([trim(t)], lambda own: CASE
    WHEN regexp_full_match(own, '[+-]?[0-9]+') THEN TRY_CAST(own AS BIGINT)
    WHEN regexp_full_match(own, '0[xX][0-9a-fA-F]{1,16}') THEN TRY_CAST(own AS BIGINT)
    WHEN regexp_full_match(own, '[+-]?[0-9]+\\.[0-9]*') THEN TRY_CAST(regexp_extract(own, '^[^.]*') AS BIGINT)
    WHEN kql_is_real(own) THEN TRY_CAST(trunc(TRY_CAST(own AS DOUBLE)) AS BIGINT) END)[1]`,
  kql_is_real: "(t) AS regexp_full_match(t, '[+-]?(?:[0-9]+\\.?[0-9]*|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?')",
  kql_real_of: `(t) AS list_transform([trim(t)], lambda own: CASE WHEN kql_is_real(own) THEN TRY_CAST(own AS DOUBLE)
    ELSE CASE lower(own) WHEN 'nan' THEN CAST('nan' AS DOUBLE) WHEN 'inf' THEN CAST('inf' AS DOUBLE)
      WHEN '+inf' THEN CAST('inf' AS DOUBLE) WHEN '-inf' THEN CAST('-inf' AS DOUBLE) END END)[1]`,
  kql_decimal_of:
    "(t) AS list_transform([trim(t)], lambda own: CASE WHEN kql_is_real(own) THEN TRY_CAST(own AS DECIMAL(38, 17)) END)[1]",
  kql_bool_of: `(t) AS list_transform([lower(trim(t))], lambda own: CASE own WHEN 'true' THEN true WHEN 'false' THEN false
    ELSE kql_long_of(own) <> 0 END)[1]`,
  kql_datetime_of_ticks:
    "(ticks) AS TRY(make_timestamp_ns(CAST((CAST(ticks AS HUGEINT) - 621355968000000000) * 100 AS BIGINT)))",
  kql_json_at: `(t, pointer) AS CASE WHEN json_valid(t) THEN
    kql_dynamic_text(CASE WHEN pointer = '' THEN CAST(t AS JSON) ELSE json_extract(CAST(t AS JSON), pointer) END) END`,
};
