import { dateOf, datetimeText, floorTo, moment, span, timespanText, Undecided, wrapped } from "./values.test-kit.ts";
import type { Json, Type, Value } from "./values.test-kit.ts";

/** A scalar operator or function: its types, how it is written, and what the reference says it gives. */
export type Operation = {
  result: Type;
  args: readonly Type[];
  text: (...args: string[]) => string;
  /** Called for nulls as well. */
  value: (...args: Value[]) => Value;
};

type Own<T> = (...args: T[]) => Value;

/** Null where an argument is null: a null is sticky. Strings have no null. */
function sticky<T extends Value>(own: Own<T>): (...args: Value[]) => Value {
  return (...args) => (args.some((one) => one === null) ? null : own(...(args as T[])));
}

function infix(sign: string): (...args: string[]) => string {
  return (a, b) => `(${a} ${sign} ${b})`;
}

function call(name: string): (...args: string[]) => string {
  return (...args) => `${name}(${args.join(", ")})`;
}

const COMPARED: readonly Type[] = ["long", "real", "datetime", "timespan"];
const ALL: readonly Type[] = ["bool", "long", "real", "string", "datetime", "timespan"];

function decided(value: Value): Value {
  if (typeof value === "number" && Number.isNaN(value)) throw new Undecided("NaN is compared");
  return value;
}

/** With one null `==` is false and `!=` is true, with two both are null. */
function equality(isNot: boolean): (...args: Value[]) => Value {
  return (a = null, b = null) => {
    if (a === null && b === null) return null;
    if (a === null || b === null) return isNot;
    return (decided(a) === decided(b)) !== isNot;
  };
}

const ORDER: Readonly<Record<string, (a: bigint | number, b: bigint | number) => boolean>> = {
  "<": (a, b) => a < b,
  "<=": (a, b) => a <= b,
  ">": (a, b) => a > b,
  ">=": (a, b) => a >= b,
};

const comparisons: Operation[] = [
  ...ALL.flatMap((type): Operation[] => [
    { result: "bool", args: [type, type], text: infix("=="), value: equality(false) },
    { result: "bool", args: [type, type], text: infix("!="), value: equality(true) },
  ]),
  ...COMPARED.flatMap((type) =>
    Object.entries(ORDER).map(([sign, own]): Operation => ({
      result: "bool",
      args: [type, type],
      text: infix(sign),
      value: sticky<bigint | number>((a, b) => own(decided(a) as bigint, decided(b) as bigint)),
    })),
  ),
  ...(["long", "datetime", "timespan"] as const).flatMap((type): Operation[] => [
    {
      result: "bool",
      args: [type, type, type],
      text: (a, b, c) => `(${a} between (${b} .. ${c}))`,
      value: (a, b, c) => and(atLeast(a, b), atLeast(c, a)),
    },
    {
      result: "bool",
      args: [type, type, type],
      text: (a, b, c) => `(${a} !between (${b} .. ${c}))`,
      value: (a, b, c) => not(and(atLeast(a, b), atLeast(c, a))),
    },
  ]),
];

function atLeast(a: Value | undefined, b: Value | undefined): Value {
  return a === null || b === null ? null : (a as bigint) >= (b as bigint);
}

function and(a: Value | undefined, b: Value | undefined): Value {
  if (a === false || b === false) return false;
  return a === null || b === null ? null : true;
}

function or(a: Value | undefined, b: Value | undefined): Value {
  if (a === true || b === true) return true;
  return a === null || b === null ? null : false;
}

function not(a: Value | undefined): Value {
  return a === null ? null : a !== true;
}

const logic: Operation[] = [
  { result: "bool", args: ["bool", "bool"], text: infix("and"), value: and },
  { result: "bool", args: ["bool", "bool"], text: infix("or"), value: or },
  { result: "bool", args: ["bool"], text: call("not"), value: not },
  ...ALL.flatMap((type): Operation[] => [
    { result: "bool", args: [type], text: call("isnull"), value: (a) => a === null },
    { result: "bool", args: [type], text: call("isnotnull"), value: (a) => a !== null },
    { result: "bool", args: [type], text: call("isempty"), value: (a) => a === null || a === "" },
    { result: "bool", args: [type], text: call("isnotempty"), value: (a) => a !== null && a !== "" },
  ]),
  ...ALL.flatMap((type): Operation[] => [
    { result: type, args: ["bool", type, type], text: call("iff"), value: (a, b, c) => (a === true ? b : c) ?? null },
    {
      result: type,
      args: ["bool", type, "bool", type, type],
      text: call("case"),
      value: (a, b, c, d, e) => (a === true ? b : c === true ? d : e) ?? null,
    },
    {
      result: type,
      args: [type, type],
      text: call("coalesce"),
      value: (a, b) => (a === null || a === "" ? b : a) ?? null,
    },
  ]),
];

