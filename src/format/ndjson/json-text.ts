/**
 * Steps through JSON text that JSON.parse has accepted; on other text the results are meaningless. Positions are
 * UTF-16 units.
 */

export type ValueKind = "null" | "bool" | "number" | "string" | "array" | "object";

/** The characters that structure JSON. */
export const CODE = {
  quote: 0x22,
  backslash: 0x5c,
  openBracket: 0x5b,
  closeBracket: 0x5d,
  openBrace: 0x7b,
  closeBrace: 0x7d,
  comma: 0x2c,
  colon: 0x3a,
} as const;

/** The first position from `at` on that is not JSON white space. */
export function skipSpace(text: string, at: number): number {
  let position = at;
  while (isSpace(text.charCodeAt(position))) position++;
  return position;
}

export function kindAt(text: string, at: number): ValueKind {
  switch (text.charCodeAt(at)) {
    case CODE.quote:
      return "string";
    case CODE.openBrace:
      return "object";
    case CODE.openBracket:
      return "array";
    case 0x6e:
      return "null";
    case 0x74:
    case 0x66:
      return "bool";
    default:
      return "number";
  }
}

/** The end of the value that begins at `at`. */
export function valueEnd(text: string, at: number, kind: ValueKind): number {
  if (kind === "string") return stringEnd(text, at);
  if (kind === "object" || kind === "array") return containerEnd(text, at);
  let position = at;
  while (position < text.length && !isDelimiter(text.charCodeAt(position))) position++;
  return position;
}

/** The end of the string whose opening quote is at `at`; the end of the text when there is no closing quote. */
export function stringEnd(text: string, at: number): number {
  for (let quote = text.indexOf('"', at + 1); quote >= 0; quote = text.indexOf('"', quote + 1)) {
    let slashes = quote;
    while (text.charCodeAt(slashes - 1) === CODE.backslash) slashes--;
    if (((quote - slashes) & 1) === 0) return quote + 1;
  }
  return text.length;
}

/** The value of a string token, quotes included in `[start, end)`. */
export function stringValue(text: string, start: number, end: number): string {
  const raw = text.slice(start + 1, end - 1);
  return raw.includes("\\") ? (JSON.parse(text.slice(start, end)) as string) : raw;
}

/** The deepest nesting of arrays and objects; also right for text that is no JSON, as far as brackets go. */
export function nestingOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  for (let position = 0; position < text.length; position++) {
    const unit = text.charCodeAt(position);
    if (unit === CODE.quote) position = stringEnd(text, position) - 1;
    else if (unit === CODE.openBrace || unit === CODE.openBracket) deepest = Math.max(deepest, ++depth);
    else if (unit === CODE.closeBrace || unit === CODE.closeBracket) depth--;
  }
  return deepest;
}

const ESCAPES = /\\(?:u([0-9a-fA-F]{4})|.)/g;

/**
 * Whether an escape stands for half of a surrogate pair whose other half does not follow. Text decoded from UTF-8 has
 * no halves of its own, so both must be escapes, side by side.
 */
export function hasLoneSurrogate(text: string): boolean {
  let highEnd = -1;
  for (const match of text.matchAll(ESCAPES)) {
    const unit = match[1] === undefined ? 0 : Number.parseInt(match[1], 16);
    const isLow = unit >= 0xdc00 && unit <= 0xdfff;
    const completesPair = isLow && highEnd === match.index;
    if (!completesPair && (isLow || highEnd >= 0)) return true;
    highEnd = unit >= 0xd800 && unit <= 0xdbff ? match.index + match[0].length : -1;
  }
  return highEnd >= 0;
}

function containerEnd(text: string, at: number): number {
  let depth = 0;
  for (let position = at; position < text.length; position++) {
    const unit = text.charCodeAt(position);
    if (unit === CODE.quote) position = stringEnd(text, position) - 1;
    else if (unit === CODE.openBrace || unit === CODE.openBracket) depth++;
    else if ((unit === CODE.closeBrace || unit === CODE.closeBracket) && --depth === 0) return position + 1;
  }
  return text.length;
}

/** White space between the tokens of JSON. */
export function isSpace(unit: number): boolean {
  return unit === 0x20 || unit === 0x09 || unit === 0x0d || unit === 0x0a;
}

function isDelimiter(unit: number): boolean {
  return unit === CODE.comma || unit === CODE.closeBrace || unit === CODE.closeBracket || isSpace(unit);
}
