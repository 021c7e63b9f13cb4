import type { FilterProbe } from "./filter.ts";
import { GRAM_BYTES } from "./gram-filter.ts";
import { hashRange, mixed } from "./hash.ts";

/** Of a needle no more grams are asked for: the first ones say it all, and a needle may be megabytes. */
const MAX_GRAMS = 256;
/** Longer lists are in most extents somewhere. */
const MAX_VALUES = 1_024;

/** Asks for any of the values; undefined where that is too much to ask. */
export function probeValues(values: readonly string[]): FilterProbe | undefined {
  if (values.length > MAX_VALUES) return undefined;
  return { kind: "values", anyOf: values.map((value) => [hashOfText(value)]) };
}

/** Asks for all the needles in one text; undefined when all of them are too short. */
export function probeNeedles(needles: readonly string[]): FilterProbe | undefined {
  const grams = new Set(needles.flatMap(gramsOf));
  return grams.size === 0 ? undefined : { kind: "grams", anyOf: [[...grams]] };
}

function hashOfText(text: string): number {
  const view = utf8Of(text);
  return hashRange(view, 0, view.byteLength);
}

function gramsOf(needle: string): number[] {
  const view = utf8Of(needle);
  const count = Math.min(view.byteLength - GRAM_BYTES + 1, MAX_GRAMS);
  return Array.from({ length: Math.max(count, 0) }, (_, at) => mixed(view.getInt32(at, true)));
}

function utf8Of(text: string): DataView {
  const bytes = new TextEncoder().encode(text);
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}
