import type { Scalar } from "./messages.ts";

/** Scalars of the JSON form, from their text: what was in quotes, or a token that JSON takes for a number. */
const RANGES: Readonly<Partial<Record<Scalar, readonly [bigint, bigint]>>> = {
  int64: [-(2n ** 63n), 2n ** 63n - 1n],
  fixed64: [0n, 2n ** 64n - 1n],
  enum: [-(2n ** 31n), 2n ** 31n - 1n],
  uint32: [0n, 2n ** 32n - 1n],
  fixed32: [0n, 2n ** 32n - 1n],
};

const NUMBER = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/;
const INTEGER = /^(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]{1,4}))?$/;
/** Digits of the largest of them. */
const MOST_DIGITS = 20;

/** The integer, also where it is written with a fraction of zeroes or a power of ten; undefined outside its range. */
export function integerOf(type: Scalar, text: string): bigint | undefined {
  const range = RANGES[type];
  const [, sign = "", whole = "", fraction = "", power = "0"] = NUMBER.test(text) ? (INTEGER.exec(text) ?? []) : [];
  if (range === undefined || whole === "") return undefined;
  const digits = (whole + fraction).replace(/^0+/, "");
  const zeroes = Number(power) - fraction.length;
  const kept = zeroes >= 0 ? digits : digits.slice(0, zeroes);
  if (zeroes < 0 && /[^0]/.test(digits.slice(zeroes))) return undefined;
  if (kept === "") return 0n;
  if (kept.length + Math.max(zeroes, 0) > MOST_DIGITS) return undefined;
  const magnitude = BigInt(kept + "0".repeat(Math.max(zeroes, 0)));
  const value = sign === "-" ? -magnitude : magnitude;
  return value >= range[0] && value <= range[1] ? value : undefined;
}

/** A double; one that is too large for it is none. */
export function realOf(text: string): number | undefined {
  if (text === "NaN") return NaN;
  if (text === "Infinity") return Infinity;
  if (text === "-Infinity") return -Infinity;
  const value = NUMBER.test(text) ? Number(text) : NaN;
  return Number.isFinite(value) ? value : undefined;
}

/** Whether it is base64, in either alphabet (RFC 4648 §4 and §5), padded or not. */
export function isBase64(text: string): boolean {
  const match = /^([A-Za-z0-9+/]*|[A-Za-z0-9_-]*)(={0,2})$/.exec(text);
  if (match === null) return false;
  const [, digits = "", padding = ""] = match;
  if (padding === "") return digits.length % 4 !== 1;
  return (digits.length + padding.length) % 4 === 0 && digits.length % 4 >= 2;
}
