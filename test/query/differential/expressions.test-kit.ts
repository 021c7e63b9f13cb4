import type { Chooser } from "../../../src/format/ndjson/generate-values.test-kit.ts";
import { LABELS, WORDS } from "./dataset.test-kit.ts";
import { both, join, sql, textLiteral, type Sql } from "./sql.test-kit.ts";

/**
 * Random expressions over columns in scope, by kind. None can fail, on any row: no division by zero, no overflow, no
 * cast of what may not fit (see `dataset.test-kit.ts` for why).
 */
export type Kind = "int" | "long" | "real" | "string" | "bool" | "time" | "json" | "vector" | "other";

/** `other` is for output only, and so is a `fuzzy` number: its last digits depend on the order of the rows. */
export type Column = { kind: Kind; sql: Sql; fuzzy?: boolean };

export type Scope = { choose: Chooser; columns: readonly Column[] };

const MAX_DEPTH = 3;

/** Kinds that can be compared, grouped by and ordered by. */
export const PLAIN_KINDS = ["int", "long", "real", "string", "bool", "time"] as const;
export const OUTPUT_KINDS = [...PLAIN_KINDS, "string", "int", "time", "json", "vector", "other", "other"] as const;

export function expression(scope: Scope, kind: Kind, depth = 0): Sql {
  const { choose } = scope;
  const columns = scope.columns.filter((column) => column.kind === kind && column.fuzzy !== true);
  if (columns.length > 0 && (depth >= MAX_DEPTH || choose.chance(0.4))) return choose.pick(columns).sql;
  if (depth >= MAX_DEPTH) return literal(choose, kind);
  if (choose.chance(0.15)) return choice(scope, kind, depth);
  return choose.pick(MAKERS[kind])(scope, depth + 1);
}

/** What passes on any kind. */
function choice(scope: Scope, kind: Kind, depth: number): Sql {
  const value = (): Sql => expression(scope, kind, depth + 1);
  if (kind === "other") return sql`[${value()}][1]`;
  // DuckDB has no CASE over arrays of fixed length, nor anything that is made of it.
  if (kind === "vector") return expression(scope, kind, depth + 1);
  switch (scope.choose.int(0, 3)) {
    case 0:
      return sql`CASE WHEN ${expression(scope, "bool", depth + 1)} THEN ${value()} ELSE ${value()} END`;
    case 1:
      return sql`CASE WHEN ${expression(scope, "bool", depth + 1)} THEN ${value()} END`;
    case 2:
      return sql`coalesce(${value()}, ${value()})`;
    default:
      return sql`if(${expression(scope, "bool", depth + 1)}, ${value()}, ${value()})`;
  }
}

export function literal(choose: Chooser, kind: Kind): Sql {
  switch (kind) {
    case "int":
      // In brackets: `--5` would begin a comment.
      return both(`(${choose.int(-20, 60)})`);
    case "long":
      return both(
        choose.pick(["9223372036854775807", "-9223372036854775807", "9007199254740993", "0", "-5"]) + "::BIGINT",
      );
    case "real":
      return both(choose.pick(["0.5", "-12.25", "1e3", "99.875", "0"]) + "::DOUBLE");
    case "string":
      return both(textLiteral(choose.pick([...LABELS, ...WORDS])));
    case "bool":
      return both(choose.pick(["true", "false"]));
    case "time":
      return moment(choose);
    case "json":
      return both(choose.pick([`'{"a": [1, 2.50]}'::JSON`, `'null'::JSON`, `'"x"'::JSON`]));
    case "vector":
      return both(`[${choose.int(-3, 3)}, 0.1, 2]::FLOAT[3]`);
    case "other":
      return both(
        choose.pick(["DATE '2024-02-29'", "INTERVAL '1 month 3 seconds'", "[1, NULL, 3]", "{'a': 1}", "NULL"]),
      );
  }
}

/** An instant of the data's days, in the spellings that people use. */
function moment(choose: Chooser): Sql {
  const day = `2024-01-0${choose.int(1, 9)}`;
  const hour = choose.int(2, 23);
  const pad = (value: number): string => String(value).padStart(2, "0");
  const plain = `TIMESTAMP_NS '${day} ${pad(hour)}:30:00.123456789'`;
  const ours = choose.pick([
    plain,
    `TIMESTAMPTZ '${day} ${pad(hour)}:30:00.123456789+00'`,
    `'${day}T${pad(hour - 2)}:30:00.123456789-02:00'::TIMESTAMPTZ`,
    `CAST('${day} ${pad(hour)}:30:00.123456789Z' AS timestamp with time zone)`,
  ]);
  return { ours, plain };
}

type Maker = (scope: Scope, depth: number) => Sql;

const of =
  (make: (get: (kind: Kind) => Sql, choose: Chooser) => Sql): Maker =>
  (scope, depth) =>
    make((kind) => expression(scope, kind, depth), scope.choose);

