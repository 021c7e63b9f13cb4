import { grown } from "./columns.ts";

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
  #hashes = new Uint32Array(64);
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

  get sizeBytes(): number {
    const { byteLength } = this.#bytes;
    return byteLength + this.#starts.byteLength + this.#places.byteLength + this.#hashes.byteLength;
  }

  #encode(id: string): number {
    const bytes = this.#scratch;
    if (UUID.test(id)) {
      bytes[0] = AS_UUID;
      return 1 + bytes.write(id.replaceAll("-", ""), 1, "hex");
    }
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
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
/** Of an id, at three bytes a character and more than `MEMORY_LIMITS.idChars` of them. */
const MOST_BYTES = 1_024;

/** FNV-1a with a final mix: derived ids differ in all their bits, others mostly in their last characters. */
function hashOf(bytes: Uint8Array, length: number): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < length; i++) hash = Math.imul(hash ^ (bytes[i] ?? 0), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  return (hash ^ (hash >>> 13)) >>> 0;
}
