import { grown } from "./columns.ts";
import { HASH_START, hashEnd, hashStep } from "./hash.ts";

/**
 * Ids as numbers, from 0 on, and back. A hash table of open addressing; strings in a `Map` would take five times as much.
 * A UUID, which most ids are, is four words of 32 bits. Of another id the words are a hash, and where its bytes are among
 * those of all others: the last word is a length then.
 */
export class IdTable {
  /** By number, four each. */
  #words = new Uint32Array(64 * WORDS);
  #isText = new Uint8Array(64);
  /** Number + 1 by hash; 0 is free. A power of two, at most half full. */
  #places = new Uint32Array(128);
  #bytes = new Uint8Array(0);
  #end = 0;
  count = 0;

  /** The words of the id that is looked for; of a text its bytes, too. */
  readonly #asked = new Uint32Array(WORDS);
  #askedBytes: Uint8Array | undefined;

  numberOf(id: string): number {
    const place = this.#placeOf(id);
    const known = this.#places[place] ?? 0;
    return known === 0 ? this.#add(place) : known - 1;
  }

  /** -1 for an id that has none. */
  find(id: string): number {
    return (this.#places[this.#placeOf(id)] ?? 0) - 1;
  }

  idOf(number: number): string {
    const at = number * WORDS;
    if (this.#isText[number] === 1) return Buffer.from(this.#bytesOf(at)).toString("utf8");
    const hex = Array.from(this.#words.subarray(at, at + WORDS), (word) => word.toString(16).padStart(8, "0")).join("");
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

  /** Where the number of an id is, or would be. */
  #placeOf(id: string): number {
    const asked = this.#asked;
    this.#askedBytes = undefined;
    if (id.length !== UUID_CHARS || !readUuid(id, asked)) {
      this.#askedBytes = Buffer.from(id, "utf8");
      readText(this.#askedBytes, asked);
    }
    const words = this.#words;
    const mask = this.#places.length - 1;
    for (let place = hashOf(asked) & mask; ; place = (place + 1) & mask) {
      const number = (this.#places[place] ?? 0) - 1;
      if (number < 0) return place;
      const at = number * WORDS;
      if (words[at] !== asked[0] || words[at + 1] !== asked[1] || words[at + LENGTH] !== asked[LENGTH]) continue;
      if (this.#askedBytes === undefined) {
        if (words[at + START] === asked[START] && this.#isText[number] === 0) return place;
      } else if (this.#isText[number] === 1 && Buffer.compare(this.#askedBytes, this.#bytesOf(at)) === 0) return place;
    }
  }

  /** Adds the id that was looked for. */
  #add(place: number): number {
    const number = this.count++;
    this.#words = grown(this.#words, this.count * WORDS);
    this.#isText = grown(this.#isText, this.count);
    this.#words.set(this.#asked, number * WORDS);
    if (this.#askedBytes !== undefined) {
      const { length } = this.#askedBytes;
      this.#bytes = grown(this.#bytes, this.#end + length);
      this.#bytes.set(this.#askedBytes, this.#end);
      this.#isText[number] = 1;
      this.#words[number * WORDS + START] = this.#end;
      this.#end += length;
    }
    if (this.count * 2 > this.#places.length) this.#rehash();
    else this.#places[place] = number + 1;
    return number;
  }

  #bytesOf(at: number): Uint8Array {
    const start = this.#words[at + START] ?? 0;
    return this.#bytes.subarray(start, start + (this.#words[at + LENGTH] ?? 0));
  }

  #rehash(): void {
    this.#places = new Uint32Array(this.#places.length * 2);
    const mask = this.#places.length - 1;
    const words = new Uint32Array(WORDS);
    for (let number = 0; number < this.count; number++) {
      words.set(this.#words.subarray(number * WORDS, (number + 1) * WORDS));
      // Where a text is, is nothing that it is looked for by.
      if (this.#isText[number] === 1) words[START] = 0;
      let place = hashOf(words) & mask;
      while (this.#places[place] !== 0) place = (place + 1) & mask;
      this.#places[place] = number + 1;
    }
  }
}

const WORDS = 4;
/** Of a text, the words that are no hash. */
const START = 2;
const LENGTH = 3;

const UUID_CHARS = 36;
const HYPHEN = 0x2d;
const NO_DIGIT = 0x80;
/** The values of the digits 0–9 and a–f by their code unit; of other characters one that is no digit's. */
const DIGITS = Uint8Array.from({ length: 128 }, (_, unit) => {
  const digit = "0123456789abcdef".indexOf(String.fromCharCode(unit));
  return digit < 0 ? NO_DIGIT : digit;
});

/** False for what is no UUID as UUIDs are written. */
function readUuid(id: string, words: Uint32Array): boolean {
  let bad = 0;
  let word = 0;
  let digits = 0;
  for (let i = 0; i < UUID_CHARS; i++) {
    const unit = id.charCodeAt(i);
    if (i === 8 || i === 13 || i === 18 || i === 23) {
      if (unit !== HYPHEN) return false;
      continue;
    }
    const digit = DIGITS[unit] ?? NO_DIGIT;
    bad |= digit;
    word = (word << 4) | digit;
    if ((++digits & 7) === 0) words[(digits >> 3) - 1] = word;
  }
  return (bad & NO_DIGIT) === 0;
}

function readText(bytes: Uint8Array, words: Uint32Array): void {
  let first = HASH_START;
  for (const byte of bytes) first = hashStep(first, byte);
  words[0] = hashEnd(first);
  words[1] = hashEnd(hashStep(first, bytes.length));
  words[START] = 0;
  words[LENGTH] = bytes.length;
}

function hashOf(words: Uint32Array): number {
  let hash = HASH_START;
  for (let i = 0; i < WORDS; i++) hash = hashStep(hash, words[i] ?? 0);
  return hashEnd(hash);
}
