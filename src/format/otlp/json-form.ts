import { isUtf8 } from "node:buffer";
import { BYTE, decodeString, literalEnd, quotedEnd } from "../ndjson/json-bytes.ts";
import { newNumberToken, readNumber } from "../ndjson/number-bytes.ts";
import { EXPORT_LOGS_REQUEST, WIRE_TYPE, type Field, type Message, type Scalar } from "./messages.ts";
import { integerOf, isBase64, realOf } from "./json-scalars.ts";
import { WireOut } from "../protobuf/wire-out.ts";

/**
 * The JSON form of a request (opentelemetry.io/docs/specs/otlp, "JSON Protobuf Encoding") as the same request in protobuf,
 * so that one reader decides what becomes of it. No value is built on the way, and nothing recurses: a body may be nested as
 * deep as its size allows.
 *
 * As that page has it: names are those in lower camel case alone, unknown ones are ignored; ids are hex, bytes base64 (in
 * either alphabet, padded or not), integers of 64 bits text or numbers, enums numbers. As protobuf's own mapping has it,
 * null is as if the member were not there, and doubles may be the texts `NaN`, `Infinity` and `-Infinity`. A member that
 * comes twice is refused, and so is a value of two kinds.
 */
export class MalformedJson extends Error {
  constructor(reason: string, at: number) {
    super(`${reason} at byte ${at}`);
    this.name = "MalformedJson";
  }
}

/** Throws `MalformedJson`. */
export function logsJsonToWire(json: Uint8Array): Uint8Array {
  if (!isUtf8(json)) throw new MalformedJson("text is not valid UTF-8", 0);
  return new JsonForm(json).read();
}

/** An object of a known message, or an array of one of its fields. */
type Frame = {
  message: Message;
  /** Of an array: the field whose values it has. */
  element: Field | undefined;
  /** Members that were there, by the numbers of their fields; of a choice, any of them is the first bit. */
  seen: number;
  /** Where its payload starts; -1 of an array, whose elements are fields of their own. */
  payload: number;
};

const SLACK_BYTES = 16;
/** Which containers that are skipped are objects, one bit each, is kept in words. */
const WORD_BITS = 32;

class JsonForm {
  readonly #source: Uint8Array;
  readonly #view: DataView;
  readonly #out: WireOut;
  readonly #number = newNumberToken();
  readonly #frames: Frame[] = [];
  #at = 0;

  constructor(json: Uint8Array) {
    // The line feed behind it stops every loop: JSON has it nowhere but between tokens.
    this.#source = new Uint8Array(json.byteLength + SLACK_BYTES);
    this.#source.set(json);
    this.#source[json.byteLength] = BYTE.lineFeed;
    this.#view = new DataView(this.#source.buffer);
    this.#out = new WireOut(json.byteLength);
  }

