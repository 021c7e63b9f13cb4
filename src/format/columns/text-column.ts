import { isUtf8 } from "node:buffer";
import { LIMITS } from "../../core/limits.ts";
import type { ColumnBlock } from "./column-block.ts";
import { Column, INITIAL_ROWS, VALIDITY_BYTES, type Bounds } from "./column.ts";
import { copyAscii, firstHit, specialBytes } from "../word-search.ts";
import { grown } from "./growth.ts";
import { hashBytes } from "./hash.ts";
import { lowerBound, upperBound } from "./text-bounds.ts";

const INITIAL_BYTES = 256;
const QUOTE = 0x22;
/** Up to this a loop beats making a view for a bulk copy. */
const SHORT_BYTES = 48;
/** The same with four bytes at a time. */
const COPIED_BYTES = 256;
const MEASURED_CHARS = 4_096;
/** By byte: its two hexadecimal digits. */
const HEX_PAIRS = Uint16Array.from({ length: 256 }, (_, byte) => {
  return Buffer.from(byte.toString(16).padStart(2, "0")).readUInt16BE();
});

const encoder = new TextEncoder();

/** `string` and `dynamic`: UTF-8 under 32-bit offsets. Only `string` has bounds. */
export class TextColumn extends Column {
  readonly storage = "text";
  override readonly rowBytes = 4 + VALIDITY_BYTES;
  #offsets = new Int32Array(INITIAL_ROWS + 1);
  #bytes = new Uint8Array(INITIAL_BYTES);
  #view = new DataView(this.#bytes.buffer);
  #length = 0;
  /** Of the rows before `#boundedRows`, which have the least and the greatest value; -1 while none has any. */
  #boundedRows = 0;
  #least = -1;
  #greatest = -1;

