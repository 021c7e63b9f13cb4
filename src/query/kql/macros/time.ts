/**
 * Macros over datetimes (TIMESTAMP_NS) and timespans (ticks of 100 ns). What leaves the range of a datetime is null.
 *
 * A macro is text, so what is mentioned twice, or read by a lambda, is first put into a struct: `list_transform([{…}],
 * lambda p: …)[1]` evaluates it once, and names inside the lambda are then never the caller's.
 */
export const TIME_MACROS: Readonly<Record<string, string>> = {
  kql_datetime_at: `(ns) AS list_transform([ns], lambda n: CASE
    WHEN n >= -9223286400000000000 AND n <= 9223372036854775806 THEN make_timestamp_ns(CAST(n AS BIGINT)) END)[1]`,
  kql_datetime_plus:
    "(moment, ticks) AS kql_datetime_at(CAST(epoch_ns(moment) AS HUGEINT) + CAST(ticks AS HUGEINT) * 100)",
  kql_ticks_between: "(a, b) AS CAST((CAST(epoch_ns(b) AS HUGEINT) - epoch_ns(a)) / 100 AS BIGINT)",
  // Microseconds, rounded down, also before 1970: a cast would round towards it.
  kql_micros: `(moment) AS make_timestamp(((epoch_ns(moment) >> 3) + 1152921504606847000) // 125 - 9223372036854776)`,
  kql_date: "(moment) AS CAST(kql_micros(moment) AS DATE)",
  kql_days: "(moment) AS kql_date(moment) - DATE '1970-01-01'",
  kql_midnight: "(days) AS kql_datetime_at(CAST(days AS HUGEINT) * 86400000000000)",
  kql_second_ns: "(moment) AS (epoch_ns(moment) % 1000000000 + 1000000000) % 1000000000",
  kql_floor_divide: `(value, width) AS list_transform([{'v': value, 'w': width}],
    lambda p: p.v // p.w - CASE WHEN p.v % p.w < 0 THEN 1 ELSE 0 END)[1]`,

  kql_bin_datetime: `(moment, step) AS list_transform(
    [{'ns': CAST(epoch_ns(moment) AS HUGEINT) + 62135596800000000000, 'step': CAST(step AS HUGEINT) * 100}],
    lambda p: CASE WHEN p.step > 0 THEN kql_datetime_at(p.ns - p.ns % p.step - 62135596800000000000) END)[1]`,
  kql_bin_datetime_at: `(moment, step, origin) AS list_transform(
    [{'o': epoch_ns(origin), 'ns': CAST(epoch_ns(moment) AS HUGEINT) - epoch_ns(origin), 'step': CAST(step AS HUGEINT) * 100}],
    lambda p: CASE WHEN p.step > 0 THEN kql_datetime_at(p.o + p.ns - (p.ns % p.step + p.step) % p.step) END)[1]`,
  // By a constant, in 64 bits: see floorArguments() of the SQL path.
  kql_floor_datetime: `(moment, shift, addend, divisor, periods, width, origin) AS make_timestamp_ns(
    (((epoch_ns(moment) >> shift) + addend) // divisor - periods) * width + origin)`,

  kql_start_of_day: "(moment, n) AS kql_midnight(kql_days(moment) + CAST(n AS HUGEINT))",
  // 1969-12-28 was a Sunday; 20,000 weeks before it there are no datetimes.
  kql_start_of_week:
    "(moment, n) AS kql_midnight(((kql_days(moment) + 140004) // 7 - 20000 + CAST(n AS HUGEINT)) * 7 - 4)",
  kql_start_of_month: `(moment, n) AS kql_midnight(TRY(
    CAST(system.main.date_trunc('month', kql_date(moment)) + to_months(CAST(n AS INTEGER)) AS DATE)) - DATE '1970-01-01')`,
  kql_start_of_year: `(moment, n) AS kql_midnight(TRY(
    CAST(system.main.date_trunc('year', kql_date(moment)) + to_years(CAST(n AS INTEGER)) AS DATE)) - DATE '1970-01-01')`,
  kql_add_months: `(moment, n) AS list_transform([{'d': kql_date(moment), 'ns': epoch_ns(moment), 'n': n}],
    lambda p: kql_datetime_at(CAST(TRY(CAST(p.d + to_months(CAST(p.n AS INTEGER)) AS DATE)) - p.d AS HUGEINT)
      * 86400000000000 + p.ns))[1]`,
  kql_add_ns: "(moment, n, ns) AS kql_datetime_at(CAST(epoch_ns(moment) AS HUGEINT) + CAST(n AS HUGEINT) * ns)",

  kql_clock_ticks: `(h, m, s) AS list_transform([{'h': CAST(h AS BIGINT), 'm': m, 's': s}], lambda p: CASE
    WHEN p.h BETWEEN 0 AND 23 AND p.m BETWEEN 0 AND 59 AND p.s >= 0 AND p.s < 60
    THEN (p.h * 60 + p.m) * 600000000 + CAST(round(p.s * 10000000) AS BIGINT) END)[1]`,
  kql_make_datetime: `(y, mo, d, h, m, s) AS kql_datetime_at(
    CAST(TRY(make_date(y, mo, d)) - DATE '1970-01-01' AS HUGEINT) * 86400000000000 + kql_clock_ticks(h, m, s) * 100)`,
  kql_make_timespan: "(d, h, m, s) AS TRY_CAST(CAST(d AS HUGEINT) * 864000000000 + kql_clock_ticks(h, m, s) AS BIGINT)",

  kql_session: `(times, longest) AS list_transform([{'t': times, 'd': longest}], lambda p: CAST(list_reduce(p.t,
    lambda first, time: CASE WHEN time >= first + p.d THEN time ELSE first END) AS BIGINT))[1]`,
  kql_zone: `(zone) AS list_transform([{'zone': zone, 'known': (SELECT list(name) FROM pg_timezone_names())}],
    lambda p: CASE WHEN list_contains(p.known, p.zone) THEN p.zone END)[1]`,
  kql_zones: "() AS (SELECT to_json(list(name ORDER BY name)) FROM pg_timezone_names())",
  kql_to_local: `(moment, zone) AS list_transform(
    [{'ns': kql_second_ns(moment), 'wall': system.main.timezone(zone, CAST(kql_micros(moment) AS TIMESTAMPTZ))}],
    lambda p: kql_datetime_at(CAST(epoch_us(p.wall) AS HUGEINT) * 1000 + p.ns % 1000))[1]`,
  // A time that the clocks skip is read with the offset that holds after it.
  kql_to_utc: `(moment, zone) AS list_transform(
    [{'ns': kql_second_ns(moment), 'wall': kql_micros(moment), 'utc': system.main.timezone(zone, kql_micros(moment)),
      'back': system.main.timezone(zone, system.main.timezone(zone, kql_micros(moment)))}],
    lambda p: kql_datetime_at((CAST(epoch_us(p.utc) AS HUGEINT) - epoch_us(p.back) + epoch_us(p.wall)) * 1000
      + p.ns % 1000))[1]`,

  // ISO 8601, also without seconds and with a zone that is named.
  kql_iso_datetime: `(t) AS TRY_CAST(regexp_replace(regexp_extract(t,
    '^\\s*(\\d{4}-\\d{1,2}-\\d{1,2}([T ]\\d{1,2}:\\d{2}(:\\d{2}(\\.\\d{1,9})?)?)?(Z|[+-]\\d{2}:\\d{2})?)(\\s+(GMT|UTC))?\\s*$', 1),
    '([T ]\\d{1,2}:\\d{2})(Z|[+-]\\d{2}:\\d{2})?$', '\\1:00\\2') AS TIMESTAMP_NS)`,
  // RFC 822 and RFC 850, and month, day and year.
  kql_rfc_datetime: `(t) AS TRY(CAST(system.main.try_strptime(
    regexp_replace(regexp_replace(trim(t), '^[A-Za-z]+,\\s*', ''), '\\s+(GMT|UTC|Z)$', ''),
    ['%d %b %y %H:%M:%S', '%d %b %y %H:%M', '%d-%b-%y %H:%M:%S', '%d-%b-%y %H:%M', '%d %b %Y %H:%M:%S',
     '%d %b %Y %H:%M', '%m-%d-%Y', '%m-%d-%Y %H:%M:%S', '%m-%d-%Y %H:%M', '%m/%d/%Y', '%m/%d/%Y %H:%M:%S',
     '%m/%d/%Y %H:%M']) AS TIMESTAMP_NS))`,
  kql_datetime_of: `(t) AS list_transform([coalesce(kql_iso_datetime(t), kql_rfc_datetime(t))],
    lambda found: CASE WHEN found >= TIMESTAMP_NS '1677-09-22' THEN found END)[1]`,
  kql_timespan_of: `(t) AS list_transform([regexp_extract(trim(t),
    '^(-?)(?:(\\d{1,7})\\.)?(\\d{1,2}):(\\d{1,2})(?::(\\d{1,2}(?:\\.\\d{1,7})?))?$', ['sign', 'd', 'h', 'm', 's'])],
    lambda p: CASE WHEN p.h <> '' THEN CASE p.sign WHEN '-' THEN -1 ELSE 1 END * kql_make_timespan(
      coalesce(TRY_CAST(p.d AS BIGINT), 0), CAST(p.h AS BIGINT), CAST(p.m AS BIGINT),
      coalesce(TRY_CAST(p.s AS DOUBLE), 0)) END)[1]`,

  kql_datetime_text: `(moment) AS list_transform([{'us': kql_micros(moment), 'ns': kql_second_ns(moment)}],
    lambda p: strftime(p.us, '%Y-%m-%dT%H:%M:%S.%f') || CAST(p.ns // 100 % 10 AS VARCHAR) || 'Z')[1]`,
  kql_timespan_text: `(ticks) AS list_transform([CAST(ticks AS HUGEINT)], lambda n:
    CASE WHEN n < 0 THEN '-' ELSE '' END ||
    CASE WHEN abs(n) >= 864000000000 THEN CAST(abs(n) // 864000000000 AS VARCHAR) || '.' ELSE '' END ||
    lpad(CAST(abs(n) % 864000000000 // 36000000000 AS VARCHAR), 2, '0') || ':' ||
    lpad(CAST(abs(n) % 36000000000 // 600000000 AS VARCHAR), 2, '0') || ':' ||
    lpad(CAST(abs(n) % 600000000 // 10000000 AS VARCHAR), 2, '0') ||
    CASE WHEN n % 10000000 = 0 THEN '' ELSE '.' || lpad(CAST(abs(n) % 10000000 AS VARCHAR), 7, '0') END)[1]`,
};