function folded(text: string): string {
  return text.toLowerCase();
}

/** Maximal runs of letters and digits. */
function termsOf(text: string): string[] {
  return text.match(/[\p{L}\p{N}]+/gu) ?? [];
}

/** The reference speaks of terms alone. */
function term(text: string): string {
  if (!/^[\p{L}\p{N}]+$/u.test(text)) throw new Undecided("the text that is looked for is no term");
  return text;
}

function isIn(text: string, part: string, is: (term: string, part: string) => boolean): boolean {
  return termsOf(text).some((one) => is(one, part));
}

const TESTS: Readonly<Record<string, (text: string, part: string) => boolean>> = {
  contains: (text, part) => text.includes(part),
  startswith: (text, part) => text.startsWith(part),
  endswith: (text, part) => text.endsWith(part),
  has: (text, part) => isIn(text, term(part), (one, own) => one === own),
  hasprefix: (text, part) => isIn(text, term(part), (one, own) => one.startsWith(own)),
  hassuffix: (text, part) => isIn(text, term(part), (one, own) => one.endsWith(own)),
};

function test(sign: string, own: (a: string, b: string) => boolean): Operation {
  return {
    result: "bool",
    args: ["string", "string"],
    text: infix(sign),
    value: (a, b) => own(a as string, b as string),
  };
}

const texts: Operation[] = [
  test("=~", (a, b) => folded(a) === folded(b)),
  test("!~", (a, b) => folded(a) !== folded(b)),
  ...Object.entries(TESTS).flatMap(([name, own]) => [
    test(name, (a, b) => own(folded(a), folded(b))),
    test(`!${name}`, (a, b) => !own(folded(a), folded(b))),
    test(`${name}_cs`, own),
    test(`!${name}_cs`, (a, b) => !own(a, b)),
  ]),
  ...(["in", "!in", "in~", "!in~"] as const).map((sign): Operation => ({
    result: "bool",
    args: ["string", "string", "string"],
    text: (a, b, c) => `(${a} ${sign} (${b}, ${c}))`,
    value: (...args) => {
      const [a, ...list] = args.map((one) => (sign.endsWith("~") ? folded(one as string) : (one as string)));
      return list.includes(a ?? "") !== sign.startsWith("!");
    },
  })),
  {
    result: "string",
    args: ["string", "string"],
    text: call("strcat"),
    value: (a, b) => `${a as string}${b as string}`,
  },
  { result: "string", args: ["string"], text: call("tolower"), value: (a) => folded(a as string) },
  { result: "string", args: ["string"], text: call("toupper"), value: (a) => (a as string).toUpperCase() },
  { result: "long", args: ["string"], text: call("strlen"), value: (a) => BigInt(Array.from(a as string).length) },
  {
    result: "string",
    args: ["string"],
    text: (a) => `substring(${a}, 1, 2)`,
    value: (a) =>
      Array.from(a as string)
        .slice(1, 3)
        .join(""),
  },
  {
    result: "string",
    args: ["string"],
    text: (a) => `replace_string(${a}, 'a', 'bb')`,
    value: (a) => (a as string).replaceAll("a", "bb"),
  },
  {
    result: "long",
    args: ["string"],
    text: (a) => `indexof(${a}, 'b')`,
    value: (a) => BigInt(Array.from(a as string).indexOf("b")),
  },
  { result: "long", args: ["string"], text: call("tolong"), value: (a) => longOf(a as string) },
  {
    result: "string",
    args: ["long"],
    text: call("tostring"),
    value: (a) => (a === null ? "" : (a as bigint).toString()),
  },
  {
    result: "string",
    args: ["bool"],
    text: call("tostring"),
    value: (a) => (a === null ? "" : a === true ? "True" : "False"),
  },
  {
    result: "string",
    args: ["datetime"],
    text: call("tostring"),
    value: (a) => (a === null ? "" : datetimeText(a as bigint)),
  },
  {
    result: "string",
    args: ["timespan"],
    text: call("tostring"),
    value: (a) => (a === null ? "" : timespanText(a as bigint)),
  },
];

