/**
 * The numbers that an object of JSON has by the given names, NaN for those that it has not; what else it holds is passed
 * over. For the many rows of which no more is needed: `JSON.parse` takes five times as long. The JSON is of
 * `JSON.stringify`, without blanks, and no name has characters that are escaped in it.
 */
export function jsonNumbers(json: string, names: readonly string[], into: Float64Array): void {
  into.fill(Number.NaN);
  let at = 1;
  while (json.charCodeAt(at) === QUOTE) {
    const start = at + 1;
    const end = json.indexOf('"', start);
    const value = end + 2;
    const isNumber = isOfNumber(json.charCodeAt(value));
    at = isNumber ? endOfNumber(json, value) : endOfValue(json, value);
    if (isNumber) {
      const which = nameAt(json, start, end, names);
      if (which >= 0) into[which] = numberAt(json, value, at);
    }
    if (json.charCodeAt(at) === COMMA) at++;
  }
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;

function nameAt(json: string, start: number, end: number, names: readonly string[]): number {
  for (let i = 0; i < names.length; i++) {
    const name = names[i] ?? "";
    if (name.length === end - start && json.startsWith(name, start)) return i;
  }
  return -1;
}

/** Digits, and a sign before them. */
function isOfNumber(unit: number): boolean {
  return (unit >= 0x30 && unit <= 0x39) || unit === 0x2d;
}

function endOfNumber(json: string, start: number): number {
  let at = start + 1;
  for (; at < json.length; at++) {
    const unit = json.charCodeAt(at);
    // `.`, `e`, `E` and `+`, beside digits and a sign.
    if (!isOfNumber(unit) && unit !== 0x2e && unit !== 0x65 && unit !== 0x45 && unit !== 0x2b) break;
  }
  return at;
}

/** Whole numbers, which most are, without a text of their own. */
function numberAt(json: string, start: number, end: number): number {
  if (end - start > EXACT_DIGITS) return Number(json.slice(start, end));
  let value = 0;
  for (let at = start; at < end; at++) {
    const digit = json.charCodeAt(at) - DIGIT_0;
    if (digit < 0 || digit > 9) return Number(json.slice(start, end));
    value = value * 10 + digit;
  }
  return value;
}

/** So many are read as `Number` reads them: at most the last step is rounded. */
const EXACT_DIGITS = 16;
const DIGIT_0 = 0x30;

/** The end of a value that is no number. */
function endOfValue(json: string, start: number): number {
  let depth = 0;
  for (let at = start; at < json.length; at++) {
    const unit = json.charCodeAt(at);
    if (unit === QUOTE) {
      at = endOfText(json, at);
      if (depth === 0) return at + 1;
    } else if (unit === 0x7b || unit === 0x5b) depth++;
    else if (unit === 0x7d || unit === 0x5d) {
      // Of the object that the value is in, after `true`, `false` or `null`.
      if (depth === 0) return at;
      if (--depth === 0) return at + 1;
    } else if (unit === COMMA && depth === 0) return at;
  }
  return json.length;
}

/** Where the quote is that ends the text which begins with one. */
function endOfText(json: string, start: number): number {
  let at = json.indexOf('"', start + 1);
  while (at > 0 && isEscaped(json, at)) at = json.indexOf('"', at + 1);
  return at < 0 ? json.length : at;
}

function isEscaped(json: string, quote: number): boolean {
  let at = quote;
  while (json.charCodeAt(at - 1) === BACKSLASH) at--;
  return (quote - at) % 2 === 1;
}
