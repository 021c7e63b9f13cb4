/** Values of KQL as the evaluator has them, from the reference of the language; it shares no code with the translator. */

export type Json = null | boolean | number | string | readonly Json[] | { readonly [member: string]: Json };

/** long: bigint; real: number; datetime: ticks of 100 ns since 1970; timespan: ticks. A string is never null. */
export type Value = null | boolean | bigint | number | string | { readonly json: Json };

export type Type = "bool" | "long" | "real" | "string" | "datetime" | "timespan" | "dynamic";

export type Row = Readonly<Record<string, Value>>;

export type Rows = { readonly columns: Readonly<Record<string, Type>>; readonly rows: readonly Row[] };

/** The reference does not say what comes out: the query is left out of the comparison. */
export class Undecided extends Error {}

const LOW = -(2n ** 63n);
const HIGH = 2n ** 63n - 1n;

export function wrapped(value: bigint): bigint {
  return BigInt.asIntN(64, value);
}

/** Within what a timespan holds: beyond it the reference says nothing. */
export function span(value: bigint): bigint {
  if (value < LOW || value > HIGH) throw new Undecided("a timespan that overflows");
  return value;
}

const FIRST = -8_000_000_000_000_000_0n;
const LAST = 9_000_000_000_000_000_0n;

/** Within what nanoseconds reach. */
export function moment(ticks: bigint): bigint {
  if (ticks < FIRST || ticks > LAST) throw new Undecided("a datetime out of reach");
  return ticks;
}

/** Rounded down, also below zero. */
export function floorTo(value: bigint, step: bigint): bigint {
  return value - (((value % step) + step) % step);
}

function padded(value: bigint, digits: number): string {
  return value.toString().padStart(digits, "0");
}

const SECOND = 10_000_000n;

/** `[-][d.]hh:mm:ss[.fffffff]`. */
export function timespanText(ticks: bigint): string {
  const amount = ticks < 0n ? -ticks : ticks;
  const [days, fraction] = [amount / (86_400n * SECOND), amount % SECOND];
  const clock = [amount / (3_600n * SECOND), amount / (60n * SECOND), amount / SECOND].map((one, i) =>
    padded(one % (i === 0 ? 24n : 60n), 2),
  );
  const dot = days === 0n ? "" : `${days}.`;
  return `${ticks < 0n ? "-" : ""}${dot}${clock.join(":")}${fraction === 0n ? "" : `.${padded(fraction, 7)}`}`;
}

export function dateOf(ticks: bigint): Date {
  return new Date(Number(floorTo(ticks, 10_000n) / 10_000n));
}

/** `2024-05-01T00:00:00.0000000Z`: seven digits. */
export function datetimeText(ticks: bigint): string {
  const seconds = dateOf(ticks).toISOString().slice(0, 19);
  return `${seconds}.${padded(((ticks % SECOND) + SECOND) % SECOND, 7)}Z`;
}

/** A value as it is written in the language. */
export function literalOf(type: Type, value: Value): string {
  if (value === null) return `${type}(null)`;
  switch (type) {
    case "bool":
      return value === true ? "true" : "false";
    case "long":
      return `long(${(value as bigint).toString()})`;
    case "real":
      return Number.isFinite(value)
        ? `real(${Number(value)})`
        : `real(${Number.isNaN(value) ? "nan" : Number(value) > 0 ? "+inf" : "-inf"})`;
    case "string":
      return JSON.stringify(value);
    case "datetime":
      return `datetime(${datetimeText(value as bigint)})`;
    case "timespan":
      return `time(${timespanText(value as bigint)})`;
    case "dynamic":
      return `dynamic(${JSON.stringify((value as { json: Json }).json)})`;
  }
}

/** A value as one text that is the same for equal values: what is compared. A real has twelve digits. */
export function shown(type: Type, value: unknown): string {
  if (type === "string") return JSON.stringify(value ?? "");
  if (value === null || value === undefined) return "null";
  if (type === "real") {
    const number = Number(value);
    return Number.isFinite(number) ? String(Number((number === 0 ? 0 : number).toPrecision(12))) : "null";
  }
  const isSimple = typeof value === "boolean" || typeof value === "bigint" || typeof value === "number";
  return isSimple || (type !== "dynamic" && typeof value === "string") ? String(value) : JSON.stringify(value);
}

/** The same for a value of the evaluator's. */
export function written(type: Type, value: Value): string {
  if (value === null) return shown(type, null);
  if (type === "timespan") return timespanText(value as bigint);
  if (type === "dynamic") return shown(type, (value as { json: Json }).json);
  // As JSON has it: no more digits than needed.
  if (type === "datetime") return datetimeText(value as bigint).replace(/\.?0*Z$/, "Z");
  return shown(type, value);
}
