import { grown } from "./columns.ts";
import { enter, FREE, HASH_START, hashEnd, hashStep, isOfHash, numberIn } from "./hash.ts";

/**
 * Ids as numbers, from 0 on, and back. A hash table of open addressing; strings in a `Map` would take five times as much.
 * A UUID, which most ids are, is four words of 32 bits. Of another id the words are a hash, and where its bytes are among
 * those of all others: the last word is a length then.
 */
export class IdTable {
  /** By number, four each. */
  #words = new Uint32Array(64 * WORDS);
  #isText = new Uint8Array(64);
  /** Entries by hash (`hash.ts`); at most half are taken. */
  #places = new Int32Array(128);
  #bytes = new Uint8Array(0);
  #end = 0;
  count = 0;

  /** The words of the id that is looked for; of a text its bytes, too. */
  readonly #asked = new Uint32Array(WORDS);
  #askedBytes: Uint8Array | undefined;

  numberOf(id: string): number {
    const hash = this.#read(id);
    const known = this.#look(hash);
    return known < 0 ? this.#add(hash) : known;
  }

  /** -1 for an id that has none. */
  find(id: string): number {
    return this.#look(this.#read(id));
  }

  /** Makes room for so many ids in all. */
  reserve(count: number): void {
    this.#words = grown(this.#words, count * WORDS);
    this.#isText = grown(this.#isText, count);
    this.#makePlaces(count);
  }

