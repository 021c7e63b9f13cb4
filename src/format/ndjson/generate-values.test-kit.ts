import type { Random } from "../../core/random.ts";

/** Generators of JSON tokens for differential tests: ordinary ones, and those on which readers are known to fail. */
export class Chooser {
  readonly #random: Random;
  /** Half of all cases are clean but for what their generator is about: or hardly a row of many fields would be. */
  readonly #isClean: boolean;

  constructor(random: Random) {
    this.#random = random;
    this.#isClean = random.next() < 0.5;
  }

  /** An integer in `[from, to]`. */
  int(from: number, to: number): number {
    return from + Math.floor(this.#random.next() * (to - from + 1));
  }

  chance(probability: number): boolean {
    return this.#random.next() < probability;
  }

  /** The same, but never in a clean case. */
  nasty(probability: number): boolean {
    return !this.#isClean && this.chance(probability);
  }

  pick<T>(list: readonly T[]): T {
    const item = list[this.int(0, list.length - 1)];
    if (item === undefined) throw new Error("nothing to pick from");
    return item;
  }

  times<T>(count: number, make: (index: number) => T): T[] {
    return Array.from({ length: count }, (_, index) => make(index));
  }

  shuffled<T>(list: readonly T[]): T[] {
    return list
      .map((item) => ({ item, rank: this.#random.next() }))
      .sort((a, b) => a.rank - b.rank)
      .map(({ item }) => item);
  }
}

/** White space between tokens: mostly none. */
export function space(choose: Chooser, probability = 0.05): string {
  return choose.chance(probability) ? choose.pick([" ", "\t", "  ", "\r", " \t\r "]) : "";
}

const NASTY_NUMBERS = [
  "0", "-0", "0.0", "-0.0", "-1", "2147483647", "2147483648", "-2147483648", "-2147483649", "9007199254740991",
  "9007199254740992", "9007199254740993", "-9007199254740993", "999999999999999", "1000000000000000",
  "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "1e3", "1E3", "1e+3",
  "1e-3", "3.0", "30e-1", "1e22", "1e23", "123456789012345e22", "123456789012345e23", "1.7976931348623157e308",
  "1.7976931348623159e308", "1e309", "-1e309", "5e-324", "2.4703282292062327e-324", "2.4703282292062328e-324",
  "2.2250738585072011e-308", "2.2250738585072014e-308", "4.35", "0.30000000000000004", "123456789012345.6",
  "9007199254740992.5", "9007199254740993.0", "0.000001", "1e400", "1e-400", "0e999", "4294967295", "4294967296",
  "-4294967296", "-4294967297", "8589934591", "99999999999", "100000000000", "99999999999999", "100000000000000",
  "1767225600", "1767225600.25", "1767225600.123456789", "1767225600.1234567891", "1767225600000", "1767225600000.5",
  "1767225600000000", "1767225600000000000", "1e18", "9223372036", "9223372036.854775807", "9223372037", "-9223372036",
  "-1.5", "-0.000000001", "0.0000000001", "3.4028235e38", "3.4028236e38", "1.401298464324817e-45", "16777217",
]; // oxfmt-ignore

const NO_NUMBERS = [
  "01",
  "1.",
  ".5",
  "+1",
  "1e",
  "1e+",
  "--1",
  "-",
  "-a",
  "0x1",
  "NaN",
  "Infinity",
  "00",
  "-01",
  "1.e3",
];

/** A number token of any length; rarely something that is none. */
export function number(choose: Chooser): string {
  if (choose.nasty(0.01)) return choose.pick(NO_NUMBERS);
  if (choose.nasty(0.5)) return choose.pick(NASTY_NUMBERS);
  const sign = choose.chance(0.25) ? "-" : "";
  const fraction = choose.chance(0.4) ? `.${digits(choose, choose.int(1, 20))}` : "";
  return `${sign}${integer(choose, 22)}${fraction}${choose.nasty(0.3) ? power(choose) : ""}`;
}

/** Digits without a leading zero, up to so many. */
export function integer(choose: Chooser, most: number): string {
  const length = choose.int(1, most);
  return length === 1 ? digits(choose, 1) : String(choose.int(1, 9)) + digits(choose, length - 1);
}

function digits(choose: Chooser, count: number): string {
  return choose.times(count, () => (choose.chance(0.2) ? "0" : String(choose.int(0, 9)))).join("");
}

function power(choose: Chooser): string {
  return choose.pick(["e", "E"]) + choose.pick(["", "+", "-"]) + String(choose.int(0, choose.chance(0.8) ? 25 : 330));
}

const two = (value: number) => String(value).padStart(2, "0");

const NASTY_TIMES = [
  "2024-02-29T23:59:60Z", "2016-12-31T23:59:60Z", "1969-12-31T23:59:59.999999999Z", "1970-01-01T00:00:00Z",
  "1677-09-21T00:12:43.145224191Z", "1677-09-21T00:12:43.145224192Z", "1677-12-31T23:59:59.999999999Z",
  "1678-01-01T00:00:00+23:59", "2261-12-31T23:59:59.999999999-23:59", "2262-01-01T00:00:00Z",
  "2262-04-11T23:47:16.854775807Z", "2262-04-11T23:47:16.854775808Z", "0000-01-01T00:00:00Z", "9999-12-31T00:00:00Z",
  "2026-01-02 03:04:05Z", "2026-01-02t03:04:05z", "2026-01-02T03:04:05", "2026-1-2T03:04:05Z", "2026-01-02T24:00:00Z",
  "2026-01-02T03:60:05Z", "2026-01-02T03:04:61Z", "2026-01-02T03:04:05-00:00", "2026-01-02T03:04:05+24:00",
  "2026-01-02T03:04:05+23:60", "2026-01-02T03:04:05+0100", "2026-01-02T03:04:05.Z", "2026-01-02T03:04:05,5Z",
  "2026-01-02T03:04:05ZZ", "2026-01-02T03:04:05+01:00Z", "2026-01-02T03:04:05Z ", " 2026-01-02T03:04:05Z",
  "2026-01-02T03:04:05\\u005a", "2026\\u002d01-02T03:04:05Z", "2026-01-02T03:04:0５Z", "2026/01/02T03:04:05Z",
  "2026-01-02T03-04-05Z", "20260102T030405Z", "", "now", "2026-01-02",
  "2026-01-02 03:04:05", "2026-01-02 03:04:05.5", "2026-01-02T03:04:05.123456789", "2026-01-02T03:04:05.1234567891",
  "2026-01-02T03:04", "2026-01-02T", "2026-01-02 ", "2026-01-02Z", "2026-01-02+01:00", "2026-02-29", "2024-02-29",
  "2026-02-30", "2026-13-01", "2026-00-10", "0000-00-00", "1678-01-01", "1677-12-31", "2262-01-01", "2262-04-12",
  "1767225600", "-1767225600.5", "1767225600123456789", "9223372036854775808", "-0", "0", "00", "+1", "1e9", "1e400", ".5",
  "1.", "0x10", "1_000", "Infinity", "NaN", "1 ", "2026", "20260102", "\\u0031", "1\\n",
]; // oxfmt-ignore

/** A timestamp token around the boundaries of the calendar; mostly one that exists, now and then a number. */
export function time(choose: Chooser): string {
  if (choose.nasty(0.2)) return `"${choose.pick(NASTY_TIMES)}"`;
  if (choose.nasty(0.3)) return choose.chance(0.3) ? `"${epoch(choose)}"` : epoch(choose);
  const exists = !choose.nasty(0.2);
  const year = exists ? choose.pick([choose.int(1678, 2261), choose.int(1969, 2030), 1700, 1900, 2000, 2024, 2100])
    : choose.int(0, 9999); // oxfmt-ignore
  const month = exists ? choose.int(1, 12) : choose.int(0, 13);
  const day = exists ? choose.pick([1, choose.int(1, 28), 28]) : choose.int(0, 32);
  const lastDay = choose.nasty(0.4) ? choose.pick(["02-29", "02-28", "12-31", "04-30", "06-31", "03-01"]) : undefined;
  const clock = [choose.pick([0, 23, choose.int(0, 23)]), choose.pick([0, 59, choose.int(0, 59)]), choose.int(0, 59)];
  const fraction = choose.chance(0.6) ? `.${digits(choose, choose.int(1, choose.nasty(0.2) ? 12 : 9))}` : "";
  const zone = choose.chance(0.6)
    ? choose.pick(["Z", "Z", "z", ""])
    : `${choose.pick(["+", "-"])}${two(choose.int(0, choose.nasty(0.1) ? 99 : 23))}:${two(choose.int(0, 59))}`;
  const date = `${String(year).padStart(4, "0")}-${lastDay ?? `${two(month)}-${two(day)}`}`;
  if (choose.chance(0.05)) return `"${date}"`;
  return `"${date}${choose.pick(["T", "T", " ", "t"])}${clock.map(two).join(":")}${fraction}${zone}"`;
}

function epoch(choose: Chooser): string {
  if (choose.chance(0.3)) return number(choose);
  const sign = choose.chance(0.2) ? "-" : "";
  const fraction = choose.chance(0.4) ? `.${digits(choose, choose.int(1, 10))}` : "";
  return sign + integer(choose, choose.pick([6, 10, 12, 14, 15, 17, 19])) + fraction;
}

/** Spellings of characters inside a string, from the ordinary to what is refused. */
const ORDINARY = ["a", "b", "z", "0", " ", "-", ":", ",", "{", "}", "[", "]", "\u007f", "Q", "~", "!"];
const WIDE = [
  "é",
  "ß",
  "\u0080",
  "\u07ff",
  "\u0800",
  "€",
  "\u2028",
  "\uffff",
  "\ufeff",
  "\ud7ff",
  "\ue000",
  "😀",
  "\u{10ffff}",
];
const SHORT_ESCAPES = ['\\"', "\\\\", "\\b", "\\f", "\\n", "\\r", "\\t"];
const ESCAPES = [
  "\\/", "\\u0000", "\\u001f", "\\u0020", "\\u0022", "\\u005C", "\\u007f", "\\u0080", "\\u07FF", "\\u0800", "\\uffff",
  "\\ud7ff", "\\uE000", "\\ud83d\\ude00", "\\uDBFF\\uDFFF", "\\ud800\\udc00",
]; // oxfmt-ignore
const REFUSED = [
  "\\ud83d", "\\ude00", "\\ud800", "\\udbff", "\\udc00", "\\udfff", "\\udfff\\udc00", "\\ud800\\ue000", "\\ud800\\udbff", "\\ud83dx", "\\ud83d\\n", "\\ud83d\\ud83d\\ude00", "\\ude00\\ud83d", "\\x", "\\u12", "\\u12g4",
  "\\U0041", "\\'", "\u0000", "\u0001", "\u001f", "\t", "\r", '"', "\\",
]; // oxfmt-ignore

const LENGTHS = [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 255, 256, 257];

/** What stands between the quotes of a string. */
export function characters(choose: Chooser): string {
  const lists = [ORDINARY];
  if (choose.chance(0.4)) lists.push(WIDE);
  if (choose.chance(0.3)) lists.push(SHORT_ESCAPES);
  if (choose.nasty(0.4)) lists.push(ESCAPES);
  const length = choose.chance(0.01) ? choose.int(4_090, 4_100) : choose.pick(LENGTHS);
  const run = choose.chance(0.5) ? "a".repeat(choose.int(0, length)) : "";
  const text = run + choose.times(length - run.length, () => choose.pick(choose.pick(lists))).join("");
  if (!choose.nasty(0.02)) return text;
  const at = choose.int(0, text.length);
  return text.slice(0, at) + choose.pick(REFUSED) + text.slice(at);
}

export function string(choose: Chooser): string {
  return `"${characters(choose)}"`;
}

const LITERALS = ["true", "false", "null"];
const NO_LITERALS = ["tru", "nul", "True", "NULL", "fals", "nulll", "truee", "undefined", "t", "n"];

export function literal(choose: Chooser): string {
  return choose.pick(choose.nasty(0.01) ? NO_LITERALS : LITERALS);
}

const INNER_KEYS = ["k", "l", "m", "2", "1", "10", "__proto__", "constructor", "", "é", "a\\nb"];

/** A value of any kind, with white space and duplicate keys at any depth. */
export function json(choose: Chooser, depth = 0): string {
  const kind = choose.int(0, depth > 4 ? 2 : 4);
  if (kind === 0) return number(choose);
  if (kind === 1) return string(choose);
  if (kind === 2) return literal(choose);
  return kind === 3 ? array(choose, depth) : object(choose, depth);
}

function array(choose: Chooser, depth: number): string {
  const items = choose.times(choose.int(0, 4), () => `${space(choose)}${json(choose, depth + 1)}${space(choose)}`);
  return `[${items.length === 0 ? space(choose) : items.join(",")}]`;
}

function object(choose: Chooser, depth: number): string {
  const names = choose.nasty(0.4) ? choose.times(6, () => choose.pick(INNER_KEYS)) : choose.shuffled(INNER_KEYS);
  const escaped = choose.nasty(0.1);
  const members = names.slice(0, choose.int(0, 5)).map((name) => {
    const key = escaped && name === "k" ? "\\u006b" : name;
    return member(choose, `"${key}"`, json(choose, depth + 1));
  });
  return `{${members.length === 0 ? space(choose) : members.join(",")}}`;
}

/** `"key":value` with white space where it may be. */
export function member(choose: Chooser, key: string, value: string, probability = 0.05): string {
  const gap = () => space(choose, probability);
  return `${gap()}${key}${gap()}:${gap()}${value}${gap()}`;
}

/** Arrays and objects inside each other, closed properly. */
export function nested(choose: Chooser, levels: number): string {
  const opening = choose.times(levels, () => choose.pick(["[", '{"a":', '{ "b" :', "[ ", '[1,"]",']));
  const closing = opening.toReversed().map((open) => (open.trimStart().startsWith("[") ? "]" : "}"));
  return `${opening.join("")}1${closing.join("")}`;
}

/** An object of many keys, sometimes one of them twice. */
export function manyKeys(choose: Chooser, count: number): string {
  const keys = choose.times(count, (i) => `key${i}`);
  if (choose.chance(0.4)) keys.push(choose.pick(keys));
  return `{${keys.map((key) => member(choose, `"${key}"`, number(choose), 0.01)).join(",")}}`;
}
