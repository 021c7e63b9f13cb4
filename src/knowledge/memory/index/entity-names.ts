import { Lists } from "./block-pool.ts";
import { Names } from "./columns.ts";
import { foldedWords } from "./terms/fold.ts";

/** Which entities bear a name, by the words of the name; of a question, which of its words are names. */
export class EntityNames {
  readonly #keys = new Names();
  readonly #owners = new Lists();

  constructor() {
    // The key of what has no name.
    this.#keys.numberOf("");
  }

  /** Returns the number of the name's key. */
  add(name: string, owner: number): number {
    const key = this.#keys.numberOf(keyOf(foldedWords(name)));
    if (key !== 0 && !this.#owners.view(key).includes(owner)) this.#owners.push(key, owner);
    return key;
  }

  remove(key: number, owner: number): void {
    if (key !== 0) this.#owners.remove(key, owner);
  }

  /**
   * The names among the words of a text, long ones first; words of a name that was found name nothing else. Only names of
   * entities that `isSeen` are names.
   */
  namedIn(text: string, isSeen: (owner: number) => boolean): NamedKey[] {
    const words = foldedWords(text).slice(0, MOST_WORDS);
    const taken = words.map(() => false);
    const found: NamedKey[] = [];
    for (let size = Math.min(MOST_NAME_WORDS, words.length); size >= 1; size--) {
      for (let at = 0; at + size <= words.length; at++) {
        if (taken.slice(at, at + size).includes(true)) continue;
        const key = this.#keys.find(keyOf(words.slice(at, at + size)));
        if (key <= 0 || !this.#owners.view(key).some(isSeen)) continue;
        taken.fill(true, at, at + size);
        found.push({ key, words: size });
      }
    }
    return found;
  }

  /** The numbers of the entities that bear the name. */
  ownersOf(key: number): Uint32Array {
    return this.#owners.view(key);
  }

  /** The words of the name, folded. */
  nameOf(key: number): string {
    return this.#keys.texts[key] ?? "";
  }

  get sizeBytes(): number {
    return this.#keys.sizeBytes + this.#owners.sizeBytes;
  }
}

export type NamedKey = { key: number; words: number };

/** Longer names are known by their first words. */
const MOST_NAME_WORDS = 8;
/** Of a question. */
const MOST_WORDS = 256;

function keyOf(words: readonly string[]): string {
  return words.slice(0, MOST_NAME_WORDS).join(" ");
}
