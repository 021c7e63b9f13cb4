import { EngineError } from "../../core/errors.ts";
import type { Random } from "../../core/random.ts";
import { ColumnSet } from "../columns/column-set.ts";
import { encodeTlm } from "../tlm.ts";
import { parseColumnType, type ColumnSpec } from "../types.ts";
import { byteScanner } from "./byte-scanner.ts";
import { jsonScanner } from "./json-scanner.ts";
import type { BodyScanner, NdjsonBody } from "./scanner.ts";

/**
 * Holds the byte scanner against the reference: generated and mutated documents go through both, several bodies into
 * one extent, and what comes out (bytes of the extent, new columns, rows and errors of each body) must be the same.
 */
type Outcome = { rows: number } | { error: unknown };

export type Difference = { bodies: string[]; expected: unknown; actual: unknown };

const ARRIVED_AT_NS = 1_767_225_600_000_000_007n;

export function specs(text: string): ColumnSpec[] {
  return text.split(/,\s*(?![^(]*\))/).map((part) => {
    const [name = "", type = ""] = part.split(":");
    const parsed = parseColumnType(type);
    if (parsed === undefined) throw new Error(`no type: ${part}`);
    return { name: name.trim(), type: parsed };
  });
}

/** Runs the bodies through both scanners; undefined when they agree. */
export function difference(columns: readonly ColumnSpec[], bodies: readonly NdjsonBody[]): Difference | undefined {
  const expected = outcomeOf(jsonScanner, columns, bodies);
  const actual = outcomeOf(byteScanner, columns, bodies);
  if (expected.outcomes === actual.outcomes && Buffer.compare(expected.extent, actual.extent) === 0) return undefined;
  const shown = bodies.map(({ bytes }) => Buffer.from(bytes).toString("latin1"));
  return { bodies: shown, expected: describe(expected), actual: describe(actual) };
}

function outcomeOf(scanner: BodyScanner, columns: readonly ColumnSpec[], bodies: readonly NdjsonBody[]) {
  const set = new ColumnSet(columns);
  const outcomes = bodies.map((body) => scan(scanner, body, set));
  const extent = set.rows === 0 ? new Uint8Array(0) : encodeTlm(set);
  return { outcomes: JSON.stringify({ outcomes, newColumns: set.newColumns }), extent };
}

function describe({ outcomes, extent }: { outcomes: string; extent: Uint8Array }) {
  return { outcomes, extent: Buffer.from(extent).toString("latin1").slice(0, 4_000) };
}

function scan(scanner: BodyScanner, body: NdjsonBody, set: ColumnSet): Outcome {
  try {
    return { rows: scanner.scan(body, set) };
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    return { error: [error.code, error.message, error.details] };
  }
}

const KEYS = [
  "at", "At", "timestamp", "_timestamp", "Timestamp", "body", "Body", "label", "props", "s", "S", "i", "l", "r", "b",
  "t", "d", "v", "new1", "new2", "new3", "a b", "é", "__proto__", "constructor", "", "x\\u0041", "q\\\"q", "\\n",
]; // oxfmt-ignore

const NUMBERS = [
  "0", "-0", "1", "-1", "7", "42", "2147483647", "2147483648", "-2147483648", "-2147483649", "9007199254740991",
  "9007199254740993", "999999999999999", "1000000000000000", "9223372036854775807", "9223372036854775808",
  "-9223372036854775808", "-9223372036854775809", "1e3", "1E3", "1e+3", "1e-3", "3.0", "3.5", "0.1", "0.30000000000000004",
  "1e22", "1e23", "1.7976931348623157e308", "1e309", "-1e309", "5e-324", "2e-324", "4.35", "123456789012345.6",
  "0.000001", "1767225600", "1767225600.25", "1767225600.123456789", "1767225600000", "1767225600000000",
  "1767225600000000000", "1e18", "01", "1.", ".5", "+1", "1e", "--1", "0x1", "NaN", "Infinity", "-", "00", "1.5e3",
]; // oxfmt-ignore

