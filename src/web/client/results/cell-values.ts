/* oxlint-disable typescript/switch-exhaustiveness-check -- Arrow has types that no answer of this server has */
import { Type, type Batch, type DataType } from "@uwdata/flechette";

/**
 * The value of a cell as text, exact: 64-bit integers by all their digits, times by all their nanoseconds, decimals by their
 * scale, also inside of lists, structs and maps. The library's own values are numbers and dates of JavaScript, which round;
 * so the buffers are read as they are.
 */

/** What a column holds, as far as showing and comparing it goes. */
export type ValueKind = "text" | "number" | "time" | "bool" | "nested" | "bytes";

/** The parts of a batch that are read here; its own type hides the buffers. */
export type Cells = {
  type: DataType;
  length: number;
  nullCount: number;
  validity?: Uint8Array;
  values: Buffers;
  offsets?: Int32Array | BigInt64Array;
  children?: readonly Cells[];
  stride?: number;
};
type Buffers = Uint8Array | Int32Array | Float64Array | BigInt64Array | BigUint64Array;

export function cellsOf(batch: Batch<unknown>): Cells {
  return batch as unknown as Cells;
}

export function isNull({ type, nullCount, validity }: Cells, index: number): boolean {
  if (type.typeId === Type.Null) return true;
  if (nullCount === 0 || validity === undefined || validity.length === 0) return false;
  return ((validity[index >> 3] ?? 0) & (1 << (index & 7))) === 0;
}

/** As people read it: texts without quotes, the rest as in JSON. Null for NULL. */
export function cellText(cells: Cells, index: number): string | null {
  if (isNull(cells, index)) return null;
  return scalarText(cells, index) ?? nestedJson(cells, index);
}

/** As JSON, with exact numbers. */
export function cellJson(cells: Cells, index: number): string {
  if (isNull(cells, index)) return "null";
  const text = scalarText(cells, index);
  if (text === undefined) return nestedJson(cells, index);
  const isBare =
    kindOf(cells.type) === "bool" || (kindOf(cells.type) === "number" && /^-?[\d.]+(e[+-]?\d+)?$/i.test(text));
  return isBare ? text : JSON.stringify(text);
}

export function kindOf(type: DataType): ValueKind {
  switch (type.typeId) {
    case Type.Int:
    case Type.Float:
    case Type.Decimal:
      return "number";
    case Type.Bool:
      return "bool";
    case Type.Date:
    case Type.Timestamp:
    case Type.Time:
      return "time";
    case Type.Binary:
    case Type.LargeBinary:
    case Type.FixedSizeBinary:
      return "bytes";
    case Type.Utf8:
    case Type.LargeUtf8:
    case Type.Interval:
    case Type.Null:
      return "text";
    default:
      return "nested";
  }
}

const decoder = new TextDecoder();

/** Undefined for what has parts. */
function scalarText(cells: Cells, index: number): string | undefined {
  const { type, values } = cells;
  switch (type.typeId) {
    case Type.Bool:
      return ((Number(values[index >> 3]) >> (index & 7)) & 1) === 1 ? "true" : "false";
    case Type.Int:
      return String(values[index]);
    case Type.Float:
      return realText(Number(values[index]), type.precision === 1);
    case Type.Decimal:
      return decimalText(decimalOf(values, index, type.bitWidth), type.scale);
    case Type.Utf8:
    case Type.LargeUtf8:
      return decoder.decode(bytesAt(cells, index));
    case Type.Binary:
    case Type.LargeBinary:
    case Type.FixedSizeBinary:
      return base64(bytesAt(cells, index));
    case Type.Date:
      return dateText(values, index);
    case Type.Time:
      return timeText(BigInt(values[index] ?? 0), DIGITS[type.unit] ?? 0);
    case Type.Timestamp:
      return momentText(BigInt(values[index] ?? 0), DIGITS[type.unit] ?? 0, type.timezone);
    case Type.Interval:
      return intervalText(values, index);
    default:
      return undefined;
  }
}

/** A number that orders values of the column exactly; undefined for those that are ordered as texts. */
export function comparableNumber({ type, values }: Cells, index: number): number | bigint | undefined {
  switch (type.typeId) {
    case Type.Int:
    case Type.Float:
    case Type.Date:
    case Type.Time:
    case Type.Timestamp:
      return values[index];
    case Type.Decimal:
      return decimalOf(values, index, type.bitWidth);
    default:
      return undefined;
  }
}

function nestedJson(cells: Cells, index: number): string {
  const { type, children = [], offsets } = cells;
  const [first] = children;
  const range = (): [number, number] => [Number(offsets?.[index] ?? 0), Number(offsets?.[index + 1] ?? 0)];
  switch (type.typeId) {
    case Type.List:
    case Type.LargeList: {
      return first === undefined ? "[]" : listJson(first, ...range());
    }
    case Type.FixedSizeList: {
      const { stride } = type;
      return first === undefined ? "[]" : listJson(first, index * stride, (index + 1) * stride);
    }
    case Type.Struct: {
      const fields = type.children.map(({ name }, i) => {
        const child = children[i];
        return `${JSON.stringify(name)}:${child === undefined ? "null" : cellJson(child, index)}`;
      });
      return `{${fields.join(",")}}`;
    }
    case Type.Map: {
      const [keys, values] = first?.children ?? [];
      if (keys === undefined || values === undefined) return "{}";
      const [from, to] = range();
      const entries = Array.from({ length: to - from }, (_, i) => {
        return `${JSON.stringify(cellText(keys, from + i) ?? "null")}:${cellJson(values, from + i)}`;
      });
      return `{${entries.join(",")}}`;
    }
    default:
      // What this server does not send; the library knows more types.
      return JSON.stringify((cells as unknown as Batch<unknown>).at(index)) ?? "null";
  }
}

