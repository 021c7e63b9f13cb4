import { grown } from "./columns.ts";
import { HASH_START, hashEnd, hashStep } from "./hash.ts";

/**
 * Texts as numbers, from 0 on: an open-addressing hash table over the code units of all of them, one after the other. It
 * is asked for a range of a longer text, so no string is made for a word that is known.
 */
export class TextTable {
  #units = new Uint16Array(1_024);
  #end = 0;
  /** Where the units of a text begin; one more than there are texts. */
  #starts = new Uint32Array(64);
  #hashes = new Int32Array(64);
  /** Number + 1 by hash; 0 is free. A power of two, at most half full. */
  #places = new Uint32Array(128);
  count = 0;

  /** -1 for a text that has none. */
  find(text: string, from = 0, to = text.length): number {
    return this.#look(hashOf(text, from, to), text, from, to);
  }

  numberOf(text: string, from = 0, to = text.length): number {
    const hash = hashOf(text, from, to);
    const found = this.#look(hash, text, from, to);
    return found >= 0 ? found : this.#add(hash, text, from, to);
  }

  get sizeBytes(): number {
    const { byteLength } = this.#units;
    return byteLength + this.#starts.byteLength + this.#hashes.byteLength + this.#places.byteLength;
  }

  #look(hash: number, text: string, from: number, to: number): number {
    const places = this.#places;
    const mask = places.length - 1;
    for (let place = hash & mask; ; place = (place + 1) & mask) {
      const number = (places[place] ?? 0) - 1;
      if (number < 0) return -1;
      if (this.#hashes[number] === hash && this.#isEqual(number, text, from, to)) return number;
    }
  }

  #isEqual(number: number, text: string, from: number, to: number): boolean {
    const start = this.#starts[number] ?? 0;
    if ((this.#starts[number + 1] ?? 0) - start !== to - from) return false;
    for (let i = from; i < to; i++) if (this.#units[start + i - from] !== text.charCodeAt(i)) return false;
    return true;
  }

  #add(hash: number, text: string, from: number, to: number): number {
    const number = this.count++;
    this.#units = grown(this.#units, this.#end + to - from);
    for (let i = from; i < to; i++) this.#units[this.#end++] = text.charCodeAt(i);
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

function hashOf(text: string, from: number, to: number): number {
  let hash = HASH_START;
  for (let i = from; i < to; i++) hash = hashStep(hash, text.charCodeAt(i));
  return hashEnd(hash);
}
