import { LIMITS } from "../../core/limits.ts";
import type { Field, Message, Scalar } from "./messages.ts";
import { tagOf, WIRE, type WireReader } from "../protobuf/wire.ts";
import { WireOut } from "../protobuf/wire-out.ts";

/**
 * A message in which fields that may be there once, and are messages themselves, come once: those that came again are
 * merged as protobuf has it ("Encoding", "Last One Wins"), which is what reading their bytes one after the other gives. The
 * bytes are not put together for that, as merging inside of what was merged would copy them once for each level: a message
 * is a list of ranges of the source, and every byte is copied once, when its field has no message in it.
 *
 * The message is at the ranges given, two numbers each: several where it came again itself. Undefined when it is nested
 * deeper than any record may be.
 */
export function merged(wire: WireReader, ranges: readonly number[], message: Message): Uint8Array | undefined {
  const out = new WireOut(0);
  return new Merging(wire, out).copy(ranges, message, 0) ? out.written() : undefined;
}

/** Two messages for each level of the JSON that comes of it, and those that a record is in. */
const MAX_DEPTH = 3 * LIMITS.jsonNesting;

class Merging {
  readonly #wire: WireReader;
  readonly #out: WireOut;

  constructor(wire: WireReader, out: WireOut) {
    this.#wire = wire;
    this.#out = out;
  }

  /** Copies the message whose fields are in the ranges, two numbers each. False when it is nested too deep. */
  copy(ranges: readonly number[], message: Message, depth: number): boolean {
    if (depth > MAX_DEPTH) return false;
    const open: Open = { field: undefined, ranges: [] };
    const others = new Map<Field, number[]>();
    for (let i = 0; i < ranges.length; i += 2) {
      if (!this.#copyRange(ranges[i] ?? 0, ranges[i + 1] ?? 0, { message, open, others, depth })) return false;
    }
    if (!this.#close(open, depth)) return false;
    for (const [field, all] of others) if (!this.#close({ field, ranges: all }, depth)) return false;
    return true;
  }

  #copyRange(start: number, end: number, into: Copying): boolean {
    const wire = this.#wire;
    wire.enter(start, end);
    for (;;) {
      const { at } = wire;
      if (!wire.next()) return true;
      const field = messageField(into.message, wire.tag);
      if (field !== undefined && !field.isRepeated) {
        if (!this.#keep(field, into)) return false;
      } else if (field !== undefined) {
        const next = wire.at;
        if (!this.#close({ field, ranges: [wire.start, wire.stop] }, into.depth)) return false;
        wire.enter(next, end);
      } else {
        if (isChosen(into.message, wire.tag) && !this.#closeBetween(into, end)) return false;
        this.#out.bytes(wire.bytes, at, wire.at);
      }
    }
  }

  /** Adds a range to those of its field. Of a choice, only what follows its like is merged with it. */
  #keep(field: Field, into: Copying): boolean {
    const wire = this.#wire;
    const range = [wire.start, wire.stop];
    if (!into.message.isChoice) {
      const known = into.others.get(field);
      if (known === undefined) into.others.set(field, range);
      else known.push(...range);
      return true;
    }
    if (into.open.field !== field && !this.#closeBetween(into, wire.end)) return false;
    into.open.field = field;
    into.open.ranges.push(...range);
    return true;
  }

  /** Writes what is open, and goes on reading where the reader was. */
  #closeBetween({ open, depth }: Copying, end: number): boolean {
    const wire = this.#wire;
    const { at, tag, start, stop } = wire;
    const isClosed = this.#close(open, depth);
    wire.enter(at, end);
    Object.assign(wire, { tag, start, stop });
    open.field = undefined;
    open.ranges = [];
    return isClosed;
  }

  #close({ field, ranges }: Open, depth: number): boolean {
    if (field === undefined || typeof field.type === "string") return true;
    const payload = this.#out.begin(field.number);
    const isCopied = this.copy(ranges, field.type, depth + 1);
    this.#out.end(payload);
    return isCopied;
  }
}

type Open = { field: Field | undefined; ranges: number[] };
type Copying = { message: Message; open: Open; others: Map<Field, number[]>; depth: number };

/** The field when it is a message that is known. */
function messageField(message: Message, tag: number): Field | undefined {
  const field = message.byNumber.get(Math.floor(tag / 8));
  return field !== undefined && typeof field.type !== "string" && tag === tagOf(field.number, WIRE.length)
    ? field
    : undefined;
}

/** Whether a scalar is one of those that a message has one of: what came before it is not merged with what comes after. */
function isChosen({ isChoice, byNumber }: Message, tag: number): boolean {
  const field = isChoice ? byNumber.get(Math.floor(tag / 8)) : undefined;
  // One of its number but of another wire type is a field that nobody knows.
  return field !== undefined && typeof field.type === "string" && tag === tagOf(field.number, WIRE_OF[field.type]);
}

const WIRE_OF: Readonly<Record<Scalar, number>> = {
  string: WIRE.length,
  bytes: WIRE.length,
  hex: WIRE.length,
  bool: WIRE.varint,
  int64: WIRE.varint,
  uint32: WIRE.varint,
  enum: WIRE.varint,
  double: WIRE.fixed64,
  fixed64: WIRE.fixed64,
  fixed32: WIRE.fixed32,
};
