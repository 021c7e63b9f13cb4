import { isObject, objectsOf, textOf, type Json, type JsonObject } from "./tree.ts";

/**
 * Rounding a moment down to a width that is always as long, by arithmetic on its nanoseconds: a third of the time of
 * `date_trunc` and `time_bucket`, which take microseconds apart by calendar, and a single mention of the moment.
 */
type Floor = {
  widthNs: bigint;
  /** A moment that is a multiple. */
  originNs: bigint;
};

const NS_PER_SECOND = 1_000_000_000n;
const SECONDS: Readonly<Record<string, bigint>> = {
  second: 1n,
  minute: 60n,
  hour: 3_600n,
  day: 86_400n,
  week: 604_800n,
};

/** Buckets of `time_bucket`, and weeks of `date_trunc`, begin with a Monday: 2000-01-03. */
const MONDAY_NS = 946_857_600n * NS_PER_SECOND;

/** What `date_trunc(part, …)` rounds down to. */
export function truncFloor(part: JsonObject): Floor | undefined {
  const unit = textLiteral(part)?.toLowerCase() ?? "";
  const seconds = SECONDS[unit.replace(/s$/, "")];
  return seconds === undefined
    ? undefined
    : { widthNs: seconds * NS_PER_SECOND, originNs: unit.startsWith("week") ? MONDAY_NS : 0n };
}

/** What `time_bucket(width, …)` rounds down to. */
export function bucketFloor(width: JsonObject): Floor | undefined {
  const widthNs = widthOf(width);
  return widthNs === undefined || widthNs <= 0n || widthNs > MAX_WIDTH_NS
    ? undefined
    : { widthNs, originNs: MONDAY_NS };
}

/** Wider ones are rare, and a bucket may then begin before the first moment that nanoseconds reach. */
const MAX_WIDTH_NS = 31n * 86_400n * NS_PER_SECOND;

/** `15 minutes`, alone or cast to an interval. */
const WIDTH = /^\s*(\d{1,9})\s*([a-z]+?)s?\s*$/i;

function widthOf(node: JsonObject): bigint | undefined {
  const type = node["cast_type"];
  const isInterval = node["class"] === "CAST" && isObject(type) && type["id"] === "INTERVAL";
  const text = textLiteral(isInterval && isObject(node["child"]) ? node["child"] : node);
  const [, count, unit = ""] =
    text === undefined
      ? [undefined, integerLiteral(objectsOf(node["children"])[0]), unitOfCall(node)]
      : (WIDTH.exec(text) ?? []);
  const seconds = SECONDS[unit.toLowerCase()];
  return count === undefined || seconds === undefined ? undefined : BigInt(count) * seconds * NS_PER_SECOND;
}

/** `INTERVAL 15 MINUTE` is `to_minutes(CAST(trunc(CAST(15 AS DOUBLE)) AS BIGINT))`. */
function unitOfCall(node: JsonObject): string {
  return /^to_([a-z]+)s$/.exec(node["class"] === "FUNCTION" ? textOf(node["function_name"]) : "")?.[1] ?? "";
}

function integerLiteral(node: JsonObject | undefined): string | undefined {
  if (node === undefined) return undefined;
  if (node["class"] === "CAST") return isObject(node["child"]) ? integerLiteral(node["child"]) : undefined;
  if (node["class"] === "FUNCTION" && textOf(node["function_name"]) === "trunc") {
    return integerLiteral(objectsOf(node["children"])[0]);
  }
  const value = constantOf(node);
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? String(value) : undefined;
}

function textLiteral(node: JsonObject): string | undefined {
  const value = constantOf(node);
  return typeof value === "string" ? value : undefined;
}

function constantOf(node: JsonObject): Json | undefined {
  const { value } = node;
  return node["class"] === "CONSTANT" && isObject(value) && value["is_null"] !== true ? value["value"] : undefined;
}

/**
 * The arguments of `engine_floor` after the moment. The factors of two are taken out of the width by a shift, which
 * rounds down; what is left of the moment has room for an addend that makes it positive, and the division, which rounds
 * towards zero, rounds down as well.
 */
export function floorArguments({ widthNs, originNs }: Floor): bigint[] {
  // The least multiple that is not negative: what lies between a moment and one further away may overflow.
  const leastNs = originNs % widthNs;
  let shift = 0n;
  while ((widthNs >> shift) % 2n === 0n && (leastNs >> shift) % 2n === 0n) shift++;
  const divisor = widthNs >> shift;
  const least = leastNs >> shift;
  const periods = (1n << (63n - shift)) / divisor + 2n;
  return [shift, periods * divisor - least, divisor, periods, widthNs, leastNs];
}
