import { TextUnits } from "./text-units.ts";

/**
 * Where the words of a text are. A chunk is what stands between blanks and punctuation: a word, or an identifier with
 * what joins its parts (`fooBar_baz-9`, `src/a/b.ts`, `1.2.3`, `ann@example.com`). Joiners at its ends are punctuation.
 */
export class Chunks {
  readonly text = new TextUnits();
  /** Of the chunk that `next` has found: where it begins and ends. */
  from = 0;
  to = 0;
  #at = 0;

  read(text: string): void {
    this.text.read(text);
    this.#at = 0;
  }

  /** Finds the next chunk; false after the last one. */
  next(): boolean {
    const { values, length } = this.text;
    let at = this.#at;
    while (at < length) {
      while (at < length && classOf(values[at] ?? 0) === OTHER) at++;
      const start = at;
      let lastWord = -1;
      for (; at < length; at++) {
        const kind = classOf(values[at] ?? 0);
        if (kind === OTHER) break;
        if (kind === WORD) lastWord = at;
      }
      if (lastWord === -1) continue;
      let first = start;
      while (classOf(values[first] ?? 0) === JOINER) first++;
      this.#at = at;
      this.from = first;
      this.to = this.#endOf(first, lastWord + 1);
      return true;
    }
    this.#at = at;
    return false;
  }

  /** `C++` and `F#` are words with their signs. */
  #endOf(first: number, end: number): number {
    const { values, length } = this.text;
    if (end - first > 2 || end >= length) return end;
    if (values[end] === SHARP) return end + 1;
    return values[end] === PLUS && end + 1 < length && values[end + 1] === PLUS ? end + 2 : end;
  }
}

const SHARP = 0x23;
const PLUS = 0x2b;

const OTHER = 0;
const WORD = 1;
const JOINER = 2;
type CharClass = typeof OTHER | typeof WORD | typeof JOINER;

export const JOINERS = "_-./\\:@#+'~\u2019\u2010\u2011";

const UNKNOWN = 255;
/** By code unit: regular expressions for each would take most of the time. Halves of pairs count as words. */
const classes = new Uint8Array(0x10000).fill(UNKNOWN);

function classOf(unit: number): CharClass {
  const known = classes[unit] as CharClass | typeof UNKNOWN;
  return known === UNKNOWN ? learnt(unit) : known;
}

function learnt(unit: number): CharClass {
  const made = newClassOf(unit);
  classes[unit] = made;
  return made;
}

function newClassOf(unit: number): CharClass {
  if (unit >= 0xd800 && unit < 0xe000) return WORD;
  const char = String.fromCharCode(unit);
  if (JOINERS.includes(char)) return JOINER;
  return /[\u200d\u200c\u00ad\p{L}\p{N}\p{M}]/u.test(char) ? WORD : OTHER;
}