const PATHS = ["'$.a'", "'$.deep.y'", "'$.\"odd key\"'", "'$.list[0]'", "'/deep/x'", "'nothing'", "'b'", "'list'"];
const PARTS = ["hour", "day", "dow", "month", "year", "minute", "week", "quarter", "doy"];
const UNITS = ["second", "minute", "hour", "day", "week", "month", "quarter", "year"];
const INTERVALS = [
  "INTERVAL 1 HOUR",
  "INTERVAL '90 minutes'",
  "INTERVAL '1 month'",
  "to_days(3)",
  "2 * INTERVAL 1 DAY",
];
const WIDTHS = ["INTERVAL '15 minutes'", "INTERVAL 1 DAY", "INTERVAL '1 month'", "INTERVAL 7 SECOND"];
const ZONES = ["Europe/Berlin", "America/New_York", "UTC", "Asia/Kathmandu"];

const MAKERS: Readonly<Record<Kind, readonly Maker[]>> = {
  int: [
    of((get, choose) => sql`(${get("int")} ${choose.pick(["+", "-"])} ${get("int")})`),
    of((get, choose) => sql`(${get("int")} * ${choose.int(-9, 9)})`),
    of((get, choose) => sql`(${get("int")} ${choose.pick(["%", "//"])} ${choose.int(2, 9)})`),
    of((get) => sql`(-${get("int")})`),
    of((get, choose) => sql`CAST(${choose.pick(["abs", "sign", "bit_count"])}(${get("int")}) AS INTEGER)`),
    of((get, choose) => sql`${choose.pick(["greatest", "least", "nullif"])}(${get("int")}, ${get("int")})`),
    of((get, choose) => sql`${choose.pick(["length", "strlen", "ascii", "length_grapheme"])}(${get("string")})`),
    of((get, choose) => sql`extract(${choose.pick(PARTS)} FROM ${get("time")})`),
    of((get, choose) => sql`date_diff('${choose.pick(["minute", "day", "month"])}', ${get("time")}, ${get("time")})`),
    of((get) => sql`coalesce(TRY_CAST(${get("json")}->>'$.a' AS INTEGER), 0)`),
    of((get) => sql`json_array_length(${get("json")})`),
    of((get) => sql`instr(${get("string")}, 'e')`),
    of((get) => sql`CAST(${get("bool")} AS INTEGER)`),
    of((get) => sql`levenshtein(${get("string")}, 'alpha')`),
    of((get) => sql`len(string_split(${get("string")}, ' '))`),
  ],
  long: [
    of((get, choose) => sql`(${get("long")} ${choose.pick(["//", "%"])} ${choose.int(2, 9_999)})`),
    of((get, choose) => sql`${choose.pick(["greatest", "least"])}(${get("long")}, ${get("int")})`),
    of((get, choose) => sql`${choose.pick(["epoch_ns", "epoch_us", "epoch_ms"])}(${get("time")})`),
    of((get) => sql`CAST(${get("int")} AS BIGINT)`),
    of((get) => sql`xor(${get("long")}, ${get("long")})`),
  ],
  real: [
    of((get, choose) => sql`(${get("real")} ${choose.pick(["+", "-", "*"])} ${get("real")})`),
    of((get) => sql`(${get("real")} + ${get("int")})`),
    of((get) => sql`(${get("real")} / nullif(${get("int")}, 0))`),
    of((get) => sql`(${get("int")} / 7)`),
    of((get, choose) => sql`${choose.pick(["floor", "ceil", "abs", "sign", "cos", "atan"])}(${get("real")})`),
    of((get) => sql`round(${get("real")}, 1)`),
    of((get) => sql`sqrt(abs(${get("real")}))`),
    of((get) => sql`ln(abs(${get("real")}) + 1)`),
    of((get) => sql`CAST(${get("long")} AS DOUBLE)`),
    of((get, choose) => sql`${choose.pick(DISTANCES)}(${get("vector")}, [1, 0.5, 2]::FLOAT[3])`),
    of((get) => sql`epoch(${get("time")})`),
    of((get) => sql`coalesce(TRY_CAST(${get("json")}->'$.deep.x' AS DOUBLE), 0.5)`),
    of((get) => sql`jaccard(${get("string")} || 'x', 'alpha')`),
  ],
  string: [
    of((get, choose) => sql`${choose.pick(["upper", "lower", "trim", "reverse", "md5", "hex"])}(${get("string")})`),
    of((get) => sql`(${get("string")} || ${get("string")})`),
    of((get) => sql`concat(${get("string")}, '/', ${get("int")}, '/', ${get("bool")})`),
    of((get, choose) => sql`substr(${get("string")}, ${choose.int(-4, 6)}, ${choose.int(0, 5)})`),
    of((get, choose) => sql`(${get("string")})[${choose.int(1, 4)}:${choose.int(4, 9)}]`),
    of(
      (get, choose) => sql`${choose.pick(["left", "right", "left_grapheme"])}(${get("string")}, ${choose.int(-3, 7)})`,
    ),
    of((get) => sql`replace(${get("string")}, 'a', 'ä')`),
    of((get) => sql`split_part(${get("string")}, ' ', 2)`),
    of((get) => sql`regexp_replace(${get("string")}, '[aeiou]+', '<\\0>', 'g')`),
    of((get) => sql`regexp_extract(${get("string")}, '([a-z]+)', 1)`),
    of((get) => sql`lpad(${get("string")}, 6, '·')`),
    of((get) => sql`strftime(${get("time")}, '%Y-%m-%d %H:%M:%S')`),
    of((get, choose) => sql`${choose.pick(["dayname", "monthname"])}(${get("time")})`),
    of((get, choose) => sql`(${get("json")}->>${choose.pick(PATHS)})`),
    of((get, choose) => sql`json_extract_string(${get("json")}, ${choose.pick(PATHS)})`),
    of((get, choose) => sql`json_type(${get("json")}, ${choose.pick(["'$.deep'", "'$.list'", "'/b'"])})`),
    of((get, choose) => sql`CAST(${get(choose.pick(["int", "bool", "time", "real", "json"]))} AS VARCHAR)`),
    of((get) => sql`printf('%s:%05d', coalesce(${get("string")}, '-'), coalesce(${get("int")}, 0))`),
    of((get) => sql`array_to_string(list_sort(string_split(${get("string")}, ' ')), '+')`),
    of((get) => sql`to_base64(encode(${get("string")}))`),
    of((get, choose) => sql`typeof(${get(choose.pick(["int", "long", "json", "vector", "string"]))})`),
  ],
  bool: [
    ...[0, 1, 2].map(() => comparison),
    of((get, choose) => sql`(${get("bool")} ${choose.pick(["AND", "OR"])} ${get("bool")})`),
    of((get) => sql`(NOT ${get("bool")})`),
    of((get, choose) => sql`(${get(choose.pick(OUTPUT_KINDS))} IS ${choose.pick(["", "NOT "])}NULL)`),
    of((get, choose) => sql`(${get("string")} ${choose.pick(LIKES)})`),
    of(
      (get, choose) =>
        sql`${choose.pick(["contains", "starts_with", "suffix"])}(${get("string")}, '${choose.pick(["e", "al", "eset", "ß"])}')`,
    ),
    of((get) => sql`regexp_matches(${get("string")}, '^[a-m]|\\d')`),
    of((get, choose) => sql`json_exists(${get("json")}, ${choose.pick(["'$.list[1]'", "'$.deep.z'", "'$.a'"])})`),
    of((get) => sql`json_contains(${get("json")}, '{"a": 1}')`),
    of((get) => sql`list_contains(string_split(${get("string")}, ' '), 'error')`),
    of(
      (get, choose) =>
        sql`(CAST(${get("time")} AS DATE) ${choose.pick(["=", ">", "<="])} DATE '2024-01-0${choose.int(1, 7)}')`,
    ),
    of((get, choose) => sql`(${get("time")} ${choose.pick([">", "<="])} '2024-01-0${choose.int(1, 7)}T08:00:00Z')`),
  ],
  time: [
    of((get, choose) => {
      const [unit, time] = [choose.pick(UNITS), get("time")];
      return { ours: `date_trunc('${unit}', ${time.ours})`, plain: `o_trunc('${unit}', ${time.plain})` };
    }),
    of((get, choose) => {
      const [width, time] = [choose.pick(WIDTHS), get("time")];
      return { ours: `time_bucket(${width}, ${time.ours})`, plain: `o_bucket(${width}, ${time.plain})` };
    }),
    ...[0, 1].map(() => shifted),
    of((get, choose) => sql`${choose.pick(["greatest", "least", "nullif"])}(${get("time")}, ${get("time")})`),
    of((get) => sql`make_timestamp_ns(epoch_ns(${get("time")}) + 1)`),
    of((get) => instantOf(get("int"))),
    of((get) => {
      const time = get("time");
      return { ours: `CAST(${time.ours} AS TIMESTAMPTZ)`, plain: time.plain };
    }),
  ],
  json: [
    of((get, choose) => sql`(${get("json")}->${choose.pick(PATHS)})`),
    of((get, choose) => sql`json_extract(${get("json")}, ${choose.pick(PATHS)})`),
    of((get) => sql`json_object('k', ${get("int")}, 's', ${get("string")}, 'j', ${get("json")})`),
    of((get) => sql`json_array(${get("int")}, ${get("bool")}, ${get("string")})`),
    of((get) => sql`to_json(${get("string")})`),
    of((get) => sql`json_merge_patch('{"p": 1}', ${get("json")})`),
  ],
  vector: [
    of(
      (get, choose) =>
        sql`array_value(${choose.int(0, 4)}::FLOAT, 0.1::FLOAT, CAST(coalesce(${get("int")}, 0) AS FLOAT))`,
    ),
    of((get) => sql`array_cross_product(${get("vector")}, [1, 2, 3]::FLOAT[3])`),
  ],
  other: [
    of((get) => sql`CAST(${get("time")} AS DATE)`),
    of((get) => sql`CAST(${get("time")} AS TIME)`),
    of((get) => sql`CAST(${get("time")} AS TIMESTAMP)`),
    of((get, choose) => {
      const [zone, time] = [choose.pick(ZONES), get("time")];
      return { ours: `(${time.ours} AT TIME ZONE '${zone}')`, plain: `o_wall('${zone}', ${time.plain})` };
    }),
    of((get) => sql`(${get("time")} - ${get("time")})`),
    of((get, choose) => join([both("["), get(choose.pick(["int", "string", "time", "real"])), both(", NULL]")], "")),
    of((get) => sql`{'a': ${get("int")}, 'At': ${get("time")}, 'j': ${get("json")}, 'v': ${get("vector")}}`),
    of((get) => sql`MAP {coalesce(${get("string")}, '-'): ${get("real")}, '𝕏': 1}`),
    of((get) => sql`list_transform(string_split(${get("string")}, ' '), lambda w: upper(w) || ${get("int")})`),
    of((get) => sql`[w FOR w IN string_split(${get("string")}, ' ') IF length(w) > 3]`),
    of((get) => sql`list_filter([${get("int")}, 5, ${get("int")}], lambda x: x > 2)`),
    of((get) => sql`encode(${get("string")})`),
    of((get) => sql`(CAST(${get("long")} AS HUGEINT) * 1000003)`),
    of((get) => sql`CAST(${get("int")} AS DECIMAL(18, 3))`),
    of((get) => sql`json_keys(${get("json")})`),
    of((get) => sql`json_extract(${get("json")}, ['$.a', '$.list'])`),
    of((get) => sql`CAST(${get("vector")} AS FLOAT[])`),
    of((get) => sql`CAST(CAST(${get("json")}->'$.list' AS JSON) AS INTEGER[])`),
    of((get) => sql`to_minutes(CAST(${get("int")} AS INTEGER))`),
    // A struct without names is an array in JSON.
    of((get) => {
      const items = join([get("int"), get("string")]);
      return { ours: `ROW(${items.ours})`, plain: `json_array(${items.plain})` };
    }),
    of((get) => sql`CAST(${get("int")} AS FLOAT) / 3::FLOAT`),
  ],
};

