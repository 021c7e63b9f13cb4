/**
 * Just enough of DuckDB's lexical grammar to tell a word from what only looks like one: quoted names, strings
 * (`'…'`, `E'…'`, `$tag$…$tag$`), comments (`--` and nested block comments) and numbers. It accepts everything; text
 * that is unterminated runs to the end, and DuckDB's parser then says what is wrong.
 */
export type Token = {
  kind: "word" | "name" | "string" | "number" | "parameter" | "symbol";
  /** UTF-16 offsets into the text. */
  start: number;
  end: number;
};

const WORD_START = /[A-Za-z_\u0080-\uffff]/;
const WORD = /[A-Za-z0-9_$\u0080-\uffff]*/y;
const NUMBER = /(?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|[0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][+-]?[0-9]+)?)/y;
const DOLLAR_TAG = /\$(?:[A-Za-z_\u0080-\uffff][A-Za-z0-9_\u0080-\uffff]*)?\$/y;
/** `$name`, `$1`. */
const PARAMETER = /\$(?:[0-9]+|[A-Za-z_\u0080-\uffff][A-Za-z0-9_\u0080-\uffff]*)/y;
/** Every white space, the Unicode ones as well: DuckDB takes them all for a space. */
const SPACE = /\s/;

/** The tokens of the text without comments and white space. */
export function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  while (at < text.length) {
    const blank = skipBlank(text, at);
    if (blank > at) {
      at = blank;
      continue;
    }
    const token = nextToken(text, at);
    tokens.push(token);
    at = token.end;
  }
  return tokens;
}

/** The end of the white space or comment that starts at `at`, or `at`. */
function skipBlank(text: string, at: number): number {
  const char = text.charAt(at);
  if (SPACE.test(char)) return at + 1;
  if (char === "-" && text.charAt(at + 1) === "-") return lineEnd(text, at);
  if (char === "/" && text.charAt(at + 1) === "*") return blockCommentEnd(text, at);
  return at;
}

function lineEnd(text: string, at: number): number {
  let end = at;
  while (end < text.length && text.charAt(end) !== "\n" && text.charAt(end) !== "\r") end++;
  return end;
}

function blockCommentEnd(text: string, at: number): number {
  let depth = 1;
  let end = at + 2;
  while (end < text.length && depth > 0) {
    const two = text.slice(end, end + 2);
    if (two === "/*") depth++;
    if (two === "*/") depth--;
    end += two === "/*" || two === "*/" ? 2 : 1;
  }
  return end;
}

function nextToken(text: string, start: number): Token {
  const char = text.charAt(start);
  if (char === "'") return { kind: "string", start, end: quotedEnd(text, start, "'", false) };
  if (char === '"') return { kind: "name", start, end: quotedEnd(text, start, '"', false) };
  if (char === "$") {
    const tag = matchAt(DOLLAR_TAG, text, start);
    if (tag !== undefined) {
      const close = text.indexOf(tag, start + tag.length);
      return { kind: "string", start, end: close === -1 ? text.length : close + tag.length };
    }
    const parameter = matchAt(PARAMETER, text, start);
    if (parameter !== undefined) return { kind: "parameter", start, end: start + parameter.length };
  }
  if (/[0-9]/.test(char)) {
    return { kind: "number", start, end: start + (matchAt(NUMBER, text, start)?.length ?? 1) };
  }
  if (!WORD_START.test(char)) return { kind: "symbol", start, end: start + 1 };
  const word = wordAt(text, start);
  if (text.charAt(start + word.length) === "'" && /^[eExXbBnN]$/.test(word)) {
    const escapes = word === "e" || word === "E";
    return { kind: "string", start, end: quotedEnd(text, start + 1, "'", escapes) };
  }
  return { kind: "word", start, end: start + word.length };
}

function wordAt(text: string, start: number): string {
  const word = matchAt(WORD, text, start) ?? text.charAt(start);
  const space = word.search(SPACE);
  return space > 0 ? word.slice(0, space) : word;
}

/** The end of a quoted run; a doubled quote is part of it, and a backslash escapes where `escapes` says so. */
function quotedEnd(text: string, start: number, quote: string, escapes: boolean): number {
  let at = start + 1;
  while (at < text.length) {
    const char = text.charAt(at);
    if (escapes && char === "\\") at += 2;
    else if (char !== quote) at++;
    else if (text.charAt(at + 1) === quote) at += 2;
    else return at + 1;
  }
  return text.length;
}

function matchAt(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0];
}
