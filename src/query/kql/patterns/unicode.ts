/** Sets of characters as RE2 writes them inside brackets. The language means Unicode where RE2 means ASCII. */
export const UNICODE = {
  digit: String.raw`\p{Nd}`,
  space: String.raw`\t-\r\x{85}\p{Z}`,
  // Alphabetic characters, marks, digits, connectors and joiners; the ranges are letters in circles and squares.
  word: String.raw`\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{200C}\x{200D}\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189}`,
} as const;

/** The same where a pattern says `(?-u)`. */
export const ASCII = { digit: "0-9", space: String.raw`\t-\r `, word: "0-9A-Za-z_" } as const;

/** Of a set of JavaScript's regular expressions, what RE2 would write inside brackets. */
export function rangesOf(set: string): string {
  const known = RANGES.get(set);
  if (known !== undefined) return known;
  const ranges = scan(new RegExp(set, "u"));
  RANGES.set(set, ranges);
  return ranges;
}

const RANGES = new Map<string, string>();
const LAST = 0x10ffff;

function scan(set: RegExp): string {
  const out: string[] = [];
  let from = -1;
  for (let code = 0; code <= LAST + 1; code++) {
    const isIn = code <= LAST && !isSurrogate(code) && set.test(String.fromCodePoint(code));
    if (isIn && from < 0) from = code;
    if (isIn || from < 0) continue;
    out.push(range(from, code - 1));
    from = -1;
  }
  return out.join("");
}

function isSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdfff;
}

function range(from: number, to: number): string {
  return from === to ? codePoint(from) : `${codePoint(from)}-${codePoint(to)}`;
}

/** A character by its number. */
export function codePoint(code: number): string {
  return `\\x{${code.toString(16).toUpperCase()}}`;
}

const CATEGORIES: Readonly<Record<string, string>> = {
  letter: "L",
  casedletter: "LC",
  uppercaseletter: "Lu",
  lowercaseletter: "Ll",
  titlecaseletter: "Lt",
  modifierletter: "Lm",
  otherletter: "Lo",
  mark: "M",
  nonspacingmark: "Mn",
  spacingmark: "Mc",
  enclosingmark: "Me",
  number: "N",
  decimalnumber: "Nd",
  letternumber: "Nl",
  othernumber: "No",
  punctuation: "P",
  connectorpunctuation: "Pc",
  dashpunctuation: "Pd",
  openpunctuation: "Ps",
  closepunctuation: "Pe",
  initialpunctuation: "Pi",
  finalpunctuation: "Pf",
  otherpunctuation: "Po",
  symbol: "S",
  mathsymbol: "Sm",
  currencysymbol: "Sc",
  modifiersymbol: "Sk",
  othersymbol: "So",
  separator: "Z",
  spaceseparator: "Zs",
  lineseparator: "Zl",
  paragraphseparator: "Zp",
  control: "Cc",
  format: "Cf",
  privateuse: "Co",
};

// `C` and `Cn` are missing: RE2 knows no unassigned characters.
const SHORT = new Set(
  "L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp Cc Cf Co".split(" "),
);

/** What a property of Unicode (`\p{…}`) covers, inside brackets; undefined where there is no such property. */
export function propertyRanges(name: string, isNegated: boolean): string | undefined {
  const [, kind = "", value = ""] = /^(?:(\w+)\s*=\s*)?(.*)$/u.exec(name) ?? [];
  const plain = value.toLowerCase().replaceAll(/[\s_-]/gu, "");
  const short = plain.charAt(0).toUpperCase() + plain.slice(1);
  const category = CATEGORIES[plain] ?? short;
  const isCategory = kind === "" || /^(?:gc|general_category)$/iu.test(kind);
  if (isCategory && SHORT.has(category)) return `\\${isNegated ? "P" : "p"}{${category}}`;
  const titled = value
    .trim()
    .split(/[\s_-]+/u)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1).toLowerCase())
    .join("_");
  const sets = isCategory
    ? [`gc=${category}`, `gc=${titled}`, ...(kind === "" ? [`sc=${titled}`, titled, plain.toUpperCase()] : [])]
    : [`${kind}=${titled}`];
  for (const set of sets) {
    const own = `\\${isNegated ? "P" : "p"}{${set}}`;
    if (isProperty(own)) return rangesOf(own);
  }
  return undefined;
}

function isProperty(set: string): boolean {
  try {
    return new RegExp(set, "u").unicode;
  } catch {
    return false;
  }
}
