import { grown } from "./columns.ts";
import { enter, FREE, HASH_START, hashEnd, hashStep, isOfHash, numberIn } from "./hash.ts";
import { TextUnits } from "./terms/text-units.ts";

/**
 * Texts as numbers, from 0 on: an open-addressing hash table over the code units of all of them, one after the other. It
 * is asked for a range of the units of a longer text, so no string is made for a word that is known.
 */
export class TextTable {
  #units = new Uint16Array(1_024);
  #end = 0;
  /** Where the units of a text begin; one more than there are texts. */
  #starts = new Uint32Array(64);
  /** Entries by hash (`hash.ts`); at most half are taken. */
  #places = new Int32Array(128);
  count = 0;
  /** Of a text that comes as a string. */
  readonly #text = new TextUnits();

  /** -1 for a text that has none. */
  find(units: Uint16Array, from: number, to: number): number {
    return this.#look(hashOf(units, from, to), units, from, to);
  }

  numberOf(units: Uint16Array, from: number, to: number): number {
    const hash = hashOf(units, from, to);
    const found = this.#look(hash, units, from, to);
    return found >= 0 ? found : this.#add(hash, units, from, to);
  }

  findText(text: string): number {
    this.#text.read(text);
    return this.find(this.#text.values, 0, text.length);
  }

  numberOfText(text: string): number {
    this.#text.read(text);
    return this.numberOf(this.#text.values, 0, text.length);
  }

  get sizeBytes(): number {
    return this.#units.byteLength + this.#starts.byteLength + this.#places.byteLength;
  }

  #look(hash: number, units: Uint16Array, from: number, to: number): number {
    const places = this.#places;
    const mask = places.length - 1;
    for (let place = hash & mask; ; place = (place + 1) & mask) {
      const entry = places[place] ?? 0;
      if (entry === FREE) return -1;
      if (isOfHash(entry, hash, mask) && this.#isEqual(numberIn(entry, mask), units, from, to))
        return numberIn(entry, mask);
    }
  }

  #isEqual(number: number, units: Uint16Array, from: number, to: number): boolean {
    const own = this.#units;
    const start = this.#starts[number] ?? 0;
    if ((this.#starts[number + 1] ?? 0) - start !== to - from) return false;
    for (let i = from, at = start; i < to; i++, at++) if (own[at] !== units[i]) return false;
    return true;
  }

  #add(hash: number, units: Uint16Array, from: number, to: number): number {
    const number = this.count++;
    this.#units = grown(this.#units, this.#end + to - from);
    for (let i = from; i < to; i++) this.#units[this.#end++] = units[i] ?? 0;
    this.#starts = grown(this.#starts, number + 2);
    this.#starts[number + 1] = this.#end;
    if (this.count * 2 > this.#places.length) this.#double();
    else enter(this.#places, hash, number);
    return number;
  }

  #double(): void {
    this.#places = new Int32Array(this.#places.length * 2);
    for (let number = 0; number < this.count; number++) {
      const hash = hashOf(this.#units, this.#starts[number] ?? 0, this.#starts[number + 1] ?? 0);
      enter(this.#places, hash, number);
    }
  }
}

/** Two units at a time: each round waits for the one before it. */
function hashOf(units: Uint16Array, from: number, to: number): number {
  let hash = HASH_START;
  let i = from;
  for (; i + 1 < to; i += 2) hash = hashStep(hash, ((units[i] ?? 0) << 16) | (units[i + 1] ?? 0));
  if (i < to) hash = hashStep(hash, units[i] ?? 0);
  return hashEnd(hashStep(hash, to - from));
}
