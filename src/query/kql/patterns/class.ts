import { readCharacter, readSet } from "./escape.ts";
import type { Reader } from "./reader.ts";
import { codePoint, rangesOf } from "./unicode.ts";

const POSIX = /^\[:\^?(?:alnum|alpha|ascii|blank|cntrl|digit|graph|lower|print|punct|space|upper|word|xdigit):\]/u;

/** A class of characters after its opening bracket. */
export function readClass(reader: Reader): string {
  const out = [reader.take(/^\^/u) === undefined ? "[" : "[^"];
  if (reader.take(/^\]/u) !== undefined) out.push("\\]");
  while (reader.take(/^\]/u) === undefined) out.push(item(reader));
  return `${out.join("")}]`;
}

function item(reader: Reader): string {
  if (reader.flags.x && reader.take(/^\s/u) !== undefined) return "";
  const posix = reader.take(POSIX)?.[0];
  if (posix !== undefined) return posix;
  if (reader.take(/^(?:&&|--|~~)/u) !== undefined) throw reader.error("operations on classes are not supported");
  if (reader.take(/^\[/u) !== undefined) throw reader.error("a class inside a class is not supported");
  const from = member(reader);
  if (typeof from === "string") return from;
  if (reader.take(/^-(?=[^\]-])/u) === undefined) return codePoint(from);
  const to = member(reader);
  if (typeof to === "string" || to < from) throw reader.error("a range of characters ends before it begins");
  return `${codePoint(from)}-${codePoint(to)}`;
}

/** One character by its number, or a set of them. */
function member(reader: Reader): number | string {
  if (reader.take(/^\\/u) === undefined) return reader.next().codePointAt(0) ?? 0;
  const set = readSet(reader);
  if (set === undefined) return readCharacter(reader);
  return set.isNegated ? complement(reader, set.ranges) : set.ranges;
}

/** RE2 has no complement inside a class: the ranges are counted out. */
function complement(reader: Reader, ranges: string): string {
  const own = reader.flags.u ? ranges : ranges.replace("\\t-\\r ", "\\t-\\r\\x20");
  return rangesOf(`[^${own.replaceAll("\\x{", "\\u{")}]`);
}
