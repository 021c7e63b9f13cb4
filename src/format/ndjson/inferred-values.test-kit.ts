import * as fc from "fast-check";
import type { Value } from "../tlm-decode.ts";

/** JSON texts of one kind each, and what a reader of its own makes of them. */
const numbers = fc.oneof(
  fc.integer().map(String),
  fc.maxSafeInteger().map(String),
  fc.bigInt({ min: -(2n ** 66n), max: 2n ** 66n }).map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
  fc
    .tuple(fc.maxSafeNat(), fc.integer({ min: 1, max: 12 }), fc.integer({ min: -30, max: 30 }))
    .map(([digits, places, power]) => `${digits}.${"1".repeat(places)}e${power}`),
);
const times = fc
  .date({ min: new Date("1700-01-01"), max: new Date("2200-01-01"), noInvalidDate: true })
  .map((date) => JSON.stringify(date.toISOString()));
const values = fc.oneof(
  fc.boolean().map(String),
  numbers,
  times,
  fc.string({ unit: "grapheme" }).map((text) => JSON.stringify(text)),
  fc.constant("null"),
  fc.json({ maxDepth: 1 }),
);
/** Values of one field in one body. */
export const fieldValues = fc.oneof(
  fc.array(numbers, { maxLength: 8 }),
  fc.array(times, { maxLength: 8 }),
  fc.array(values, { maxLength: 8 }),
);

/** The number as sign, digits and power of ten, each in one way only. */
function decimalOf(token: string): string {
  const [, sign = "", whole = "", fraction = "", power = "0"] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(token) ?? [];
  const digits = `${whole}${fraction}`.replace(/^0+/, "");
  const short = digits.replace(/0+$/, "");
  return short === "" ? "0" : `${sign}${short}e${Number(power) - fraction.length + digits.length - short.length}`;
}

/** Whether the stored value is what was sent: the same JSON value, or the same instant. */
export function isKept(sent: string, stored: Value, type: string): boolean {
  switch (type) {
    case "bool":
      return String(stored) === sent;
    case "long":
    case "real":
      return decimalOf(String(stored)) === decimalOf(sent);
    case "timestamp":
      return BigInt(Date.parse(JSON.parse(sent) as string)) * 1_000_000n === stored;
    case "string":
      return sent.startsWith('"')
        ? stored === JSON.parse(sent)
        : stored === JSON.stringify(JSON.parse(sent)) || stored === sent;
    default:
      return stored === sent || JSON.stringify(JSON.parse(String(stored))) === JSON.stringify(JSON.parse(sent));
  }
}

/** Without the white space that `fc.json` may write. */
export function compact(json: string): string {
  return json.startsWith('"') || /^[-\d]/.test(json) ? json : JSON.stringify(JSON.parse(json));
}