function longOf(text: string): Value {
  if (/^-?\d{1,18}$/.test(text)) return BigInt(text);
  if (/[\d\s]/.test(text)) throw new Undecided("a text that holds digits is no plain number");
  return null;
}

const numbers: Operation[] = [
  { result: "long", args: ["long", "long"], text: infix("+"), value: sticky<bigint>((a, b) => wrapped(a + b)) },
  { result: "long", args: ["long", "long"], text: infix("-"), value: sticky<bigint>((a, b) => wrapped(a - b)) },
  { result: "long", args: ["long", "long"], text: infix("*"), value: sticky<bigint>((a, b) => wrapped(a * b)) },
  { result: "long", args: ["long", "long"], text: infix("/"), value: sticky<bigint>(quotient) },
  { result: "long", args: ["long", "long"], text: infix("%"), value: sticky<bigint>(remainder) },
  { result: "long", args: ["long"], text: (a) => `(-(${a}))`, value: sticky<bigint>((a) => wrapped(-a)) },
  {
    result: "long",
    args: ["long", "long"],
    text: call("bin"),
    value: sticky<bigint>((a, b) => {
      if (b === 0n) throw new Undecided("a bin of zero");
      return b < 0n ? null : within(floorTo(a, b));
    }),
  },
  { result: "real", args: ["real", "real"], text: infix("+"), value: sticky<number>((a, b) => a + b) },
  { result: "real", args: ["real", "real"], text: infix("-"), value: sticky<number>((a, b) => a - b) },
  { result: "real", args: ["real", "real"], text: infix("*"), value: sticky<number>((a, b) => a * b) },
  { result: "real", args: ["real", "real"], text: infix("/"), value: sticky<number>((a, b) => a / positive(b)) },
  {
    result: "real",
    args: ["long", "real"],
    text: infix("+"),
    value: sticky<number | bigint>((a, b) => Number(a) + Number(b)),
  },
  {
    result: "real",
    args: ["real", "long"],
    text: infix("*"),
    value: sticky<number | bigint>((a, b) => Number(a) * Number(b)),
  },
  { result: "real", args: ["long"], text: call("toreal"), value: sticky<bigint>((a) => Number(a)) },
  { result: "bool", args: ["real"], text: call("isnan"), value: (a) => Number.isNaN(number(a)) },
  { result: "bool", args: ["real"], text: call("isinf"), value: (a) => Math.abs(number(a)) === Infinity },
];

function number(value: Value | undefined): number {
  if (typeof value !== "number") throw new Undecided("what kind of number a null is");
  return value;
}

/** A negative zero is written by nobody on purpose. */
function positive(value: number): number {
  return value === 0 ? 0 : value;
}

function within(value: bigint): bigint {
  if (wrapped(value) !== value) throw new Undecided("it overflows");
  return value;
}

function quotient(a: bigint, b: bigint): Value {
  return b === 0n ? null : within(a / b);
}

function remainder(a: bigint, b: bigint): Value {
  if (b === 0n) return null;
  const most = b < 0n ? -b : b;
  return ((a % most) + most) % most;
}

const DAY = 864_000_000_000n;

