import { Chunks, JOINERS } from "./chunks.ts";
import { foldText } from "./fold.ts";
import { stemEnglish } from "./porter2.ts";

/**
 * The terms of a text, by which it is found. The same text always has the same terms, in documents and in questions:
 *
 * - words folded (`fold.ts`), English ones by their stems;
 * - scripts that write without blanks (Han, kana, Thai, …), and Hangul, whose words carry their endings, by pairs of
 *   letters;
 * - identifiers whole and in parts: `src/fooBar-9.ts` is that, `foobar-9.ts`, `foobar`, `foo`, `bar`, `9` and `ts`.
 *
 * `each` is called once for each occurrence.
 */
export function termsOf(text: string, each: (term: string) => void): void {
  const chunks = new Chunks();
  chunks.read(text);
  while (chunks.next()) for (const term of chunkTerms(text.slice(chunks.from, chunks.to))) each(term);
}

/** What a text may cost, whatever it holds. */
export const TERM_LIMITS = {
  /** Of a longer chunk (an encoded file, a line without blanks) the beginning is looked at. */
  chunkChars: 2_048,
  /** A longer identifier is found by its parts alone, and a longer part by its beginning. */
  wholeChars: 128,
  partChars: 64,
  termsPerChunk: 512,
} as const;

/** The terms of one chunk, each once. */
export function chunkTerms(whole: string): string[] {
  const chunk = whole.length > TERM_LIMITS.chunkChars ? whole.slice(0, TERM_LIMITS.chunkChars) : whole;
  if (/^[a-z]+$/.test(chunk)) return [stemEnglish(chunk.slice(0, TERM_LIMITS.partChars))];
  const terms = new Set<string>();
  const text = chunk.replace(CURLY, "'");
  if (SIGNED.test(text)) terms.add(foldText(text));
  for (const segment of withWhole(text, SEGMENTS, terms)) {
    for (const part of withWhole(segment, PARTS, terms)) addPart(part, terms);
  }
  terms.delete("");
  return [...terms].slice(0, TERM_LIMITS.termsPerChunk);
}

const CURLY = /[\u2018\u2019]/g;
const SIGNED = /^\p{L}{1,2}(?:#|\+\+)$/u;
const SEGMENTS = /[/\\:@#]+/u;
/** An apostrophe stays in its word: it is the stem's business. */
const PARTS = new RegExp(`[${JOINERS.replace(/['\u2019/\\:@#]/g, "").replace("-", "\\-")}]+`, "u");

/** The pieces of an identifier. It is a term itself if it has more than one. */
function withWhole(text: string, separator: RegExp, terms: Set<string>): string[] {
  const pieces = text.split(separator).filter((piece) => piece !== "");
  if (pieces.length > 1 && text.length <= TERM_LIMITS.wholeChars) terms.add(foldText(trimmed(text)));
  return pieces;
}

function trimmed(text: string): string {
  return text.replace(EDGES, "");
}

const EDGES = /^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu;

/** Where camel case and digits divide: `fooBar`, `HTTPServer`, `sha256`. */
const HUMPS = /(?<=\p{Ll})(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})|(?<=\p{L})(?=\p{Nd})|(?<=\p{Nd})(?=\p{L})/u;

function addPart(part: string, terms: Set<string>): void {
  const cut = part.slice(0, PAIRED.test(part) ? part.length : TERM_LIMITS.partChars);
  const humps = cut.split(HUMPS);
  if (humps.length > 1) terms.add(foldText(cut));
  for (const hump of humps) addWord(foldText(hump), terms);
}

const PAIRED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\u30fc]+/u;
const PAIRED_RUNS = new RegExp(`(${PAIRED.source})`, "u");

function addWord(word: string, terms: Set<string>): void {
  if (!PAIRED.test(word)) {
    terms.add(stemEnglish(word.replace(/^'+|'+$/g, "")));
    return;
  }
  for (const run of word.split(PAIRED_RUNS)) {
    if (PAIRED.test(run)) addPairs(run, terms);
    else if (run !== "") terms.add(stemEnglish(run));
  }
}

/** A letter alone is a term where nothing stands beside it. */
function addPairs(run: string, terms: Set<string>): void {
  const letters = Array.from(run);
  if (letters.length === 1) terms.add(run);
  for (let i = 1; i < letters.length && terms.size < TERM_LIMITS.termsPerChunk; i++) {
    terms.add(`${letters[i - 1]}${letters[i]}`);
  }
}
