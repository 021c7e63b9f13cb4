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

/** Of a table `t`, in DuckDB's dialect; every column of an answer is text. */
export const QUESTIONS: readonly { sql: string; where?: string }[] = [
  { sql: "SELECT count(*)::VARCHAR AS a FROM t" },
  { sql: 'SELECT epoch_us(min("at"))::VARCHAR AS a, epoch_us(max("at"))::VARCHAR AS b FROM t' },
  {
    sql:
      "SELECT count(flag)::VARCHAR AS a, count(small)::VARCHAR AS b, count(big)::VARCHAR AS c, count(real)::VARCHAR AS d, " +
      'count(text)::VARCHAR AS e, count(seen)::VARCHAR AS f, count(more)::VARCHAR AS g, count("a.b")::VARCHAR AS h FROM t',
  },
  { sql: "SELECT sum(big)::VARCHAR AS a, sum(small)::VARCHAR AS b, sum(real)::VARCHAR AS c FROM t" },
  { sql: "SELECT text AS a, count(*)::VARCHAR AS b FROM t GROUP BY text ORDER BY text NULLS FIRST" },
  { sql: "SELECT count(*)::VARCHAR AS a FROM t WHERE big = -17000051", where: "big = -17000051" },
  { sql: "SELECT count(*)::VARCHAR AS a, max(small)::VARCHAR AS b FROM t WHERE real > 20.5", where: "real > 20.5" },
  { sql: "SELECT count(*)::VARCHAR AS a FROM t WHERE text >= 'näïve'", where: "text >= 'näïve'" },
  {
    sql: "SELECT count(*)::VARCHAR AS a FROM t WHERE \"at\" >= '2024-01-01 02:00:00+00' AND \"at\" < '2024-01-01 04:00:00.123457+00'",
    where: "at >= '2024-01-01T02:00:00+00:00' and at < '2024-01-01T04:00:00.123457+00:00'",
  },
  { sql: "SELECT flag::VARCHAR AS a, count(*)::VARCHAR AS b FROM t GROUP BY flag ORDER BY flag NULLS FIRST" },
  { sql: 'SELECT "a.b" AS a, sum("odd ""näme"" %41")::VARCHAR AS b FROM t GROUP BY "a.b" ORDER BY "a.b" NULLS FIRST' },
  {
    sql:
      'SELECT epoch_us("at")::VARCHAR AS a, epoch_us(seen)::VARCHAR AS b, CAST(more AS VARCHAR) AS c, vec[1]::VARCHAR AS d, ' +
      'big::VARCHAR AS e FROM t ORDER BY "at", big NULLS FIRST LIMIT 40',
  },
];
