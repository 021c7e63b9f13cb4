/** Macros over datetimes (TIMESTAMP_NS) and timespans (ticks of 100 ns). */
export const TIME_MACROS: Readonly<Record<string, string>> = {
  kql_datetime_plus: "(moment, ticks) AS make_timestamp_ns(epoch_ns(moment) + ticks * 100)",
  kql_ticks_between: "(a, b) AS (epoch_ns(b) - epoch_ns(a)) // 100",
  kql_bin_long: "(value, step) AS value - ((value % nullif(step, 0)) + step) % step",
  kql_bin_datetime: "(moment, step) AS make_timestamp_ns(kql_bin_long(epoch_ns(moment), step * 100))",
  kql_datetime_text:
    "(moment) AS strftime(moment, '%Y-%m-%dT%H:%M:%S.') || lpad(CAST((epoch_ns(moment) % 1000000000 + 1000000000) % 1000000000 // 100 AS VARCHAR), 7, '0') || 'Z'",
  kql_timespan_text: `(ticks) AS
    CASE WHEN ticks < 0 THEN '-' ELSE '' END ||
    CASE WHEN abs(ticks // 864000000000) > 0 THEN CAST(abs(ticks // 864000000000) AS VARCHAR) || '.' ELSE '' END ||
    lpad(CAST(abs(ticks % 864000000000) // 36000000000 AS VARCHAR), 2, '0') || ':' ||
    lpad(CAST(abs(ticks % 36000000000) // 600000000 AS VARCHAR), 2, '0') || ':' ||
    lpad(CAST(abs(ticks % 600000000) // 10000000 AS VARCHAR), 2, '0') ||
    CASE WHEN ticks % 10000000 = 0 THEN ''
      ELSE '.' || lpad(CAST(abs(ticks % 10000000) AS VARCHAR), 7, '0') END`,
};
