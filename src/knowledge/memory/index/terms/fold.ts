/**
 * Text as it is compared: compatible forms are one (`ﬁ`, `Ａ`, `①`), case and accents are off, and letters that only look
 * accented (`ø`, `ł`, `ß`) are as people write them who lack the key. Vowel signs of Indic scripts and the voice marks
 * of kana are no accents: words would become others without them.
 */
export function foldText(text: string): string {
  if (ASCII.test(text)) return text.toLowerCase();
  return text
    .normalize("NFKD")
    .toLowerCase()
    .normalize("NFKD")
    .replace(ACCENTS, "")
    .replace(ALIKE, (letter) => AS_WRITTEN.get(letter) ?? letter)
    .normalize("NFC");
}

/** The words of a text as it is compared: runs of letters and digits. */
export function foldedWords(text: string): string[] {
  return foldText(text).match(/[\p{L}\p{N}\p{M}]+/gu) ?? [];
}

const ASCII = /^[\0-\x7f]*$/;

/** Of Latin, Greek and Cyrillic letters; the points of Hebrew and Arabic; marks that join or choose a form. */
const ACCENTS =
  /[\ufe00-\ufe0f\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u0640\u200b-\u200d\u00ad]/g;

const AS_WRITTEN: ReadonlyMap<string, string> = new Map([
  ["\u00df", "ss"],
  ["\u00e6", "ae"],
  ["\u0153", "oe"],
  ["\u00f8", "o"],
  ["\u0142", "l"],
  ["\u0111", "d"],
  ["\u00f0", "d"],
  ["\u00fe", "th"],
  ["\u0131", "i"],
  ["\u03c2", "\u03c3"],
]);

const ALIKE = new RegExp(`[${[...AS_WRITTEN.keys()].join("")}]`, "g");
