import { grown } from "./columns.ts";
import { HASH_START, hashEnd, hashStep } from "./hash.ts";

/**
 * Ids as numbers, from 0 on, and back. A hash table of open addressing over the bytes of all ids, one after the other:
 * strings in a `Map` would take five times as much. UUIDs, which most are, take 16 bytes.
 */
export class IdTable {
  #bytes = new Uint8Array(1024);
  #end = 0;
  /** Where the bytes of an id begin; one more than there are ids. */
  #starts = new Uint32Array(64);
  /** Number + 1 by hash; 0 is free. A power of two, at most half full. */
  #places = new Uint32Array(128);
  #hashes = new Int32Array(64);
  count = 0;

  readonly #scratch = Buffer.alloc(MOST_BYTES);

  numberOf(id: string): number {
    const length = this.#encode(id);
    const hash = hashOf(this.#scratch, length);
    const found = this.#look(hash, length);
    if (found >= 0) return found;
    return this.#add(hash, length);
  }

  /** -1 for an id that has none. */
  find(id: string): number {
    if (id.length > MOST_BYTES / 3) return -1;
    const length = this.#encode(id);
    return this.#look(hashOf(this.#scratch, length), length);
  }

  idOf(number: number): string {
    const start = this.#starts[number] ?? 0;
    const end = this.#starts[number + 1] ?? 0;
    const bytes = Buffer.from(this.#bytes.buffer, this.#bytes.byteOffset + start, end - start);
    if (bytes[0] !== AS_UUID) return bytes.toString("utf8", 1);
    const hex = bytes.toString("hex", 1);
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
  }

  /** An order of ids by their numbers. */
  compare(a: number, b: number): number {
    const bytes = this.#bytes;
    const aEnd = this.#starts[a + 1] ?? 0;
    const bEnd = this.#starts[b + 1] ?? 0;
    let atA = this.#starts[a] ?? 0;
    let atB = this.#starts[b] ?? 0;
    for (; atA < aEnd && atB < bEnd; atA++, atB++) {
      const difference = (bytes[atA] ?? 0) - (bytes[atB] ?? 0);
      if (difference !== 0) return difference;
    }
    return aEnd - atA - (bEnd - atB);
  }

  get sizeBytes(): number {
    const { byteLength } = this.#bytes;
    return byteLength + this.#starts.byteLength + this.#places.byteLength + this.#hashes.byteLength;
  }

  /** Puts the bytes of an id into the scratch. Returns how many they are. */
  #encode(id: string): number {
    const bytes = this.#scratch;
    if (id.length === UUID_CHARS && encodeUuid(id, bytes)) return 1 + UUID_BYTES;
    if (id.length > MOST_BYTES / 3) throw new Error(`an id of ${id.length} characters is longer than ids may be`);
    bytes[0] = AS_TEXT;
    return 1 + bytes.write(id, 1, "utf8");
  }

  #look(hash: number, length: number): number {
    const mask = this.#places.length - 1;
    for (let place = hash & mask; ; place = (place + 1) & mask) {
      const number = (this.#places[place] ?? 0) - 1;
      if (number < 0) return -1;
      if (this.#hashes[number] === hash && this.#isEqual(number, length)) return number;
    }
  }

  #isEqual(number: number, length: number): boolean {
    const start = this.#starts[number] ?? 0;
    if ((this.#starts[number + 1] ?? 0) - start !== length) return false;
    for (let i = 0; i < length; i++) if (this.#bytes[start + i] !== this.#scratch[i]) return false;
    return true;
  }

  #add(hash: number, length: number): number {
    const number = this.count++;
    this.#bytes = grown(this.#bytes, this.#end + length);
    this.#bytes.set(this.#scratch.subarray(0, length), this.#end);
    this.#end += length;
    this.#starts = grown(this.#starts, number + 2);
    this.#starts[number + 1] = this.#end;
    this.#hashes = grown(this.#hashes, number + 1);
    this.#hashes[number] = hash;
    if (this.count * 2 > this.#places.length) this.#rehash();
    else this.#place(number, hash);
    return number;
  }

  #rehash(): void {
    this.#places = new Uint32Array(this.#places.length * 2);
    for (let number = 0; number < this.count; number++) this.#place(number, this.#hashes[number] ?? 0);
  }

  #place(number: number, hash: number): void {
    const mask = this.#places.length - 1;
    let place = hash & mask;
    while (this.#places[place] !== 0) place = (place + 1) & mask;
    this.#places[place] = number + 1;
  }
}

const AS_TEXT = 0;
const AS_UUID = 1;
const UUID_CHARS = 36;
const UUID_BYTES = 16;
/** Of an id, at three bytes a character and more than `MEMORY_LIMITS.idChars` of them. */
const MOST_BYTES = 1_024;

const NO_DIGIT = 0x80;
/** The values of the digits 0–9 and a–f by their code unit; of other characters one that is no digit's. */
const DIGITS = Uint8Array.from({ length: 128 }, (_, unit) => {
  const digit = "0123456789abcdef".indexOf(String.fromCharCode(unit));
  return digit < 0 ? NO_DIGIT : digit;
});

/** False for what is no UUID as UUIDs are written. */
function encodeUuid(id: string, bytes: Uint8Array): boolean {
  bytes[0] = AS_UUID;
  let end = 1;
  for (let i = 0; i < UUID_CHARS; i += 2) {
    if (i === 8 || i === 13 || i === 18 || i === 23) {
      if (id.charCodeAt(i) !== HYPHEN) return false;
      i++;
    }
    const high = DIGITS[id.charCodeAt(i)] ?? NO_DIGIT;
    const low = DIGITS[id.charCodeAt(i + 1)] ?? NO_DIGIT;
    if (((high | low) & NO_DIGIT) !== 0) return false;
    bytes[end++] = (high << 4) | low;
  }
  return true;
}

const HYPHEN = 0x2d;

/** Four bytes at a time, and the rest. */
function hashOf(bytes: Uint8Array, length: number): number {
  let hash = HASH_START;
  let i = 0;
  for (; i + 4 <= length; i += 4) {
    const high = ((bytes[i] ?? 0) << 8) | (bytes[i + 1] ?? 0);
    hash = hashStep(hash, (high << 16) | ((bytes[i + 2] ?? 0) << 8) | (bytes[i + 3] ?? 0));
  }
  for (; i < length; i++) hash = hashStep(hash, bytes[i] ?? 0);
  return hashEnd(hash);
}