const times: Operation[] = [
  {
    result: "datetime",
    args: ["datetime", "timespan"],
    text: infix("+"),
    value: sticky<bigint>((a, b) => moment(a + b)),
  },
  {
    result: "datetime",
    args: ["datetime", "timespan"],
    text: infix("-"),
    value: sticky<bigint>((a, b) => moment(a - b)),
  },
  {
    result: "timespan",
    args: ["datetime", "datetime"],
    text: infix("-"),
    value: sticky<bigint>((a, b) => span(a - b)),
  },
  {
    result: "timespan",
    args: ["timespan", "timespan"],
    text: infix("+"),
    value: sticky<bigint>((a, b) => span(a + b)),
  },
  {
    result: "timespan",
    args: ["timespan", "timespan"],
    text: infix("-"),
    value: sticky<bigint>((a, b) => span(a - b)),
  },
  { result: "timespan", args: ["timespan"], text: (a) => `(${a} * 3)`, value: sticky<bigint>((a) => span(a * 3n)) },
  { result: "timespan", args: ["timespan"], text: (a) => `(-(${a}))`, value: sticky<bigint>((a) => span(-a)) },
  {
    result: "real",
    args: ["timespan", "timespan"],
    text: infix("/"),
    value: sticky<bigint>((a, b) => {
      if (b === 0n) throw new Undecided("by no time");
      return Number(a) / Number(b);
    }),
  },
  ...["1d", "1h", "7m"].map((step): Operation => {
    const ticks = { "1d": DAY, "1h": DAY / 24n, "7m": (DAY / 24n / 60n) * 7n }[step] ?? 0n;
    // Multiples are counted from the year 1.
    const since = 719_162n * DAY;
    return {
      result: "datetime",
      args: ["datetime"],
      text: (a) => `bin(${a}, ${step})`,
      value: sticky<bigint>((a) => {
        if (ticks % DAY !== 0n && since % ticks !== 0n) throw new Undecided("bins that no day begins with");
        return moment(floorTo(a + since, ticks) - since);
      }),
    };
  }),
  {
    result: "timespan",
    args: ["timespan"],
    text: (a) => `bin(${a}, 1h)`,
    value: sticky<bigint>((a) => floorTo(a, DAY / 24n)),
  },
  {
    result: "datetime",
    args: ["datetime"],
    text: call("startofday"),
    value: sticky<bigint>((a) => moment(floorTo(a, DAY))),
  },
  {
    result: "long",
    args: ["datetime"],
    text: (a) => `tolong(hourofday(${a}))`,
    value: sticky<bigint>((a) => BigInt(dateOf(a).getUTCHours())),
  },
  {
    result: "long",
    args: ["datetime"],
    text: (a) => `tolong(getyear(${a}))`,
    value: sticky<bigint>((a) => BigInt(dateOf(a).getUTCFullYear())),
  },
];

function member(value: Value | undefined, name: string): Value {
  const json = (value as { json: Json } | null)?.json ?? null;
  if (json === null || typeof json !== "object" || Array.isArray(json)) return null;
  return dynamicOf((json as Record<string, Json>)[name]);
}

function element(value: Value | undefined, place: number): Value {
  const json = (value as { json: Json } | null)?.json ?? null;
  return Array.isArray(json) ? dynamicOf((json as Json[]).at(place)) : null;
}

function dynamicOf(json: Json | undefined): Value {
  return json === undefined || json === null ? null : { json };
}

const dynamics: Operation[] = [
  { result: "dynamic", args: ["dynamic"], text: (a) => `${a}.a`, value: (a) => member(a, "a") },
  { result: "dynamic", args: ["dynamic"], text: (a) => `${a}['b c']`, value: (a) => member(a, "b c") },
  { result: "dynamic", args: ["dynamic"], text: (a) => `${a}[0]`, value: (a) => element(a, 0) },
  { result: "dynamic", args: ["dynamic"], text: (a) => `${a}[-1]`, value: (a) => element(a, -1) },
  {
    result: "long",
    args: ["dynamic"],
    text: call("array_length"),
    value: (a) => {
      const json = (a as { json: Json } | null)?.json;
      return Array.isArray(json) ? BigInt(json.length) : null;
    },
  },
  {
    result: "string",
    args: ["dynamic"],
    text: call("tostring"),
    value: (a) => {
      if (a === null) return "";
      const { json } = a as { json: Json };
      if (typeof json === "boolean") throw new Undecided("the case of a bool inside of a dynamic");
      return typeof json === "string" ? json : JSON.stringify(json);
    },
  },
  {
    result: "long",
    args: ["dynamic"],
    text: call("tolong"),
    value: (a) => {
      const json = (a as { json: Json } | null)?.json ?? null;
      if (typeof json === "number" && Number.isInteger(json)) return BigInt(json);
      if (typeof json === "string") return longOf(json);
      if (json === null) return null;
      throw new Undecided("a dynamic of another kind as a number");
    },
  },
  { result: "bool", args: ["dynamic"], text: call("isnull"), value: (a) => a === null },
];

export const OPERATIONS: readonly Operation[] = [...comparisons, ...logic, ...texts, ...numbers, ...times, ...dynamics];