  read(): Uint8Array {
    this.#skipSpace();
    if (this.#source[this.#at] !== BYTE.openBrace) throw this.#wrong("a JSON object is expected");
    this.#open(EXPORT_LOGS_REQUEST, undefined, -1);
    while (this.#frames.length > 0) this.#step();
    this.#skipSpace();
    if (this.#at < this.#source.byteLength - SLACK_BYTES) throw this.#wrong("something follows the JSON object");
    return this.#out.written();
  }

  /** Reads on in the innermost container: to its end, or into a member of it. */
  #step(): void {
    const frame = this.#frames.at(-1) as Frame;
    if (this.#next(frame.element === undefined ? BYTE.closeBrace : BYTE.closeBracket)) {
      if (frame.element === undefined) this.#member(frame);
      else this.#value(frame.element, frame);
      return;
    }
    this.#frames.pop();
    if (frame.payload >= 0) this.#out.end(frame.payload);
  }

  #isFirst = true;

  /** Moves to the next member or element; false, and past it, where the container ends. */
  #next(close: number): boolean {
    this.#skipSpace();
    const byte = this.#source[this.#at];
    if (byte === close) {
      this.#at++;
      this.#isFirst = false;
      return false;
    }
    if (!this.#isFirst) {
      if (byte !== BYTE.comma) throw this.#wrong("a comma or the end of an object or array is expected");
      this.#at++;
      this.#skipSpace();
    }
    this.#isFirst = false;
    return true;
  }

  #member(frame: Frame): void {
    const name = this.#key();
    const field = frame.message.byName.get(name);
    if (field === undefined) {
      this.#skipValue();
      return;
    }
    if (this.#isNull()) return;
    const bit = frame.message.isChoice ? 1 : 1 << field.number;
    if ((frame.seen & bit) !== 0) {
      throw this.#wrong(frame.message.isChoice ? "a value has two kinds" : `${name} is there twice`);
    }
    frame.seen |= bit;
    if (!field.isRepeated) {
      this.#value(field, frame);
      return;
    }
    if (this.#source[this.#at] !== BYTE.openBracket) throw this.#wrong(`${name} is not an array`);
    this.#open(frame.message, field, -1);
  }

  /** Reads a key and its colon. */
  #key(): string {
    const start = this.#at;
    if (this.#source[start] !== BYTE.quote) throw this.#wrong("the name of a member is expected");
    const name = this.#text();
    this.#skipSpace();
    if (this.#source[this.#at] !== BYTE.colon) throw this.#wrong("a colon is expected");
    this.#at++;
    this.#skipSpace();
    return name;
  }

  #isNull(): boolean {
    if (this.#source[this.#at] !== BYTE.n) return false;
    this.#literal();
    return true;
  }

  #open(message: Message, element: Field | undefined, payload: number): void {
    this.#frames.push({ message, element, seen: 0, payload });
    this.#at++;
    this.#isFirst = true;
  }

  #value(field: Field, { element }: Frame): void {
    const { type } = field;
    if (typeof type === "string") {
      this.#scalar(field.number, type);
      return;
    }
    // An element of an array cannot be absent.
    if (this.#source[this.#at] !== BYTE.openBrace) {
      throw this.#wrong(element === undefined ? "an object is expected" : "an element that is an object is expected");
    }
    this.#open(type, undefined, this.#out.begin(field.number));
  }

  #scalar(field: number, type: Scalar): void {
    const out = this.#out;
    if (type === "string") {
      const payload = out.begin(field);
      this.#copyText();
      out.end(payload);
      return;
    }
    const isText = this.#source[this.#at] === BYTE.quote;
    const start = this.#at;
    const token = isText ? this.#text() : this.#token();
    const written = isText ? this.#writeText(field, type, token) : this.#writeToken(field, type, token);
    if (!written) {
      this.#at = start;
      throw this.#wrong(`that is no ${NAMES[type]}`);
    }
  }

