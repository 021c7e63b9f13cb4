import { CODE, isSpace, kindAt, skipSpace, stringEnd, stringValue } from "./json-text.ts";

/**
 * Compact JSON: the same value without white space. Keys stay in the order of the source, number tokens stay as they
 * are, strings are written as JSON.stringify writes them. Of duplicate keys the last value wins, at the place of the
 * first (as JSON.parse has it). Going through JSON.parse would move integer-like keys to the front, need care for
 * `__proto__`, and round numbers.
 *
 * `text[start, end)` is one JSON value that JSON.parse has accepted. Time is linear in its length, whatever the nesting
 * and the duplicates; text that is compact already is not copied.
 */
export function compactJson(text: string, start: number, end: number): string {
  const kind = kindAt(text, start);
  if (kind === "string") return compactString(text, start, end);
  if (kind !== "object" && kind !== "array") return text.slice(start, end);
  const { clean, edits } = inspect(text, start, end);
  return clean ? text.slice(start, end) : rewrite(text, start, end, edits);
}

/** A string without escapes is written already as JSON.stringify would. */
function compactString(text: string, start: number, end: number): string {
  const token = text.slice(start, end);
  return token.includes("\\") ? JSON.stringify(JSON.parse(token)) : token;
}

type Span = { start: number; end: number };

/** What duplicate keys do to a text, by position. */
type Edits = {
  /** Start of the first member's value → its end, and the value that stands there instead. */
  replaced: Map<number, { end: number; by: Span }>;
  /** The comma before a later member → the end of that member. */
  dropped: Map<number, number>;
};

/** An object being read; arrays have no keys to watch. */
type Frame = { members: Map<string, Span>; key: string | undefined; keyIsNext: boolean; start: number; comma: number };

/** Finds out whether the text is compact as it is, and which members give way to later ones. */
function inspect(text: string, start: number, end: number): { clean: boolean; edits: Edits } {
  const edits: Edits = { replaced: new Map(), dropped: new Map() };
  const stack: (Frame | undefined)[] = [];
  let frame: Frame | undefined;
  let clean = true;
  for (let at = start; at < end; at++) {
    const unit = text.charCodeAt(at);
    if (unit === CODE.quote) {
      const close = stringEnd(text, at);
      clean &&= !hasBackslash(text, at, close);
      if (frame?.keyIsNext === true) {
        frame.key = stringValue(text, at, close);
        frame.keyIsNext = false;
      }
      at = close - 1;
    } else if (unit === CODE.openBrace || unit === CODE.openBracket) {
      stack.push(frame);
      frame = unit === CODE.openBrace ? newFrame() : undefined;
    } else if (unit === CODE.closeBrace || unit === CODE.closeBracket) {
      if (frame !== undefined) endMember(frame, at, edits);
      frame = stack.pop();
    } else if (frame !== undefined && unit === CODE.colon) {
      frame.start = skipSpace(text, at + 1);
    } else if (frame !== undefined && unit === CODE.comma) {
      endMember(frame, at, edits);
      frame.keyIsNext = true;
      frame.comma = at;
    } else if (isSpace(unit)) {
      clean = false;
    }
  }
  return { clean: clean && edits.dropped.size === 0, edits };
}

function newFrame(): Frame {
  return { members: new Map(), key: undefined, keyIsNext: true, start: 0, comma: 0 };
}

function endMember(frame: Frame, end: number, edits: Edits): void {
  if (frame.key === undefined) return;
  const span = { start: frame.start, end };
  const first = frame.members.get(frame.key);
  if (first === undefined) {
    frame.members.set(frame.key, span);
  } else {
    edits.replaced.set(first.start, { end: first.end, by: span });
    edits.dropped.set(frame.comma, end);
  }
  frame.key = undefined;
}

function hasBackslash(text: string, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (text.charCodeAt(at) === CODE.backslash) return true;
  return false;
}

function rewrite(text: string, start: number, end: number, edits: Edits): string {
  // Compact text is never longer than its source.
  const out = new Uint16Array(end - start);
  const length = emit(text, { start, end }, edits, out, 0);
  return Buffer.from(out.buffer, 0, length * 2).toString("utf16le");
}

/** Writes the span at `to`; returns where it ended. Recurses once per level that has a duplicate key. */
function emit(text: string, span: Span, edits: Edits, out: Uint16Array, to: number): number {
  let length = to;
  let at = span.start;
  while (at < span.end) {
    const replaced = edits.replaced.get(at);
    const droppedEnd = edits.dropped.get(at);
    const unit = text.charCodeAt(at);
    if (replaced !== undefined) {
      length = emit(text, replaced.by, edits, out, length);
      at = replaced.end;
    } else if (droppedEnd !== undefined) {
      at = droppedEnd;
    } else if (unit === CODE.quote) {
      const close = stringEnd(text, at);
      length = emitString(text, at, close, out, length);
      at = close;
    } else {
      if (!isSpace(unit)) out[length++] = unit;
      at++;
    }
  }
  return length;
}

function emitString(text: string, start: number, end: number, out: Uint16Array, to: number): number {
  const token = compactString(text, start, end);
  for (let i = 0; i < token.length; i++) out[to + i] = token.charCodeAt(i);
  return to + token.length;
}