function listJson(items: Cells, from: number, to: number): string {
  return `[${Array.from({ length: to - from }, (_, i) => cellJson(items, from + i)).join(",")}]`;
}

function bytesAt({ type, values, offsets }: Cells, index: number): Uint8Array {
  const bytes = values as Uint8Array;
  if (type.typeId === Type.FixedSizeBinary) return bytes.subarray(index * type.stride, (index + 1) * type.stride);
  return bytes.subarray(Number(offsets?.[index] ?? 0), Number(offsets?.[index + 1] ?? 0));
}

/** How many bytes a text or binary value has, without reading it. */
export function byteLength(cells: Cells, index: number): number | undefined {
  return cells.offsets === undefined || cells.children?.length
    ? undefined
    : Number(cells.offsets[index + 1] ?? 0) - Number(cells.offsets[index] ?? 0);
}

/** The first bytes of a long text, cut where a character ends. */
export function textStart({ values, offsets }: Cells, index: number, bytes: number): string {
  const from = Number(offsets?.[index] ?? 0);
  return decoder.decode((values as Uint8Array).subarray(from, from + bytes)).replace(/\uFFFD$/, "");
}

function realText(value: number, isFloat: boolean): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
  // A float is shown as short as it is exact as a float.
  if (isFloat && !Number.isInteger(value)) {
    for (let digits = 6; digits <= 9; digits++) {
      const short = Number(value.toPrecision(digits));
      if (Math.fround(short) === value) return String(short);
    }
  }
  return Object.is(value, -0) ? "-0" : String(value);
}

function decimalOf(values: Buffers, index: number, bitWidth: number): bigint {
  if (bitWidth === 32) return BigInt(values[index] ?? 0);
  const words = bitWidth / 64;
  let value = 0n;
  for (let word = words - 1; word >= 0; word--) {
    value = (value << 64n) | BigInt.asUintN(64, BigInt(values[index * words + word] ?? 0));
  }
  return BigInt.asIntN(bitWidth, value);
}

export function decimalText(value: bigint, scale: number): string {
  if (scale <= 0) return String(value);
  const digits = String(value < 0n ? -value : value).padStart(scale + 1, "0");
  return `${value < 0n ? "-" : ""}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
}

/** Digits behind the second, by the unit. */
const DIGITS: readonly number[] = [0, 3, 6, 9];
const DAY_MS = 86_400_000;

function dateText(values: Buffers, index: number): string {
  const value = values[index] ?? 0;
  // Days of 32 bits, or milliseconds of 64.
  const ms = typeof value === "bigint" ? Number(value) : value * DAY_MS;
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? `${String(value)} days` : date.toISOString().replace(/T.*/, "");
}

/** `12:34:56.789`; `units` since midnight, with that many digits behind the second. */
export function timeText(units: bigint, digits: number): string {
  const perSecond = 10n ** BigInt(digits);
  const [seconds, part] = [Number(units / perSecond), units % perSecond];
  return `${two(seconds / 3_600)}:${two((seconds / 60) % 60)}:${two(seconds % 60)}${fraction(part, digits)}`;
}

/** RFC 3339 where there is a zone, which is UTC; else a wall clock. The fraction is as short as it is exact. */
export function momentText(units: bigint, digits: number, zone: string | null): string {
  const perSecond = 10n ** BigInt(digits);
  const seconds = units >= 0n ? units / perSecond : -((-units + perSecond - 1n) / perSecond);
  const date = new Date(Number(seconds) * 1_000);
  // Beyond what a date holds: infinity.
  if (Number.isNaN(date.getTime())) return units > 0n ? "infinity" : "-infinity";
  return `${date.toISOString().slice(0, -5)}${fraction(units - seconds * perSecond, digits)}${zone === null || zone === "" ? "" : "Z"}`;
}

function two(value: number): string {
  return String(Math.floor(value)).padStart(2, "0");
}

function fraction(part: bigint, digits: number): string {
  return part === 0n ? "" : `.${String(part).padStart(digits, "0").replace(/0+$/, "")}`;
}

/** Months, days and nanoseconds, of 4, 4 and 8 bytes. */
function intervalText(values: Buffers, index: number): string {
  const { buffer, byteOffset } = values;
  const view = new DataView(buffer, byteOffset + index * 16, 16);
  const [months, days, nanoseconds] = [view.getInt32(0, true), view.getInt32(4, true), view.getBigInt64(8, true)];
  const parts = [months === 0 ? "" : `${months} months`, days === 0 ? "" : `${days} days`];
  const sign = nanoseconds < 0n ? "-" : "";
  if (nanoseconds !== 0n) parts.push(sign + timeText(nanoseconds < 0n ? -nanoseconds : nanoseconds, 9));
  return parts.filter((part) => part !== "").join(" ") || "00:00:00";
}

const CHUNK = 32_768;

function base64(bytes: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < bytes.length; at += CHUNK) {
    binary += String.fromCharCode(...bytes.subarray(at, at + CHUNK));
  }
  return btoa(binary);
}
