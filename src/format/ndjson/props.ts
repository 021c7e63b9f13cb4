import { kindAt, stringEnd, stringValue, valueEnd } from "./json-text.ts";
import { CATCH_ALL_COLUMN } from "../types.ts";

/** A field on its way to `props`: its name, and its value as compact JSON. */
export type Extra = { name: string; json: string };

/**
 * The row's `props` with the extras appended, in order.
 *
 * - Without a `props` of its own, the row gets an object of the extras.
 * - Its own object keeps its members, and the extras follow. An extra whose name is taken there goes by the first free
 *   of `name_2`, `name_3`, …: both values survive, and the one that the client put into `props` keeps its place.
 * - Its own value of another type becomes the member `props` of a new object, before the extras.
 *
 * `own` is compact JSON; so is the result.
 */
export function mergeProps(own: string | undefined, extras: readonly Extra[]): string {
  const base = own === undefined ? "{}" : own.startsWith("{") ? own : `{"${CATCH_ALL_COLUMN}":${own}}`;
  const present = keysOf(base);
  const taken = new Set([...present, ...extras.map((extra) => extra.name)]);
  let out = base.slice(0, -1);
  for (const { name, json } of extras) {
    const free = present.has(name) ? freeName(name, taken) : name;
    out += `${out === "{" ? "" : ","}${JSON.stringify(free)}:${json}`;
  }
  return `${out}}`;
}

function freeName(name: string, taken: Set<string>): string {
  let number = 2;
  while (taken.has(`${name}_${number}`)) number++;
  taken.add(`${name}_${number}`);
  return `${name}_${number}`;
}

/** The keys of an object in compact JSON. */
function keysOf(object: string): Set<string> {
  const keys = new Set<string>();
  let at = 1;
  while (object[at] === '"') {
    const keyEnd = stringEnd(object, at);
    keys.add(stringValue(object, at, keyEnd));
    at = valueEnd(object, keyEnd + 1, kindAt(object, keyEnd + 1)) + 1;
  }
  return keys;
}
