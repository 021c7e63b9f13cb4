/** A JSON value whose numbers are still the digits that were written, and whose members are in order. */
export type Exact = null | boolean | string | ExactNumber | Exact[] | Map<string, Exact>;

export class ExactNumber {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type Reviver = (this: unknown, key: string, value: unknown, context: { source?: string }) => unknown;

export function parseExact(text: string): Exact {
  const revive: Reviver = (_key, value, { source }) => {
    if (typeof value === "number") return new ExactNumber(source ?? String(value));
    if (typeof value !== "object" || value === null || Array.isArray(value) || value instanceof ExactNumber)
      return value;
    return value instanceof Map ? value : new Map(Object.entries(value));
  };
  return JSON.parse(text, revive as (key: string, value: unknown) => unknown) as Exact;
}

export function parseLines(text: string): Map<string, Exact>[] {
  const lines = text.split("\n").filter((line) => line !== "");
  return lines.map((line) => parseExact(line) as Map<string, Exact>);
}

const TOLERANCE = 1e-9;

/** Equal but for the last digits of floating-point numbers. */
export function same(a: Exact | undefined, b: Exact | undefined): boolean {
  if (a instanceof ExactNumber && b instanceof ExactNumber) return sameNumber(a.text, b.text);
  if (typeof a === "string" && typeof b === "string") return a === b || withoutZeros(a) === withoutZeros(b);
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, i) => same(item, b[i]));
  if (a instanceof Map && b instanceof Map) {
    return a.size === b.size && [...a].every(([key, value]) => b.has(key) && same(value, b.get(key)));
  }
  return a === b;
}

const INTEGER = /^-?[0-9]+$/;

function sameNumber(a: string, b: string): boolean {
  if (a === b) return true;
  if (INTEGER.test(a) && INTEGER.test(b)) return BigInt(a) === BigInt(b);
  const [x, y] = [Number(a), Number(b)];
  return Math.abs(x - y) <= TOLERANCE * Math.max(1, Math.abs(x), Math.abs(y)) || isSameFloat(x, y);
}

/**
 * A number of 32 bits as one side wrote it whole, and the other with as few digits as tell it from its neighbours: where two
 * texts of so few digits are equally close, writers differ.
 */
function isSameFloat(x: number, y: number): boolean {
  const [single, other] = [Math.fround(x), Math.fround(y)];
  return single === other && (single === x || other === y) && !Number.isInteger(x) && !Number.isInteger(y);
}

/** The fraction of a time has as many digits as its writer likes. */
function withoutZeros(text: string): string {
  return text.replace(
    /^(\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d)\.(\d*?)0+(Z?)$/,
    (_all, time: string, digits: string, zone) => {
      return `${time}${digits === "" ? "" : `.${digits}`}${String(zone)}`;
    },
  );
}

export function show(value: Exact | undefined): string {
  if (value instanceof ExactNumber) return value.text;
  if (Array.isArray(value)) return `[${value.map(show).join(",")}]`;
  if (value instanceof Map)
    return `{${[...value].map(([key, item]) => `${JSON.stringify(key)}:${show(item)}`).join(",")}}`;
  return JSON.stringify(value) ?? "nothing";
}

/** What is different between two answers; undefined when nothing is. */
export function compareRows(
  ours: readonly Map<string, Exact>[],
  plain: readonly Map<string, Exact>[],
  ordered: boolean,
): string | undefined {
  if (ours.length !== plain.length) return `${ours.length} rows, not ${plain.length}`;
  if (ordered) {
    const at = ours.findIndex((row, i) => !same(row, plain[i]));
    return at === -1 ? undefined : `row ${at} is ${show(ours[at])}, not ${show(plain[at])}`;
  }
  const left = [...plain];
  // Both come in much the same order as a rule, so the partner is near the front.
  for (const row of ours) {
    const partner = left.findIndex((other) => same(row, other));
    if (partner === -1) return `${show(row)} is not among the ${left.length} left, which begin with ${show(left[0])}`;
    left.splice(partner, 1);
  }
  return undefined;
}
