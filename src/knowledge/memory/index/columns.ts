/** Typed arrays that grow: a value by number. What was never set is 0. */

type Numbers = Uint8Array | Uint16Array | Int32Array | Uint32Array | Float32Array | Float64Array;

const FIRST_LENGTH = 64;
/** Doubling would leave half of a large array unused. */
const GROWTH = 1.5;

/** The same values in an array of at least `length`. */
export function grown<A extends Numbers>(values: A, length: number): A {
  if (length <= values.length) return values;
  const wanted = Math.max(length, FIRST_LENGTH, Math.ceil(values.length * GROWTH));
  const larger = new (values.constructor as new (length: number) => A)(wanted);
  larger.set(values);
  return larger;
}

/** Numbers for texts that repeat (realms, types, tags), from 0 on. */
export class Names {
  readonly #numbers = new Map<string, number>();
  readonly texts: string[] = [];

  numberOf(text: string): number {
    const known = this.#numbers.get(text);
    if (known !== undefined) return known;
    const number = this.texts.length;
    this.#numbers.set(text, number);
    this.texts.push(text);
    return number;
  }

  /** -1 for a text that has none. */
  find(text: string): number {
    return this.#numbers.get(text) ?? -1;
  }

  get sizeBytes(): number {
    return this.texts.length * NAME_BYTES;
  }
}

/** About what V8 takes for an entry of a map with a text of a word's length. */
const NAME_BYTES = 100;
