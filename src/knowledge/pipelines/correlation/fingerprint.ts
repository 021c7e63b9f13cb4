import { digestOf } from "../../memory/ids.ts";
import { PIPELINE_LIMITS } from "../limits.ts";

/**
 * What differs from one occurrence of a failure to the next, in the order in which it is taken out: what contains others
 * goes first. Every repetition is bounded or of one class of characters, so that a message from outside costs no more than
 * its length.
 */
const VARYING: readonly (readonly [RegExp, string])[] = [
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, "<uuid>"],
  [/\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?/g, "<time>"],
  [/\b0x[0-9a-f]{1,64}\b/gi, "<hex>"],
  [/\b(?=[a-f]{0,64}\d)[0-9a-f]{7,64}\b/gi, "<hex>"],
  [/\d+(?:[.,]\d+)*/g, "<n>"],
];

/** A message without what differs each time: numbers, hexadecimal digits, times, UUIDs. */
export function normalised(message: string): string {
  let text = message;
  for (const [form, placeholder] of VARYING) text = text.replace(form, placeholder);
  return text.replaceAll(/\s+/gu, " ").trim().toLowerCase().slice(0, PIPELINE_LIMITS.fingerprintChars);
}

/** The same for what is the same failure of a repository. */
export function fingerprintOf(repository: string, message: string): string {
  return digestOf([repository, normalised(message)]);
}
