/**
 * The wire format of Protocol Buffers (protobuf.dev, "Encoding"), read field by field from bytes that may be anything.
 * Nothing is decoded into objects: a field is its tag and either a number or a range of the source.
 *
 * Refused is what no encoder writes and no decoder takes: a varint of more than ten bytes (bits beyond the 64th are dropped,
 * as the reference implementation does), a field number of 0, a length past the end of its
 * message, a group that does not end or ends another, the wire types 6 and 7. Groups are skipped: no message here has one.
 */
export class MalformedWire extends Error {
  constructor(reason: string, at: number) {
    super(`${reason} at byte ${at}`);
    this.name = "MalformedWire";
  }
}

export const WIRE = { varint: 0, fixed64: 1, length: 2, startGroup: 3, endGroup: 4, fixed32: 5 } as const;

/** A field's number and wire type as one number: what `WireReader.tag` is compared with. */
export function tagOf(field: number, type: number): number {
  return field * 8 + type;
}

/** The reference implementation's limit for messages, which for it includes groups. */
const MAX_GROUPS = 100;
/** A tag has 32 bits. */
const TAG_BYTES = 5;
const VARINT_BYTES = 10;

/** One per thread, moved from message to message by `enter`. */
export class WireReader {
  bytes: Uint8Array = new Uint8Array(0);
  view: DataView = new DataView(new ArrayBuffer(0));
  /** Longer groups are refused. */
  maxGroupBytes = Infinity;
  /** Where the next field begins, and where the message ends. */
  at = 0;
  end = 0;
  /** Of the field last read. */
  tag = 0;
  /** Its payload, where it is `length`. */
  start = 0;
  stop = 0;
  /** Its value, where it is a number: 32 bits each, as signed integers. */
  low = 0;
  high = 0;

  /** Reads from `bytes` now. */
  open(bytes: Uint8Array): void {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.enter(0, bytes.byteLength);
  }

  /** Reads the message at `[start, end)` now; who wants to go on where they were keeps `at` and `end`. */
  enter(start: number, end: number): void {
    this.at = start;
    this.end = end;
  }

  /** Reads the next field; false at the end of the message. Throws `MalformedWire`. */
  next(): boolean {
    if (this.at >= this.end) return false;
    const first = this.bytes[this.at] as number;
    // One byte holds the tags of all fields up to 15.
    if (first < 0x80 && first >= 8) {
      this.at++;
      this.tag = first;
    } else {
      this.#longTag();
    }
    switch (this.tag & 7) {
      case WIRE.length:
        this.#payload();
        return true;
      case WIRE.varint:
        this.#varint();
        return true;
      case WIRE.fixed64:
        if (this.end - this.at < 8) throw new MalformedWire("a number is cut off", this.at);
        this.low = this.view.getInt32(this.at, true);
        this.high = this.view.getInt32(this.at + 4, true);
        this.at += 8;
        return true;
      case WIRE.fixed32:
        if (this.end - this.at < 4) throw new MalformedWire("a number is cut off", this.at);
        this.low = this.view.getInt32(this.at, true);
        this.high = 0;
        this.at += 4;
        return true;
      case WIRE.startGroup:
        this.#skipGroup();
        return true;
      default:
        throw new MalformedWire(`wire type ${this.tag & 7} does not belong there`, this.at);
    }
  }

  #payload(): void {
    const first = this.at < this.end ? (this.bytes[this.at] as number) : 0x80;
    let length = first;
    if (first < 0x80) {
      this.at++;
    } else {
      this.#varint();
      length = this.high === 0 ? this.low >>> 0 : Infinity;
    }
    if (length > this.end - this.at) throw new MalformedWire("a length goes past the end of its message", this.at);
    this.start = this.at;
    this.stop = this.at + length;
    this.at = this.stop;
  }

  #longTag(): void {
    const { at } = this;
    this.#varint();
    const tag = this.low >>> 0;
    const isTag = this.high === 0 && tag >= 8 && this.at - at <= TAG_BYTES;
    if (!isTag) throw new MalformedWire("a field has no number", at);
    this.tag = tag;
  }

  /** Into `low` and `high`. */
  #varint(): void {
    const { bytes, end } = this;
    let { at } = this;
    const start = at;
    let low = 0;
    let high = 0;
    for (let shift = 0; ; shift += 7) {
      if (at >= end) throw new MalformedWire("a number is cut off", at);
      const byte = bytes[at++] as number;
      const bits = byte & 0x7f;
      if (shift < 28) low |= bits << shift;
      else if (shift === 28) {
        low |= bits << 28;
        high = bits >>> 4;
      } else if (shift < 63) high |= bits << (shift - 32);
      else high |= bits << 31;
      if (byte < 0x80) break;
      if (at - start >= VARINT_BYTES) throw new MalformedWire("a number has more than ten bytes", at);
    }
    this.at = at;
    this.low = low;
    this.high = high;
  }

  /** Steps over the group whose start was read; its tag stays. */
  #skipGroup(): void {
    const { tag, at } = this;
    const open = [tag];
    while (open.length > 0) {
      if (this.at >= this.end) throw new MalformedWire("a group does not end", at);
      if (this.at - at > this.maxGroupBytes) throw new MalformedWire("a group is too long", at);
      this.#longTag();
      const inner = this.tag;
      const type = inner & 7;
      if (type === WIRE.endGroup) {
        if (open.pop() !== inner - 1) throw new MalformedWire("the end of a group is another's", this.at);
      } else if (type === WIRE.startGroup) {
        if (open.push(inner) > MAX_GROUPS) throw new MalformedWire("groups are nested too deep", this.at);
      } else {
        this.#skipValue(type);
      }
    }
    this.tag = tag;
  }

  #skipValue(type: number): void {
    if (type === WIRE.length) this.#payload();
    else if (type === WIRE.varint) this.#varint();
    else if (type === WIRE.fixed64 || type === WIRE.fixed32) {
      this.at += type === WIRE.fixed64 ? 8 : 4;
      if (this.at > this.end) throw new MalformedWire("a number is cut off", this.end);
    } else throw new MalformedWire(`wire type ${type} does not belong there`, this.at);
  }
}