  /** Writes a scalar that was in quotes. False when it is none of that type. */
  #writeText(field: number, type: Scalar, text: string): boolean {
    switch (type) {
      case "string":
      case "bool":
      case "enum":
        return false;
      case "hex":
        return (
          text.length % 2 === 0 && /^[0-9a-fA-F]*$/.test(text) && this.#writeBytes(field, Buffer.from(text, "hex"))
        );
      case "bytes":
        return isBase64(text) && this.#writeBytes(field, Buffer.from(text, "base64"));
      case "double":
        return this.#writeReal(field, realOf(text));
      case "int64":
      case "fixed64":
      case "fixed32":
      case "uint32":
        return this.#writeInteger(field, type, text);
    }
  }

  /** Writes a scalar that was a number or `true` or `false`. */
  #writeToken(field: number, type: Scalar, token: string): boolean {
    if (type === "bool") {
      if (token !== "true" && token !== "false") return false;
      this.#tag(field, type);
      this.#out.varint(token === "true" ? 1 : 0);
      return true;
    }
    if (type === "hex" || type === "bytes" || token === "true" || token === "false") return false;
    return type === "double" ? this.#writeReal(field, realOf(token)) : this.#writeInteger(field, type, token);
  }

  #writeBytes(field: number, bytes: Uint8Array): boolean {
    const payload = this.#out.begin(field);
    this.#out.bytes(bytes, 0, bytes.length);
    this.#out.end(payload);
    return true;
  }

  #writeReal(field: number, value: number | undefined): boolean {
    if (value === undefined) return false;
    this.#tag(field, "double");
    this.#out.double(value);
    return true;
  }

  #writeInteger(field: number, type: Scalar, text: string): boolean {
    const value = integerOf(type, text);
    if (value === undefined) return false;
    this.#tag(field, type);
    if (type === "fixed64") this.#out.fixed64(value);
    else if (type === "fixed32") this.#out.fixed32(Number(value));
    else this.#out.varint64(value);
    return true;
  }

  #tag(field: number, type: Scalar): void {
    this.#out.varint(field * 8 + WIRE_TYPE[type]);
  }

  /** The string at the place; moves past it. */
  #text(): string {
    const { from, to, bytes } = this.#decoded();
    return Buffer.from(bytes.buffer, bytes.byteOffset + from, to - from).toString("utf8");
  }

  /** Writes the string at the place, and moves past it. */
  #copyText(): void {
    if (this.#source[this.#at] !== BYTE.quote) throw this.#wrong("a string is expected");
    const start = this.#at + 1;
    const end = this.#quotedEnd();
    const { target, from } = this.#out.room(end - start);
    const to = decodeString(this.#source, this.#view, start, end - 1, target, from);
    if (to < 0) throw this.#wrong("a string has an escape that is none");
    this.#out.wrote(to);
    this.#at = end;
  }

  #decoded(): { bytes: Uint8Array; from: number; to: number } {
    const start = this.#at + 1;
    const end = this.#quotedEnd();
    const bytes = new Uint8Array(end - start + SLACK_BYTES);
    const to = decodeString(this.#source, this.#view, start, end - 1, bytes, 0);
    if (to < 0) throw this.#wrong("a string has an escape that is none");
    this.#at = end;
    return { bytes, from: 0, to };
  }

  #quotedEnd(): number {
    const end = quotedEnd(this.#view, this.#at + 1);
    if (end < 0) throw this.#wrong("a string does not end");
    return end;
  }

  /** The number or literal at the place; moves past it. */
  #token(): string {
    const start = this.#at;
    const byte = this.#source[start] as number;
    if (byte === BYTE.t || byte === BYTE.f) this.#literal();
    else this.#moveTo(this.#numberEnd(start));
    return Buffer.from(this.#source.buffer, start, this.#at - start).toString("latin1");
  }

  #literal(): void {
    this.#moveTo(literalEnd(this.#source, this.#at));
  }

  #numberEnd(start: number): number {
    readNumber(this.#source, start, this.#number);
    return this.#number.end;
  }

  #moveTo(end: number): void {
    if (end < 0) throw this.#wrong("that is no JSON value");
    this.#at = end;
  }

  /** Moves past a value that nobody wants; it must be JSON all the same. */
  #skipValue(): void {
    const isObject = new Levels();
    for (;;) {
      const byte = this.#source[this.#at] as number;
      if (byte === BYTE.openBrace || byte === BYTE.openBracket) {
        isObject.push(byte === BYTE.openBrace);
        this.#at++;
        this.#isFirst = true;
      } else {
        this.#skipScalar(byte);
      }
      // To the next value, or out of all that ends here.
      for (;;) {
        if (isObject.depth === 0) return;
        if (this.#next(isObject.top ? BYTE.closeBrace : BYTE.closeBracket)) break;
        isObject.pop();
      }
      if (isObject.top) this.#skipKey();
    }
  }

  #skipKey(): void {
    if (this.#source[this.#at] !== BYTE.quote) throw this.#wrong("the name of a member is expected");
    this.#skipString();
    this.#skipSpace();
    if (this.#source[this.#at] !== BYTE.colon) throw this.#wrong("a colon is expected");
    this.#at++;
    this.#skipSpace();
  }

  #skipScalar(byte: number): void {
    if (byte === BYTE.quote) this.#skipString();
    else if (byte === BYTE.n) this.#literal();
    else this.#token();
  }

  #skipString(): void {
    this.#decoded();
  }

  #skipSpace(): void {
    let at = this.#at;
    const end = this.#source.byteLength - SLACK_BYTES;
    while (at < end && isSpace(this.#source[at] as number)) at++;
    this.#at = at;
  }

  #wrong(reason: string): MalformedJson {
    return new MalformedJson(reason, this.#at);
  }
}

/** A stack of booleans. */
class Levels {
  readonly #words: number[] = [];
  depth = 0;

  get top(): boolean {
    const last = this.depth - 1;
    return (((this.#words[Math.floor(last / WORD_BITS)] ?? 0) >>> (last % WORD_BITS)) & 1) === 1;
  }

  push(value: boolean): void {
    const word = Math.floor(this.depth / WORD_BITS);
    const bit = 1 << (this.depth % WORD_BITS);
    this.#words[word] = value ? (this.#words[word] ?? 0) | bit : (this.#words[word] ?? 0) & ~bit;
    this.depth++;
  }

  pop(): void {
    this.depth--;
  }
}

const NAMES: Readonly<Record<Scalar, string>> = {
  string: "string",
  bytes: "base64 text",
  hex: "hexadecimal id",
  bool: "true or false",
  int64: "integer of 64 bits",
  uint32: "unsigned integer of 32 bits",
  enum: "integer of 32 bits",
  double: "number",
  fixed64: "unsigned integer of 64 bits",
  fixed32: "unsigned integer of 32 bits",
};

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}
