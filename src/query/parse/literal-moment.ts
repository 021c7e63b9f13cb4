import { isObject, textOf, type JsonObject } from "./tree.ts";

/** `2026-01-31`, `2026-01-31 12:00:00`, `2026-01-31T12:00:00.123456789Z`: what nobody reads in two ways. */
const PLAIN = /^(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?Z?)?$/;

/** Years that an int64 of nanoseconds holds as a whole. */
const FIRST_YEAR = 1678;
const LAST_YEAR = 2261;

/**
 * The moment that a plain literal says (`'2026-01-31'`, `TIMESTAMP '2026-01-31 12:00:00'`), in nanoseconds; undefined
 * for all else, which is for DuckDB to evaluate: that takes a millisecond, and most bounds are plain literals.
 */
export function literalMoment(expression: JsonObject): bigint | undefined {
  if (expression["class"] === "CAST") {
    const { child, cast_type: type } = expression;
    if (!isObject(child) || !isObject(type)) return undefined;
    const text = textLiteral(child);
    // A TIMESTAMP has microseconds, a DATE no time.
    if (type["id"] === "TIMESTAMP") return text === undefined || /\.\d{7}/.test(text) ? undefined : plainMoment(text);
    return type["id"] === "DATE" && text?.length === 10 ? plainMoment(text) : undefined;
  }
  const text = textLiteral(expression);
  return text === undefined ? undefined : plainMoment(text);
}

function textLiteral(expression: JsonObject): string | undefined {
  const { value } = expression;
  if (expression["class"] !== "CONSTANT" || !isObject(value) || value["is_null"] === true) return undefined;
  const type = value["type"];
  return isObject(type) && type["id"] === "VARCHAR" ? textOf(value["value"]) : undefined;
}

/** A plain text as a moment. */
export function plainMoment(text: string): bigint | undefined {
  const [matched, year, month, day, hour = "0", minute = "0", second = "0", fraction = ""] = PLAIN.exec(text) ?? [];
  if (matched === undefined || Number(year) < FIRST_YEAR || Number(year) > LAST_YEAR) return undefined;
  const date = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day)));
  const isReal = date.getUTCMonth() === Number(month) - 1 && date.getUTCDate() === Number(day);
  if (!isReal || Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return undefined;
  const seconds = date.getTime() / 1000 + Number(hour) * 3600 + Number(minute) * 60 + Number(second);
  return BigInt(seconds) * 1_000_000_000n + BigInt(fraction.padEnd(9, "0"));
}