const DISTANCES = [
  "array_distance",
  "array_cosine_similarity",
  "array_cosine_distance",
  "array_inner_product",
  "array_negative_inner_product",
];

const LIKES = [
  "LIKE '%a%'",
  "LIKE 'al_ha'",
  "NOT LIKE '%e%'",
  "ILIKE '%ERR%'",
  "LIKE '100^%' ESCAPE '^'",
  "SIMILAR TO '[a-g].*'",
  "GLOB 'a*'",
  "IN ('alpha', 'error', '日本語')",
  "NOT IN ('beta', '')",
];

const OPERATORS = ["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"];

function comparison(scope: Scope, depth: number): Sql {
  const { choose } = scope;
  const kind = choose.pick(PLAIN_KINDS);
  const value = (): Sql => expression(scope, kind, depth);
  if (choose.chance(0.2)) return sql`(${value()} BETWEEN ${value()} AND ${value()})`;
  if (choose.chance(0.15)) return sql`(${value()} IN (${value()}, ${literal(choose, kind)}))`;
  return sql`(${value()} ${choose.pick(OPERATORS)} ${choose.chance(0.5) ? literal(choose, kind) : value()})`;
}

function shifted(scope: Scope, depth: number): Sql {
  const { choose } = scope;
  const [interval, time] = [choose.pick(INTERVALS), expression(scope, "time", depth)];
  const negative = choose.chance(0.5);
  if (!negative && choose.chance(0.3)) {
    return { ours: `(${interval} + ${time.ours})`, plain: `o_shift(${time.plain}, ${interval})` };
  }
  const sign = negative ? "-" : "+";
  return {
    ours: `(${time.ours} ${sign} ${interval})`,
    plain: `o_shift(${time.plain}, ${sign === "-" ? `-(${interval})` : interval})`,
  };
}

function instantOf(seconds: Sql): Sql {
  return {
    ours: `to_timestamp(${seconds.ours})`,
    plain: `make_timestamp_ns(CAST(${seconds.plain} AS BIGINT) * 1000000000)`,
  };
}