  /** Appends well-formed text. */
  appendText(text: string): void {
    if (this.rows + 1 >= this.#offsets.length) this.reserveRows(this.rows + 1);
    // A UTF-16 unit takes at most three bytes of UTF-8 (a surrogate pair four); long text is measured instead.
    this.#reserveBytes(text.length < MEASURED_CHARS ? text.length * 3 : Buffer.byteLength(text));
    const ascii = text.length <= SHORT_BYTES && this.#putAscii(text);
    this.#endValue(ascii ? text.length : encoder.encodeInto(text, this.#bytes.subarray(this.#length)).written);
  }

  /** Appends `source[start, end)`, which must be UTF-8. */
  appendBytes(source: Uint8Array, start: number, end: number): void {
    const length = end - start;
    if (this.rows + 1 >= this.#offsets.length) this.reserveRows(this.rows + 1);
    this.#reserveBytes(length);
    if (length > SHORT_BYTES) {
      this.#bytes.set(source.subarray(start, end), this.#length);
    } else {
      const target = this.#bytes;
      for (let from = start, to = this.#length; from < end; from++, to++) target[to] = source[from] ?? 0;
    }
    this.#endValue(length);
  }

  /** Appends `source[start, end)` where that is UTF-8; else it appends nothing and says false. */
  appendUtf8(source: DataView, start: number, end: number): boolean {
    const length = end - start;
    if (this.rows + 1 >= this.#offsets.length) this.reserveRows(this.rows + 1);
    this.#reserveBytes(length);
    if (length > COPIED_BYTES || !copyAscii(source, start, length, this.#view, this.#length)) {
      const bytes = new Uint8Array(source.buffer, source.byteOffset + start, length);
      if (!isUtf8(bytes)) return false;
      this.#bytes.set(bytes, this.#length);
    }
    this.#endValue(length);
    return true;
  }

  /** Appends `source[start, end)` in hexadecimal digits. */
  appendHex(source: Uint8Array, start: number, end: number): void {
    const length = 2 * (end - start);
    if (this.rows + 1 >= this.#offsets.length) this.reserveRows(this.rows + 1);
    this.#reserveBytes(length);
    const target = this.#view;
    for (let at = start, to = this.#length; at < end; at++, to += 2) {
      target.setUint16(to, HEX_PAIRS[source[at] as number] as number);
    }
    this.#endValue(length);
  }

  /**
   * Appends the characters of a JSON string that starts (behind its quote) at `start` and has no escapes. Returns where
   * its closing quote is; -1, and nothing appended, when a backslash or a control character comes first.
   *
   * Four bytes at a time, copied while they are looked at. `source` must be readable for three bytes beyond the first
   * control character.
   */
  appendQuoted(source: DataView, start: number): number {
    if (this.rows + 1 >= this.#offsets.length) this.reserveRows(this.rows + 1);
    let at = start;
    let to = this.#length;
    let target = this.#view;
    let limit = target.byteLength - 4;
    for (;;) {
      if (to > limit) {
        this.#reserveBytes(to + SHORT_BYTES - this.#length);
        target = this.#view;
        limit = target.byteLength - 4;
      }
      const word = source.getInt32(at, true);
      target.setInt32(to, word, true);
      const hits = specialBytes(word);
      if (hits !== 0) {
        const hit = firstHit(hits);
        at += hit;
        to += hit;
        break;
      }
      at += 4;
      to += 4;
    }
    if (source.getUint8(at) !== QUOTE) return -1;
    this.#endValue(to - this.#length);
    return at;
  }

  /** Bytes of all values so far. */
  get textBytes(): number {
    return this.#length;
  }

  override appendBlock(block: ColumnBlock): void {
    const { rows, values, text, textBytes, least, greatest } = block;
    const before = this.rows;
    this.reserveRows(before + rows);
    this.#reserveBytes(textBytes);
    this.#bytes.set(block.bytes.subarray(text, text + textBytes), this.#length);
    this.#length += textBytes;
    const first = values >>> 2;
    this.#offsets.set(block.ints.subarray(first, first + rows), before + 1);
    this.commitBlock(block);
    if (least < 0) return;
    this.#findBounds(before);
    this.#bound(before + least);
    this.#bound(before + greatest);
    this.#boundedRows = this.rows;
  }

  /** Appends `text`, which must be UTF-8, to so many rows. */
  appendRepeated(text: Uint8Array, times: number): void {
    const { length } = text;
    const [firstRow, start, size] = [this.rows, this.#length, length * times];
    this.reserveRows(firstRow + times);
    this.#reserveBytes(size);
    const bytes = this.#bytes;
    if (size > 0) bytes.set(text, start);
    // What is there already is copied, twice as much each time.
    for (let done = length; done < size; done *= 2) {
      bytes.copyWithin(start + done, start, start + Math.min(done, size - done));
    }
    for (let i = 1; i <= times; i++) this.#offsets[firstRow + i] = start + i * length;
    const { validity } = this;
    for (let row = firstRow; row < firstRow + times; row++) {
      validity[row >>> 3] = (validity[row >>> 3] as number) | (1 << (row & 7));
    }
    this.#length = start + size;
    this.rows = firstRow + times;
  }

  /** Room for a value of up to `sizeBytes`, to be written into `target` at `from` and ended by `endText`. */
  room(sizeBytes: number): { target: Uint8Array; from: number } {
    if (this.rows + 1 >= this.#offsets.length) this.reserveRows(this.rows + 1);
    this.#reserveBytes(sizeBytes);
    return { target: this.#bytes, from: this.#length };
  }

  /** Ends the value written into the room that was asked for: `end` is where it ends in `target`. */
  endText(end: number): void {
    this.#endValue(end - this.#length);
  }

  /** `rows + 1` offsets into `bytes` from `row` on. */
  offsets(row: number, rows: number): Int32Array {
    return this.#offsets.subarray(row, row + rows + 1);
  }

  bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  override encodedBytes(rows: number): number {
    return super.encodedBytes(rows) + this.#length;
  }

  override get capacityBytes(): number {
    return this.validity.byteLength + this.#offsets.byteLength + this.#bytes.byteLength;
  }

  protected override reserveRows(rows: number): void {
    if (rows < this.#offsets.length) return;
    this.#offsets = grown(this.#offsets, rows + 1);
    super.reserveRows(this.#offsets.length);
  }

  protected override fillNulls(from: number, to: number): void {
    this.#offsets.fill(this.#length, from + 1, to + 1);
    if (this.#boundedRows === from) this.#boundedRows = to;
  }

  protected override dropValues(from: number, to: number): void {
    const length = this.#offsets[from] ?? 0;
    this.#offsets.fill(0, from + 1, to + 1);
    this.#bytes.fill(0, length, this.#length);
    this.#length = length;
    if (from >= this.#boundedRows) return;
    this.#boundedRows = 0;
    this.#least = -1;
    this.#greatest = -1;
  }

  protected override bounds(): Bounds | undefined {
    if (this.spec.type.kind !== "string") return undefined;
    this.#findBounds(this.rows);
    const max = upperBound(this.#value(this.#greatest), LIMITS.stringStatBytes);
    return { min: lowerBound(this.#value(this.#least), LIMITS.stringStatBytes), ...(max === undefined ? {} : { max }) };
  }

  /** Looks through the rows before `end` that nobody has looked through. */
  #findBounds(end: number): void {
    let leastPrefix = this.#least < 0 ? 0 : this.#prefix(this.#least);
    let greatestPrefix = this.#greatest < 0 ? 0 : this.#prefix(this.#greatest);
    for (let row = this.#boundedRows; row < end; row++) {
      if (this.nullCount > 0 && !this.isValid(row)) continue;
      const prefix = this.#prefix(row);
      // Most values are ruled out by their first bytes.
      if (this.#least >= 0 && prefix > leastPrefix && prefix < greatestPrefix) continue;
      this.#bound(row);
      if (this.#least === row) leastPrefix = prefix;
      if (this.#greatest === row) greatestPrefix = prefix;
    }
    this.#boundedRows = Math.max(this.#boundedRows, end);
  }

  /** Moves the bounds to the row's value if it is beyond them. */
  #bound(row: number): void {
    if (this.#least < 0 || this.#compare(row, this.#least) < 0) this.#least = row;
    if (this.#greatest < 0 || this.#compare(row, this.#greatest) > 0) this.#greatest = row;
  }

  protected override hashRows(rows: Int32Array, hashes: Int32Array): void {
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i] ?? 0;
      const start = this.#offsets[row] ?? 0;
      hashes[i] = hashBytes(this.#view, start, (this.#offsets[row + 1] ?? 0) - start);
    }
  }

  #reserveBytes(more: number): void {
    const needed = this.#length + more;
    if (needed <= this.#bytes.length) return;
    this.#bytes = grown(this.#bytes, needed);
    this.#view = new DataView(this.#bytes.buffer);
  }

  /** Writes the text at the end if it is ASCII; what it wrote of other text gets overwritten. */
  #putAscii(text: string): boolean {
    const target = this.#bytes;
    for (let i = 0, to = this.#length; i < text.length; i++, to++) {
      const unit = text.charCodeAt(i);
      if (unit > 0x7f) return false;
      target[to] = unit;
    }
    return true;
  }

  #endValue(length: number): void {
    const row = this.rows;
    this.#length += length;
    this.#offsets[row + 1] = this.#length;
    const { validity } = this;
    validity[row >>> 3] = (validity[row >>> 3] as number) | (1 << (row & 7));
    this.rows = row + 1;
  }

  #value(row: number): Uint8Array {
    return this.#bytes.subarray(this.#offsets[row] ?? 0, this.#offsets[row + 1] ?? 0);
  }

  /** The first four bytes as a number that orders as they do; short values are filled up with zeroes. */
  #prefix(row: number): number {
    const start = this.#offsets[row] ?? 0;
    const length = (this.#offsets[row + 1] ?? 0) - start;
    if (length >= 4) return this.#view.getUint32(start);
    let prefix = 0;
    for (let i = 0; i < 4; i++) prefix = prefix * 256 + (i < length ? (this.#bytes[start + i] ?? 0) : 0);
    return prefix;
  }

  /** Orders two values by their bytes, which is the order of their code points. */
  #compare(a: number, b: number): number {
    const bytes = this.#bytes;
    const view = this.#view;
    const startA = this.#offsets[a] ?? 0;
    const startB = this.#offsets[b] ?? 0;
    const lengthA = (this.#offsets[a + 1] ?? 0) - startA;
    const lengthB = (this.#offsets[b + 1] ?? 0) - startB;
    const shared = Math.min(lengthA, lengthB);
    let i = 0;
    while (i + 4 <= shared && view.getInt32(startA + i) === view.getInt32(startB + i)) i += 4;
    for (; i < shared; i++) {
      const difference = (bytes[startA + i] ?? 0) - (bytes[startB + i] ?? 0);
      if (difference !== 0) return difference;
    }
    return lengthA - lengthB;
  }
}
