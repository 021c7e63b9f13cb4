import { isUtf8 } from "node:buffer";
import { LIMITS } from "../../core/limits.ts";
import { JsonOut } from "./json-out.ts";
import { tagOf, WIRE, type WireReader } from "../protobuf/wire.ts";

/**
 * Values of OTLP (`AnyValue`, `KeyValue` and lists of them, opentelemetry/proto/common/v1/common.proto) as compact JSON:
 *
 * - integers with all their digits, bytes as base64, doubles by their shortest digits and -0 as `-0`; those that are not
 *   finite as the texts `NaN`, `Infinity` and `-Infinity`;
 * - a value that is not set is null, and so is one of a kind that is not known here;
 * - of equal keys of one list the last counts, at the place of the first.
 *
 * A field that may be there once and comes again is for protobuf to be merged with the first. Nobody writes that, so it is
 * not done here: `repeated` says that it was met, and `merge.ts` makes one field of the two before all is read again.
 */
export class ValueJson {
  readonly out = new JsonOut();
  /** Why what was read cannot be kept, if it cannot. */
  refusal: Refusal | undefined;
  /** Whether text that is not UTF-8 is repaired (U+FFFD for what is none) instead of being refused. */
  repairs = false;
  /** Whether a field came twice that is one. */
  repeated = false;
  /** The text that `writeUnlessText` has found. */
  textStart = 0;
  textEnd = 0;
  readonly #wire: WireReader;
  /** Members of the objects that are open, four numbers each: where key and value start and end. */
  #members = new Int32Array(MEMBER_NUMBERS * 64);
  #memberCount = 0;

  constructor(wire: WireReader) {
    this.#wire = wire;
  }

