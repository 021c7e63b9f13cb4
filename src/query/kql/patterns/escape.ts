import type { Reader } from "./reader.ts";
import { ASCII, codePoint, propertyRanges, UNICODE } from "./unicode.ts";

const CONTROLS: Readonly<Record<string, number>> = { a: 7, f: 12, t: 9, n: 10, r: 13, v: 11 };

/** What follows a backslash outside of brackets. */
export function readEscape(reader: Reader): string {
  const set = readSet(reader);
  if (set !== undefined) return set.isNegated ? `[^${set.ranges}]` : `[${set.ranges}]`;
  const char = reader.peek();
  if (char === "A" || char === "z") return `\\${reader.next()}`;
  if (char === "b" || char === "B") return boundary(reader);
  return codePoint(readCharacter(reader));
}

function boundary(reader: Reader): string {
  const char = reader.next();
  if (reader.take(/^\{(?:start|end)/u) !== undefined) throw reader.error(`half a word boundary is not supported`);
  if (reader.flags.u) reader.hasWordBoundary = true;
  return `\\${char}`;
}

type CharacterSet = { ranges: string; isNegated: boolean };

/** A set of characters after a backslash; undefined, with nothing read, where there is none. */
export function readSet(reader: Reader): CharacterSet | undefined {
  const perl = reader.take(/^[dDsSwW]/u)?.[0];
  if (perl !== undefined) {
    const sets = reader.flags.u ? UNICODE : ASCII;
    const kind = ({ d: "digit", s: "space", w: "word" } as const)[perl.toLowerCase() as "d" | "s" | "w"];
    return { ranges: sets[kind], isNegated: perl !== perl.toLowerCase() };
  }
  const property = reader.take(/^(?<sign>[pP])(?:\{(?<not>\^?)(?<name>[^}]+)\}|(?<letter>[A-Za-z]))/u)?.groups;
  if (property === undefined) return undefined;
  const { sign, not = "", name = "", letter = "" } = property;
  const ranges = propertyRanges(name + letter, (sign === "P") !== (not === "^"));
  if (ranges === undefined) throw reader.error(`no property of Unicode is called ${name}${letter}`);
  return { ranges, isNegated: false };
}

/** The number of the one character after a backslash. */
export function readCharacter(reader: Reader): number {
  const hex = reader.take(
    /^(?:[xuU]\{(?<braced>[0-9A-Fa-f]{1,8})\}|x(?<two>[0-9A-Fa-f]{2})|u(?<four>[0-9A-Fa-f]{4})|U(?<eight>[0-9A-Fa-f]{8}))/u,
  )?.groups;
  if (hex !== undefined) {
    const code = Number.parseInt(hex["braced"] ?? hex["two"] ?? hex["four"] ?? hex["eight"] ?? "", 16);
    if (code > 0x10ffff) throw reader.error("there is no such character");
    return code;
  }
  const octal = reader.take(/^[0-7]{1,3}/u)?.[0];
  if (octal !== undefined) return Number.parseInt(octal, 8);
  const char = reader.next();
  const control = CONTROLS[char];
  if (control !== undefined) return control;
  if (/[0-9A-Za-z<>]/u.test(char)) throw reader.error(`\\${char} is not supported`);
  return char.codePointAt(0) ?? 0;
}
