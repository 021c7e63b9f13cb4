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
 */
export const TIME_MACROS: readonly string[] = [
  // `last_day` takes nothing but dates and timestamps, so that what was taken for a moment by its name alone does not
  // bind; the branch itself is never run.
  `engine_instant(t) AS CASE WHEN false THEN CAST(last_day(t) AS TIMESTAMP_NS) ELSE CAST(t AS TIMESTAMP_NS) END`,
  `engine_nanos(t) AS epoch_ns(engine_instant(t))`,
  // Rounds down, also before 1970 (the cast rounds towards 1970, which could cross into the next hour or day).
  `engine_micros(t) AS make_timestamp(system.main."//"(
     CASE WHEN engine_nanos(t) < 0 THEN system.main."-"(engine_nanos(t), 999) ELSE engine_nanos(t) END, 1000))`,
  `engine_shift(t, shifted) AS make_timestamp_ns(
     system.main."+"(epoch_ns(shifted), system.main."-"(engine_nanos(t), epoch_ns(engine_micros(t)))))`,
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

/** Functions that a macro stands in for: an error inside one has a position in the macro, not in the query. */
export const SHADOWED: ReadonlySet<string> = new Set(TIME_MACROS.map((sql) => /^[^( ]+/.exec(sql)?.[0] ?? ""));
