/** Rows of every type for other programs to read, and questions to which all must give the same answers. */
import type { ColumnSpec } from "../../src/format/types.ts";
import type { Json } from "../api/services.test-kit.ts";

export const COLUMNS: readonly ColumnSpec[] = [
  { name: "at", type: { kind: "timestamp" } },
  { name: "flag", type: { kind: "bool" } },
  { name: "small", type: { kind: "int" } },
  { name: "big", type: { kind: "long" } },
  { name: "real", type: { kind: "real" } },
  { name: "text", type: { kind: "string" } },
  { name: "seen", type: { kind: "timestamp" } },
  { name: "more", type: { kind: "dynamic" } },
  { name: "vec", type: { kind: "vector", dimensions: 2 } },
  { name: "a.b", type: { kind: "string" } },
  { name: 'odd "näme" %41', type: { kind: "long" } },
  { name: "props", type: { kind: "dynamic" } },
];

const START_MS = Date.UTC(2024, 0, 1);
const TEXTS = ["", "plain", "näïve Straße", "😀".repeat(20), 'it\'s "quoted" \\ and %20', "z".repeat(100)];
/** Digits of a time behind the second: whole microseconds in some files, nanoseconds in others. */
const DIGITS = ["", ".5", ".123456", ".123456789", ".999999999"];

/** Row `i` of batch `batch`; every fifth value is missing, each column's at another row. */
export function row(batch: number, i: number): Json {
  const n = batch * 1_000 + i;
  const second = new Date(START_MS + batch * 7_200_000 + i * 60_000).toISOString().slice(0, 19);
  const all: Json = {
    at: `${second}${DIGITS[batch % DIGITS.length]}Z`,
    flag: n % 2 === 0,
    small: (n % 7) - 3,
    big: n % 3 === 0 ? n : -n * 1_000_003,
    real: n / 8 - 100,
    text: `${TEXTS[n % TEXTS.length]}${n % 4}`,
    seen: new Date(START_MS - n * 86_400_000).toISOString(),
    more: { n, list: [1, null, "x"] },
    "a.b": `b${n % 5}`,
    'odd "näme" %41': n % 11,
  };
  const names = Object.keys(all).filter((name) => name !== "at");
  const kept = Object.entries(all).filter(([name]) => (n + names.indexOf(name)) % 5 !== 0 || name === "at");
  return { ...Object.fromEntries(kept), vec: [n / 4, -n] };
}

/** How a program says in SQL what the questions need. */
export type Dialect = {
  column: (name: string) => string;
  /** Microseconds since 1970 of a time. */
  micros: (time: string) => string;
  /** A time in UTC, given as `2024-01-01 02:00:00`. */
  time: (text: string) => string;
  /** The first item of a vector. */
  first: (vector: string) => string;
};

const doubleQuoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

export const DUCKDB: Dialect = {
  column: doubleQuoted,
  micros: (time) => `epoch_us(${time})`,
  time: (text) => `TIMESTAMPTZ '${text}+00'`,
  first: (vector) => `${vector}[1]`,
};

export const SPARK: Dialect = {
  column: (name) => `\`${name.replaceAll("`", "``")}\``,
  micros: (time) => `unix_micros(${time})`,
  time: (text) => `TIMESTAMP '${text}+00:00'`,
  first: (vector) => `${vector}[0]`,
};

export const TRINO: Dialect = {
  column: doubleQuoted,
  // Its seconds are a double, which is exact to half a microsecond until the year 2100.
  micros: (time) => `CAST(round(to_unixtime(${time}) * 1e6) AS BIGINT)`,
  time: (text) => `TIMESTAMP '${text} UTC'`,
  first: (vector) => `${vector}[1]`,
};

export const CLICKHOUSE: Dialect = {
  column: (name) => `\`${name.replaceAll("`", "``")}\``,
  micros: (time) => `toUnixTimestamp64Micro(${time})`,
  time: (text) => `toDateTime64('${text}', 6, 'UTC')`,
  first: (vector) => `${vector}[1]`,
};

/** `where` is PyIceberg's form of a question's condition. */
export type Question = { sql: string; where?: string };

/** Of a table `t`; every column of an answer is text. Reals are multiples of 1/8, so that eight times one is whole. */
export function questionsIn({ column, micros, time, first }: Dialect): Question[] {
  const text = (expression: string): string => `CAST(${expression} AS ${TEXT})`;
  const count = text("count(*)");
  const [at, seen, dotted, odd] = [column("at"), column("seen"), column("a.b"), column('odd "näme" %41')];
  const counted = ["flag", "small", "big", "real", "text", "seen", "more", "a.b"].map(
    (name, i) => `${text(`count(${column(name)})`)} AS c${i}`,
  );
  const real = column("real");
  const [start, end] = ["2024-01-01 02:00:00", "2024-01-01 04:00:00.123457"];
  return [
    { sql: `SELECT ${count} AS a FROM t` },
    { sql: `SELECT ${text(micros(`min(${at})`))} AS a, ${text(micros(`max(${at})`))} AS b FROM t` },
    { sql: `SELECT ${counted.join(", ")} FROM t` },
    {
      sql: `SELECT ${text("sum(big)")} AS a, ${text("sum(small)")} AS b, ${text(whole(`sum(${real}) * 8`))} AS c FROM t`,
    },
    { sql: `SELECT text AS a, ${count} AS b FROM t GROUP BY text ORDER BY text NULLS FIRST` },
    { sql: `SELECT ${count} AS a FROM t WHERE big = -17000051`, where: "big = -17000051" },
    { sql: `SELECT ${count} AS a, ${text("max(small)")} AS b FROM t WHERE ${real} > 20.5`, where: "real > 20.5" },
    { sql: `SELECT ${count} AS a FROM t WHERE text >= 'näïve'`, where: "text >= 'näïve'" },
    {
      sql: `SELECT ${count} AS a FROM t WHERE ${at} >= ${time(start)} AND ${at} < ${time(end)}`,
      where: `at >= '${start.replace(" ", "T")}+00:00' and at < '${end.replace(" ", "T")}+00:00'`,
    },
    { sql: `SELECT ${text("flag")} AS a, ${count} AS b FROM t GROUP BY flag ORDER BY flag NULLS FIRST` },
    {
      sql: `SELECT ${dotted} AS a, ${text(`sum(${odd})`)} AS b FROM t GROUP BY ${dotted} ORDER BY ${dotted} NULLS FIRST`,
    },
    {
      sql:
        `SELECT ${text(micros(at))} AS a, ${text(micros(seen))} AS b, ${text("more")} AS c, ` +
        `${text(whole(`${first("vec")} * 4`))} AS d, ${text("big")} AS e FROM t ` +
        `ORDER BY ${at}, big NULLS FIRST LIMIT 40`,
    },
  ];
}

const TEXT = "VARCHAR(1000)";
const whole = (expression: string): string => `CAST(${expression} AS BIGINT)`;

export const QUESTIONS = questionsIn(DUCKDB);
