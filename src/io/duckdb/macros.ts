/**
 * Time, as queries see it. A `timestamp` column is a TIMESTAMP_NS and means an instant in UTC. Plain DuckDB refuses to
 * compare one with `now()` (a TIMESTAMP WITH TIME ZONE), and drops its nanoseconds to microseconds in `date_trunc` and
 * `time_bucket`. These macros take the place of the functions of the same name, in every query: DuckDB looks for a
 * macro in our schema before it looks among its own functions, and picks the overload by type. The ones without types
 * pass everything else through.
 *
 * - Whatever yields a moment with a zone yields a TIMESTAMP_NS: `now()`, `current_timestamp`, `to_timestamp`, `ago`.
 * - `AT TIME ZONE` on a `timestamp` gives the wall clock of that zone (a TIMESTAMP, which has no zone); on a TIMESTAMP
 *   it reads a wall clock of that zone and gives the moment in UTC.
 *
 * A macro does not see the type of an argument that holds an aggregate or an alias of the same SELECT; it then takes
 * the overload with types. So only functions whose argument is a moment anyway can be done like this: `+` and `-`, for
 * one, cannot (`count(*) - count(x)`), nor can casts; `rewrite.ts` sees to those.
 *
 * A macro is text: an argument that it mentions twice is there twice, and so on at every level of `date_trunc(…, at -
 * INTERVAL …)`. So each mentions the moment once, if at all possible.
 */
export const TIME_MACROS: readonly string[] = [
  // What was taken for a moment by its name alone has another type, and does not bind.
  `engine_instant(t) AS coalesce(t, CAST(NULL AS TIMESTAMP_NS))`,
  // Rounds down, also before 1970 (the cast rounds towards 1970, which could cross into the next hour or day): a shift
  // rounds down, and what is added makes room for the division to do so too. 125 × 9223372036854776 is past 2^60.
  `engine_micros(t) AS make_timestamp(
     ((epoch_ns(engine_instant(t)) >> 3) + 1152921504606847000) // 125 - 9223372036854776)`,
  // The moment of microseconds as a file has them: see `stored-times.ts`.
  `engine_stored(us) AS make_timestamp_ns(epoch_ns(us))`,
  // See `fixed-width.ts`.
  `engine_floor(t, shift, addend, divisor, periods, width, origin) AS make_timestamp_ns(
     (((epoch_ns(engine_instant(t)) >> shift) + addend) // divisor - periods) * width + origin)`,
  `engine_shift(t, shifted) AS make_timestamp_ns(epoch_ns(shifted) + ((epoch_ns(t) % 1000) + 1000) % 1000)`,
  // RFC 3339. DuckDB cannot write the first hours of what nanoseconds reach (1677-09-21), and takes its second and its
  // last nanosecond for infinities.
  `engine_rfc3339(t) AS CASE
     WHEN t >= TIMESTAMP_NS '1677-09-22' AND isfinite(t) THEN replace(CAST(t AS VARCHAR), ' ', 'T') || 'Z'
     WHEN isfinite(t) THEN rtrim(rtrim(strftime(engine_micros(t), '%Y-%m-%dT%H:%M:%S.')
       || right(CAST(epoch_ns(t) + 9223372037000000000 AS VARCHAR), 9), '0'), '.') || 'Z'
     WHEN t > TIMESTAMP_NS '1970-01-01' THEN '2262-04-11T23:47:16.854775807Z'
     WHEN t < TIMESTAMP_NS '1970-01-01' THEN '1677-09-21T00:12:43.145224193Z' END`,
  ...["now", "get_current_timestamp", "transaction_timestamp"].map(
    (name) => `${name}() AS CAST(system.main.${name}() AS TIMESTAMP_NS)`,
  ),
  `ago(i) AS get_current_timestamp() - i`,
  `to_timestamp(seconds) AS CAST(system.main.to_timestamp(seconds) AS TIMESTAMP_NS)`,
  // With a zone in the format DuckDB's result has one, without it has none; both are UTC here.
  ...["strptime", "try_strptime"].map((name) => `${name}(t, f) AS CAST(system.main.${name}(t, f) AS TIMESTAMP)`),
  ...["date_trunc", "datetrunc"].map(
    (name) => `${name} (part VARCHAR, t TIMESTAMP_NS) AS
       CAST(system.main.date_trunc(part, engine_micros(t)) AS TIMESTAMP_NS),
       (part, t) AS system.main.date_trunc(part, t)`,
  ),
  `time_bucket ${["INTERVAL", "VARCHAR"]
    .map(
      (width) => `
       (w ${width}, t TIMESTAMP_NS) AS
         CAST(system.main.time_bucket(CAST(w AS INTERVAL), engine_micros(t)) AS TIMESTAMP_NS),
       (w ${width}, t TIMESTAMP_NS, shift INTERVAL) AS
         CAST(system.main.time_bucket(CAST(w AS INTERVAL), engine_micros(t), shift) AS TIMESTAMP_NS),
       (w ${width}, t TIMESTAMP_NS, origin TIMESTAMP_NS) AS
         CAST(system.main.time_bucket(CAST(w AS INTERVAL), engine_micros(t), engine_micros(origin)) AS TIMESTAMP_NS),
       (w ${width}, t TIMESTAMP_NS, origin TIMESTAMP) AS
         CAST(system.main.time_bucket(CAST(w AS INTERVAL), engine_micros(t), origin) AS TIMESTAMP_NS),
       (w ${width}, t TIMESTAMP_NS, zone VARCHAR) AS
         CAST(system.main.time_bucket(CAST(w AS INTERVAL), CAST(engine_micros(t) AS TIMESTAMPTZ), zone)
           AS TIMESTAMP_NS)`,
    )
    .join(",")},
       (w, t) AS system.main.time_bucket(w, t), (w, t, o) AS system.main.time_bucket(w, t, o)`,
  `engine_wall_clock(zone, t) AS system.main.timezone(zone, CAST(engine_micros(t) AS TIMESTAMPTZ))`,
  `timezone (zone VARCHAR, t TIMESTAMP_NS) AS engine_wall_clock(zone, t),
       (zone VARCHAR, t TIMESTAMP) AS CAST(system.main.timezone(zone, t) AS TIMESTAMP_NS),
       (zone, t) AS CAST(system.main.timezone(zone, t) AS TIMESTAMP), (t) AS system.main.timezone(t)`,
];

/**
 * Names that DuckDB takes for calls where no column has them, so that the check of functions never sees one. They tell
 * nothing but DuckDB's own names for its environment; a column of such a name is found before the macro.
 */
export const REFUSING_MACROS: readonly string[] = [
  "current_catalog",
  "current_role",
  "current_schema",
  "current_user",
  "session_user",
  "user",
].map((name) => `"${name}"() AS error('there is no column and no function "${name}" that a query may use')`);

/** Whether an error is one of those. */
export function isRefusedName(message: string): boolean {
  return message.startsWith("there is no column and no function ");
}

/** Functions that a macro stands in for: an error inside one has a position in the macro, not in the query. */
export const SHADOWED: ReadonlySet<string> = new Set(TIME_MACROS.map((sql) => /^[^( ]+/.exec(sql)?.[0] ?? ""));
