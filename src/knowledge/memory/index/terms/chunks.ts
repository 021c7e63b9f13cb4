/**
 * Where the words of a text are. A chunk is what stands between blanks and punctuation: a word, or an identifier with
 * what joins its parts (`fooBar_baz-9`, `src/a/b.ts`, `1.2.3`, `ann@example.com`). Joiners at its ends are punctuation.
 * Calls `each` with where a chunk begins and ends.
 */
export function chunksOf(text: string, each: (from: number, to: number) => void): void {
  const { length } = text;
  let at = 0;
  while (at < length) {
    while (at < length && classAt(text, at) === OTHER) at++;
    const start = at;
    let lastWord = -1;
    for (; at < length; at++) {
      const kind = classAt(text, at);
      if (kind === OTHER) break;
      if (kind === WORD) lastWord = at;
    }
    if (lastWord === -1) continue;
    let first = start;
    while (classAt(text, first) === JOINER) first++;
    each(first, endOf(text, first, lastWord + 1));
  }
}

/** `C++` and `F#` are words with their signs. */
function endOf(text: string, first: number, end: number): number {
  if (end - first > 2) return end;
  const sign = text.charCodeAt(end);
  if (sign === SHARP) return end + 1;
  return sign === PLUS && text.charCodeAt(end + 1) === PLUS ? end + 2 : end;
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

function classAt(text: string, at: number): CharClass {
  const unit = text.charCodeAt(at);
  const known = classes[unit] as CharClass | typeof UNKNOWN;
  if (known !== UNKNOWN) return known;
  const made = classOf(unit);
  classes[unit] = made;
  return made;
}

function classOf(unit: number): CharClass {
  if (unit >= 0xd800 && unit < 0xe000) return WORD;
  const char = String.fromCharCode(unit);
  if (JOINERS.includes(char)) return JOINER;
  return /[\u200d\u200c\u00ad\p{L}\p{N}\p{M}]/u.test(char) ? WORD : OTHER;
}