  idOf(number: number): string {
    const at = number * WORDS;
    if (this.#isText[number] === 1) return Buffer.from(this.#bytesOf(at)).toString("utf8");
    for (let i = 0; i < WORDS; i++) uuid.writeUInt32BE(this.#words[at + i] ?? 0, i * Uint32Array.BYTES_PER_ELEMENT);
    const hex = uuid.toString("hex");
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
  }

  /** An order of ids, by their numbers, that does not depend on how they came. */
  compare(a: number, b: number): number {
    const texts = (this.#isText[a] ?? 0) - (this.#isText[b] ?? 0);
    if (texts !== 0) return texts;
    if (this.#isText[a] === 1) return Buffer.compare(this.#bytesOf(a * WORDS), this.#bytesOf(b * WORDS));
    for (let i = 0; i < WORDS; i++) {
      const difference = (this.#words[a * WORDS + i] ?? 0) - (this.#words[b * WORDS + i] ?? 0);
      if (difference !== 0) return difference;
    }
    return 0;
  }

  get sizeBytes(): number {
    const { byteLength } = this.#words;
    return byteLength + this.#isText.byteLength + this.#places.byteLength + this.#bytes.byteLength;
  }

  /** Reads the id that is looked for. Returns its hash. */
  #read(id: string): number {
    const asked = this.#asked;
    this.#askedBytes = undefined;
    if (id.length !== UUID_CHARS || !readUuid(id, asked)) {
      this.#askedBytes = Buffer.from(id, "utf8");
      readText(this.#askedBytes, asked);
    }
    return hashOf(asked, 0);
  }

  #look(hash: number): number {
    const places = this.#places;
    const mask = places.length - 1;
    for (let place = hash & mask; ; place = (place + 1) & mask) {
      const entry = places[place] ?? 0;
      if (entry === FREE) return -1;
      if (isOfHash(entry, hash, mask) && this.#isAsked(numberIn(entry, mask))) return numberIn(entry, mask);
    }
  }

  #isAsked(number: number): boolean {
    const words = this.#words;
    const asked = this.#asked;
    const at = number * WORDS;
    if (words[at] !== asked[0] || words[at + 1] !== asked[1] || words[at + LENGTH] !== asked[LENGTH]) return false;
    if (this.#askedBytes === undefined) return words[at + START] === asked[START] && this.#isText[number] === 0;
    return this.#isText[number] === 1 && Buffer.compare(this.#askedBytes, this.#bytesOf(at)) === 0;
  }

  /** Adds the id that was looked for. */
  #add(hash: number): number {
    const number = this.count++;
    const at = number * WORDS;
    this.#words = grown(this.#words, at + WORDS);
    this.#isText = grown(this.#isText, this.count);
    for (let i = 0; i < WORDS; i++) this.#words[at + i] = this.#asked[i] ?? 0;
    if (this.#askedBytes !== undefined) {
      const { length } = this.#askedBytes;
      this.#bytes = grown(this.#bytes, this.#end + length);
      this.#bytes.set(this.#askedBytes, this.#end);
      this.#isText[number] = 1;
      this.#words[at + START] = this.#end;
      this.#end += length;
    }
    if (this.count * 2 > this.#places.length) this.#makePlaces(this.count);
    else enter(this.#places, hash, number);
    return number;
  }

  #bytesOf(at: number): Uint8Array {
    const start = this.#words[at + START] ?? 0;
    return this.#bytes.subarray(start, start + (this.#words[at + LENGTH] ?? 0));
  }

  /** Makes places for so many ids, and enters those that there are. */
  #makePlaces(count: number): void {
    let length = this.#places.length;
    while (length < count * 2) length *= 2;
    this.#places = new Int32Array(length);
    for (let number = 0; number < this.count; number++) {
      const at = number * WORDS;
      // Where a text is, is nothing that it is looked for by.
      const start = this.#words[at + START] ?? 0;
      if (this.#isText[number] === 1) this.#words[at + START] = 0;
      enter(this.#places, hashOf(this.#words, at), number);
      this.#words[at + START] = start;
    }
  }
}

const WORDS = 4;
/** Of a text, the words that are no hash. */
const START = 2;
const LENGTH = 3;

const UUID_CHARS = 36;
/** The bytes of the one that is written. */
const uuid = Buffer.alloc(16);
const HYPHEN = 0x2d;
const NO_DIGIT = -1;
/** The values of the digits 0–9 and a–f by their code unit; of other characters one that is no digit's. */
const DIGITS = Int8Array.from({ length: 128 }, (_, unit) => {
  return "0123456789abcdef".indexOf(String.fromCharCode(unit));
});

/** False for what is no UUID as UUIDs are written. */
function readUuid(id: string, words: Uint32Array): boolean {
  if (id.charCodeAt(8) !== HYPHEN || id.charCodeAt(13) !== HYPHEN) return false;
  if (id.charCodeAt(18) !== HYPHEN || id.charCodeAt(23) !== HYPHEN) return false;
  const [a, b] = [fourDigits(id, 0), fourDigits(id, 4)];
  const [c, d] = [fourDigits(id, 9), fourDigits(id, 14)];
  const [e, f] = [fourDigits(id, 19), fourDigits(id, 24)];
  const [g, h] = [fourDigits(id, 28), fourDigits(id, 32)];
  if ((a | b | c | d | e | f | g | h) < 0) return false;
  words[0] = (a << 16) | b;
  words[1] = (c << 16) | d;
  words[2] = (e << 16) | f;
  words[3] = (g << 16) | h;
  return true;
}

/** The value of four hexadecimal digits; less than 0 where one is none. */
function fourDigits(id: string, at: number): number {
  const a = digitOf(id.charCodeAt(at));
  const b = digitOf(id.charCodeAt(at + 1));
  const c = digitOf(id.charCodeAt(at + 2));
  const d = digitOf(id.charCodeAt(at + 3));
  return (a << 12) | (b << 8) | (c << 4) | d;
}

function digitOf(unit: number): number {
  return DIGITS[unit] ?? NO_DIGIT;
}

function readText(bytes: Uint8Array, words: Uint32Array): void {
  let first = HASH_START;
  for (const byte of bytes) first = hashStep(first, byte);
  words[0] = hashEnd(first);
  words[1] = hashEnd(hashStep(first, bytes.length));
  words[START] = 0;
  words[LENGTH] = bytes.length;
}

/** The hash of the words from `at` on. */
function hashOf(words: Uint32Array, at: number): number {
  let hash = HASH_START;
  for (let i = 0; i < WORDS; i++) hash = hashStep(hash, words[at + i] ?? 0);
  return hashEnd(hash);
}
