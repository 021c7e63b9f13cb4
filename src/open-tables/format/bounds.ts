import type { ColumnStats, ColumnType } from "../../format/types.ts";

/**
 * Bounds of a column of a file, in the bytes of Iceberg's single-value serialization (its specification, appendix D):
 * numbers little-endian, times as microseconds, text as UTF-8. A bound that is not certain is left out, and then no file
 * is skipped by it; one that was cut still bounds every value.
 */
export type Bounds = { lower?: Buffer; upper?: Buffer };

/** Code points of a bound of text, as Iceberg's own writers cut it. */
const TEXT_POINTS = 16;
const NS_PER_US = 1_000n;

export function boundsOf(type: ColumnType, { min, max }: Pick<ColumnStats, "min" | "max">): Bounds {
  const lower = min === undefined ? undefined : lowerOf(type, min);
  const upper = max === undefined ? undefined : upperOf(type, max);
  return { ...(lower !== undefined && { lower }), ...(upper !== undefined && { upper }) };
}

function lowerOf(type: ColumnType, min: string): Buffer | undefined {
  return type.kind === "string" ? Buffer.from(firstPoints(min).join("")) : valueBytes(type, min);
}

function upperOf(type: ColumnType, max: string): Buffer | undefined {
  if (type.kind !== "string") return valueBytes(type, max);
  const points = firstPoints(max);
  const upper = points.join("").length === max.length ? max : roundedUp(points);
  return upper === undefined ? undefined : Buffer.from(upper);
}

function valueBytes({ kind }: ColumnType, text: string): Buffer | undefined {
  switch (kind) {
    case "bool":
      return Buffer.of(text === "true" ? 1 : 0);
    case "int": {
      const bytes = Buffer.alloc(4);
      bytes.writeInt32LE(Number(text));
      return bytes;
    }
    case "long":
      return longBytes(BigInt(text));
    case "timestamp":
      return longBytes(microseconds(BigInt(text)));
    case "real": {
      // DuckDB sorts NaN above all numbers, Iceberg keeps it apart: with one, the largest number is not known.
      const value = Number(text);
      if (!Number.isFinite(value)) return undefined;
      const bytes = Buffer.alloc(8);
      bytes.writeDoubleLE(value);
      return bytes;
    }
    case "string":
    case "dynamic":
    case "vector":
      return undefined;
  }
}

function longBytes(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64LE(value);
  return bytes;
}

/** Rounded down, as the times of files are (`format/parquet-times.ts`), so the bound of the largest is exact, too. */
function microseconds(ns: bigint): bigint {
  const us = ns / NS_PER_US;
  return ns % NS_PER_US < 0n ? us - 1n : us;
}

function firstPoints(text: string): string[] {
  const points: string[] = [];
  for (const point of text) {
    if (points.length === TEXT_POINTS) break;
    points.push(point);
  }
  return points;
}

/** The smallest text of that many code points above all that begin with these; undefined where there is none. */
function roundedUp(points: readonly string[]): string | undefined {
  for (let i = points.length - 1; i >= 0; i--) {
    const next = nextPoint(points[i]?.codePointAt(0) ?? 0);
    if (next !== undefined) return points.slice(0, i).join("") + String.fromCodePoint(next);
  }
  return undefined;
}

const LAST_POINT = 0x10_ff_ff;
const [FIRST_SURROGATE, AFTER_SURROGATES] = [0xd8_00, 0xe0_00];

function nextPoint(point: number): number | undefined {
  if (point === LAST_POINT) return undefined;
  return point + 1 === FIRST_SURROGATE ? AFTER_SURROGATES : point + 1;
}