const STRINGS = [
  '""', '"x"', '"hello world"', '"\\""', '"\\\\"', '"\\/"', '"\\b\\f\\n\\r\\t"', '"\\u0000"', '"\\u0041"', '"\\ud83d\\ude00"',
  '"\\ud83d"', '"\\ude00"', '"\\ud83dx"', '"😀"', '"é"', '"\u2028"', '"\\x"', '"\\u12"', '"\\u12g4"', '"a\u0001"', '"open',
  '"2026-01-02T03:04:05Z"', '"2026-01-02T03:04:05.123456789+02:00"', '"2026-01-02 03:04:05Z"', '"2026-02-29T00:00:00Z"',
  '"2024-02-29T23:59:60Z"', '"1969-12-31T23:59:59.999999999Z"', '"1677-09-21T00:12:43.145224193Z"',
  '"2262-04-11T23:47:16.854775807Z"', '"2262-04-11T23:47:16.854775808Z"', '"0001-01-01T00:00:00Z"', '"9999-12-31T00:00:00Z"',
  '"2026-01-02t03:04:05z"', '"2026-01-02T03:04:05.1234567891Z"', '"2026-01-02T03:04:05-00:00"', '"2026-1-2T03:04:05Z"',
  '"2026-01-02T24:00:00Z"', '"2026-01-02T03:04:05"', '"1900-02-29T00:00:00Z"', '"2000-02-29T12:00:00-23:59"',
]; // oxfmt-ignore

const OTHERS = [
  "true",
  "false",
  "null",
  "tru",
  "nul",
  "True",
  "[]",
  "{}",
  "[1,2]",
  "[1, 2.5]",
  "[1,2,3]",
  "[1,null]",
  "[ ]",
  "{ }",
];

/** A generated body: mostly rows of one shape, some nasty, sometimes with bytes changed. */
export function randomBody(random: Random): NdjsonBody {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random.next() * list.length)] as T;
  const chance = (probability: number) => random.next() < probability;
  const space = () => (chance(0.05) ? pick([" ", "\t", "  ", "\r"]) : "");
  const value = (depth: number): string => {
    const kind = random.next();
    if (kind < 0.35) return pick(NUMBERS.slice(0, chance(0.2) ? undefined : 32));
    if (kind < 0.75) return pick(STRINGS.slice(0, chance(0.2) ? undefined : 8));
    if (kind < 0.85 || depth > 4) return pick(OTHERS.slice(0, chance(0.1) ? undefined : 3));
    return chance(0.5)
      ? array(depth)
      : object(depth, ["k", "l", "m", "2", "1", "k\\u0041"], Math.floor(random.next() * 4));
  };
  const array = (depth: number): string => {
    const items = Array.from({ length: Math.floor(random.next() * 4) }, () => space() + value(depth + 1) + space());
    return `[${items.join(",")}]`;
  };
  const object = (depth: number, keys: readonly string[], count: number): string => {
    const members = Array.from(
      { length: count },
      () => `${space()}"${pick(keys)}"${space()}:${space()}${value(depth + 1)}${space()}`,
    );
    return `{${members.join(",")}}`;
  };
  const ordinary = (n: number) =>
    `{"at":"2026-01-02T03:04:${String(n % 60).padStart(2, "0")}.5Z","body":"row ${n}","i":${n},"l":${n},"r":${n}.25,"b":true,"v":[${n},0.5],"s":"s"}`;
  const line = (n: number): string => {
    if (chance(0.5)) return ordinary(n);
    if (chance(0.05)) return pick(["", " ", "\r", "[1]", "1", "null", "{}", "\ufeff{}", '{"a":1', "{}}", "{} {}"]);
    return `${space()}${object(1, KEYS, Math.floor(random.next() * 8))}${space()}`;
  };
  const lines = Array.from({ length: 1 + Math.floor(random.next() * 6) }, (_, n) => line(n));
  const text = lines.join("\n") + (chance(0.7) ? "\n" : "");
  const bytes = new Uint8Array(Buffer.from(text));
  if (chance(0.15)) {
    for (let i = 0; i < 2; i++) bytes[Math.floor(random.next() * bytes.length)] = Math.floor(random.next() * 256);
  }
  return { bytes, evolve: chance(0.8), arrivedAtNs: ARRIVED_AT_NS };
}