  /** Forgets all that was read. */
  clear(): void {
    this.out.clear();
    this.refusal = undefined;
    this.repeated = false;
    this.repairs = false;
    this.#memberCount = 0;
    if (this.#members.length > KEPT_NUMBERS) this.#members = new Int32Array(MEMBER_NUMBERS * 64);
  }

  /** How many members were added that no object has yet. */
  get pending(): number {
    return this.#memberCount;
  }

  /** Adds the `KeyValue` at `[start, end)` to the members of the object that `writeMembers` is to write next. */
  addMember(start: number, end: number): void {
    const wire = this.#wire;
    const { at, end: outerEnd } = wire;
    const member = this.#newMember();
    wire.enter(start, end);
    let values = 0;
    while (wire.next()) {
      if (wire.tag === KEY) {
        this.#members[member] = wire.start;
        this.#members[member + 1] = wire.stop;
      } else if (wire.tag === VALUE) {
        values++;
        this.#members[member + 2] = wire.start;
        this.#members[member + 3] = wire.stop;
      }
    }
    if (values > 1) this.repeated = true;
    wire.enter(at, outerEnd);
  }

  /** The index of the last pending member of that key; -1 when none has it. */
  findMember(key: Uint8Array): number {
    for (let i = this.#memberCount - 1; i >= 0; i--) {
      const start = this.#members[i * MEMBER_NUMBERS] as number;
      const end = this.#members[i * MEMBER_NUMBERS + 1] as number;
      if (Buffer.compare(this.#wire.bytes.subarray(start, end), key) === 0) return i;
    }
    return -1;
  }

  /** `writeUnlessText` of the value of a pending member. */
  writeMemberUnlessText(member: number, level: number): number {
    const at = member * MEMBER_NUMBERS;
    return this.writeUnlessText(this.#members[at + 2] as number, this.#members[at + 3] as number, level);
  }

  /** Writes the members from `first` on as an object, which stands `level` containers deep, and forgets them. */
  writeMembers(first: number, level: number): void {
    const { out } = this;
    const count = this.#memberCount;
    if (level >= LIMITS.jsonNesting) this.refusal ??= "nesting";
    else {
      if (count - first > FEW_MEMBERS) this.#dropDuplicatesOfMany(first, count, level);
      else this.#dropDuplicates(first, count, level);
      out.byte(OPEN_BRACE);
      let isFirst = true;
      for (let i = first; i < count; i++) {
        const member = i * MEMBER_NUMBERS;
        const keyStart = this.#members[member] as number;
        if (keyStart === DROPPED) continue;
        if (!isFirst) out.byte(COMMA);
        isFirst = false;
        this.writeText(keyStart, this.#members[member + 1] as number);
        out.byte(COLON);
        this.writeValue(this.#members[member + 2] as number, this.#members[member + 3] as number, level + 1);
      }
      out.byte(CLOSE_BRACE);
    }
    this.#memberCount = first;
  }

  /** Writes the text at `[start, end)` as a JSON string. */
  writeText(start: number, end: number): void {
    const { out } = this;
    const { length } = out;
    if (out.quoted(this.#wire.view, start, end)) return;
    if (!this.repairs) {
      this.refusal ??= "utf8";
      return;
    }
    out.length = length;
    out.quotedText(repairedText(this.#wire.bytes, start, end));
  }

  /** Writes the `AnyValue` at `[start, end)`, which stands `level` containers deep. */
  writeValue(start: number, end: number, level: number): void {
    if (this.writeUnlessText(start, end, level) === TEXT) this.writeText(this.textStart, this.textEnd);
  }

  /**
   * The same, but a text is only found (`textStart`, `textEnd`). Says of what kind the value is: the tag of its field, 0
   * when it has none.
   */
  writeUnlessText(start: number, end: number, level: number): number {
    const wire = this.#wire;
    const { at, end: outerEnd } = wire;
    wire.enter(start, end);
    let kind = 0;
    let low = 0;
    let high = 0;
    let from = 0;
    let to = 0;
    while (wire.next()) {
      const { tag } = wire;
      if (!isValueTag(tag)) continue;
      if (kind !== 0) this.#overwrite(kind, tag, { from, to, level });
      kind = tag;
      low = wire.low;
      high = wire.high;
      from = wire.start;
      to = wire.stop;
    }
    if (kind === TEXT) {
      this.textStart = from;
      this.textEnd = to;
    } else if (!this.#writeRange(kind, from, to, level)) {
      this.#writeScalar(kind, low, high);
    }
    wire.enter(at, outerEnd);
    return kind;
  }

  /** Writes a value that is a range of the source; false when it is none. */
  #writeRange(kind: number, from: number, to: number, level: number): boolean {
    if (kind === TEXT) this.writeText(from, to);
    else if (kind === LIST) this.#writeList(from, to, level);
    else if (kind === OBJECT) this.#writeObject(from, to, level);
    else if (kind === BYTES) this.#writeBytes(from, to);
    else return false;
    return true;
  }

  /** A value has come, and another: of one kind, lists and objects are to be merged, and else the last counts. */
  #overwrite(kind: number, next: number, { from, to, level }: { from: number; to: number; level: number }): void {
    if (kind === next && (kind === LIST || kind === OBJECT)) {
      this.repeated = true;
      return;
    }
    const { out } = this;
    const wire = this.#wire;
    const { length } = out;
    const { at, end, low, high, start, stop } = wire;
    this.#writeRange(kind, from, to, level);
    out.length = length;
    wire.enter(at, end);
    Object.assign(wire, { low, high, start, stop });
  }

  #writeScalar(kind: number, low: number, high: number): void {
    const { out } = this;
    switch (kind) {
      case INTEGER:
        this.#writeInteger(low, high);
        break;
      case BOOL:
        out.ascii((low | high) === 0 ? "false" : "true");
        break;
      case REAL:
        this.#writeReal(low, high);
        break;
      default:
        out.ascii("null");
    }
  }

  #writeBytes(start: number, end: number): void {
    const { buffer, byteOffset } = this.#wire.bytes;
    this.out.quotedAscii(Buffer.from(buffer, byteOffset + start, end - start).toString("base64"));
  }

  #writeInteger(low: number, high: number): void {
    const value = high * 0x1_0000_0000 + (low >>> 0);
    if (Number.isSafeInteger(value)) this.out.number(value);
    else this.out.ascii(String((BigInt(high) << 32n) | BigInt(low >>> 0)));
  }

  #writeReal(low: number, high: number): void {
    WORDS[0] = low;
    WORDS[1] = high;
    const value = DOUBLE[0] as number;
    if (!Number.isFinite(value)) this.out.quotedAscii(String(value));
    else this.out.number(value);
  }

  #writeList(start: number, end: number, level: number): void {
    const { out } = this;
    if (level >= LIMITS.jsonNesting) {
      this.refusal ??= "nesting";
      return;
    }
    const wire = this.#wire;
    wire.enter(start, end);
    out.byte(OPEN_BRACKET);
    let isFirst = true;
    while (wire.next()) {
      if (wire.tag !== ELEMENT) continue;
      if (!isFirst) out.byte(COMMA);
      isFirst = false;
      this.writeValue(wire.start, wire.stop, level + 1);
    }
    out.byte(CLOSE_BRACKET);
  }

  #writeObject(start: number, end: number, level: number): void {
    const wire = this.#wire;
    const first = this.#memberCount;
    wire.enter(start, end);
    while (wire.next()) if (wire.tag === ELEMENT) this.addMember(wire.start, wire.stop);
    this.writeMembers(first, level);
  }

  #newMember(): number {
    const member = this.#memberCount++ * MEMBER_NUMBERS;
    if (member + MEMBER_NUMBERS > this.#members.length) {
      const larger = new Int32Array(this.#members.length * 2);
      larger.set(this.#members);
      this.#members = larger;
    }
    const members = this.#members;
    members[member] = members[member + 1] = members[member + 2] = members[member + 3] = 0;
    return member;
  }

  #dropDuplicates(first: number, count: number, level: number): void {
    for (let i = first + 1; i < count; i++) {
      const later = i * MEMBER_NUMBERS;
      for (let j = first; j < i; j++) {
        if (!this.#sameKey(j * MEMBER_NUMBERS, later)) continue;
        this.#replace(j * MEMBER_NUMBERS, later, level);
        break;
      }
    }
  }

  /** The same in one pass. The map's hashes are seeded, so that no choice of keys makes it slow. */
  #dropDuplicatesOfMany(first: number, count: number, level: number): void {
    const bytes = Buffer.from(this.#wire.bytes.buffer, this.#wire.bytes.byteOffset, this.#wire.bytes.byteLength);
    const places = new Map<string, number>();
    for (let i = first; i < count; i++) {
      const member = i * MEMBER_NUMBERS;
      const key = bytes.toString("latin1", this.#members[member], this.#members[member + 1]);
      const place = places.get(key);
      if (place === undefined) {
        places.set(key, member);
      } else {
        this.#replace(place, member, level);
      }
    }
  }

  /** Gives the earlier member the value of the later one, which goes. What is dropped must be well-formed all the same. */
  #replace(earlier: number, later: number, level: number): void {
    this.#readOnly(this.#members[earlier + 2] as number, this.#members[earlier + 3] as number, level + 1);
    this.#members.copyWithin(earlier + 2, later + 2, later + MEMBER_NUMBERS);
    this.#members[later] = DROPPED;
  }

  /** Reads a value that is not kept. */
  #readOnly(start: number, end: number, level: number): void {
    const { length } = this.out;
    this.writeValue(start, end, level);
    this.out.length = length;
  }

  #sameKey(a: number, b: number): boolean {
    const members = this.#members;
    let at = members[a] as number;
    let other = members[b] as number;
    const end = members[a + 1] as number;
    if (at === DROPPED || end - at !== (members[b + 1] as number) - other) return false;
    const { bytes } = this.#wire;
    for (; at < end; at++, other++) if (bytes[at] !== bytes[other]) return false;
    return true;
  }
}

/** Whether the bytes at `[start, end)` are UTF-8. */
export function isText(bytes: Uint8Array, start: number, end: number): boolean {
  let all = 0;
  for (let at = start; at < end; at++) all |= bytes[at] as number;
  return all < 0x80 || isUtf8(bytes.subarray(start, end));
}

/** The text at `[start, end)` with U+FFFD for what is no UTF-8. */
export function repairedText(bytes: Uint8Array, start: number, end: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString("utf8");
}

/** Why a record cannot be kept. */
export type Refusal = "nesting" | "utf8";

/** Fields of `KeyValue`. */
const KEY = tagOf(1, WIRE.length);
const VALUE = tagOf(2, WIRE.length);
/** The only field of `ArrayValue` and `KeyValueList`. */
const ELEMENT = tagOf(1, WIRE.length);
/** Fields of `AnyValue`. */
export const TEXT = tagOf(1, WIRE.length);
const BOOL = tagOf(2, WIRE.varint);
const INTEGER = tagOf(3, WIRE.varint);
const REAL = tagOf(4, WIRE.fixed64);
const LIST = tagOf(5, WIRE.length);
const OBJECT = tagOf(6, WIRE.length);
const BYTES = tagOf(7, WIRE.length);

function isValueTag(tag: number): boolean {
  return tag === TEXT || tag === INTEGER || (tag >= BOOL && tag <= BYTES && VALUE_TAGS.has(tag));
}
const VALUE_TAGS: ReadonlySet<number> = new Set([BOOL, REAL, LIST, OBJECT, BYTES]);

const MEMBER_NUMBERS = 4;
const KEPT_NUMBERS = 64 * 1024;
/** Up to here comparing every key with every other beats a map. */
const FEW_MEMBERS = 64;
/** Instead of where a key starts: another member of that key took its place. */
const DROPPED = -1;

const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const COMMA = 0x2c;
const COLON = 0x3a;

const WORDS = new Int32Array(2);
const DOUBLE = new Float64Array(WORDS.buffer);
