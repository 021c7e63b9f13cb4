import { quoteText } from "../../../io/duckdb/duckdb.ts";
import { expr, sql, type Expr, type Sql } from "../plan/expression.ts";
import { literal, str } from "../values/coerce.ts";

/** SQL of one element of a pattern, over `p.us` (without ticks) and `p.ticks` (of the second); undefined: not known. */
type Element = (letters: string) => string | undefined;

const DATETIME: Element = (letters) => {
  const format = { d: "%-d", dd: "%d", h: "%-I", hh: "%I", H: "%-H", HH: "%H", m: "%-M", mm: "%M", M: "%-m", MM: "%m" }[
    letters
  ];
  const more = { s: "%-S", ss: "%S", yy: "%y", yyyy: "%Y", tt: "%p" }[letters];
  if (format !== undefined || more !== undefined) return `strftime(p.us, '${format ?? more ?? ""}')`;
  return letters === "y" ? "CAST(year(p.us) % 100 AS VARCHAR)" : fractionOf(letters);
};

/** Of a timespan: `p.s` whole seconds, without its sign. */
const TIMESPAN: Element = (letters) => {
  if (/^d{1,8}$/.test(letters)) return padded("p.s // 86400", letters.length);
  const value = { h: "p.s // 3600 % 24", H: "p.s // 3600 % 24", m: "p.s // 60 % 60", s: "p.s % 60" }[letters.charAt(0)];
  if (value !== undefined && letters.length <= 2) return padded(value, letters.length);
  return fractionOf(letters);
};

function padded(value: string, length: number): string {
  return `printf('%0${length}d', ${value})`;
}

/** `fff`: digits of the second; `FFF`: without zeros at their end. */
function fractionOf(letters: string): string | undefined {
  if (!/^(f{1,7}|F{1,7})$/.test(letters)) return undefined;
  const digits = `left(lpad(CAST(p.ticks AS VARCHAR), 7, '0'), ${letters.length})`;
  return letters.startsWith("f") ? digits : `rtrim(${digits}, '0')`;
}

/** The pieces of a pattern as SQL; the first that is not known where there is one. */
function pieces(pattern: string, element: Element): { pieces: string[] } | { unknown: string } {
  const found: string[] = [];
  for (const [letters] of pattern.matchAll(/([A-Za-z])\1*|[^A-Za-z]+/g)) {
    const own = /^[A-Za-z]/.test(letters) ? element(letters) : delimiter(letters);
    if (own === undefined) return { unknown: letters };
    found.push(own);
  }
  return { pieces: found };
}

function delimiter(text: string): string | undefined {
  return /^[ /\-:,._[\]]+$/.test(text) ? quoteText(text) : undefined;
}

/** `format_datetime()` by a pattern; says what of it is not known. */
export function formatDatetime(moment: Expr, pattern: string): Expr | { unknown: string } {
  return formatted(
    sql`{'us': kql_micros(${moment}), 'ticks': kql_second_ns(${moment}) // 100}`,
    pieces(pattern, DATETIME),
  );
}

/** `format_timespan()` by a pattern; says what of it is not known. */
export function formatTimespan(span: Expr, pattern: string): Expr | { unknown: string } {
  return formatted(
    sql`{'s': CAST(abs(CAST(${span} AS HUGEINT)) // 10000000 AS BIGINT), 'ticks': abs(${span} % 10000000)}`,
    pieces(pattern, TIMESPAN),
  );
}

function formatted(parts: Sql, found: ReturnType<typeof pieces>): Expr | { unknown: string } {
  if ("unknown" in found) return found;
  if (found.pieces.length === 0) return literal("string", "");
  return str(expr("string", sql`list_transform([${{ raw: parts }}], lambda p: ${found.pieces.join(" || ")})[1]`));
}
