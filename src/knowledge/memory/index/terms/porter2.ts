/**
 * The English stemmer of M. F. Porter, second version ("Porter2", https://snowballstem.org/algorithms/english/stemmer.html):
 * `relations`, `related` and `relating` have one stem. A word comes in lower case; one that is not of the letters a–z and
 * the apostrophe, or has fewer than three, is its own stem.
 */
export function stemEnglish(word: string): string {
  if (word.length < 3 || word.length > LONGEST || !/^[a-z']+$/.test(word)) return word;
  const whole = SPECIAL.get(word);
  if (whole !== undefined) return whole;
  return new Stemmer(word).stem();
}

/** No English word is longer, and what is longer costs time. */
const LONGEST = 40;

/** Irregular forms, and words that rules would spoil. */
const SPECIAL: ReadonlyMap<string, string> = new Map([
  ["skis", "ski"],
  ["skies", "sky"],
  ["idly", "idl"],
  ["gently", "gentl"],
  ["ugly", "ugli"],
  ["early", "earli"],
  ["only", "onli"],
  ["singly", "singl"],
  ...["sky", "news", "howe", "atlas", "cosmos", "bias", "andes"].map((word): [string, string] => [word, word]),
]);

/** These are done after the plural is off. */
const DONE_AFTER_1A: ReadonlySet<string> = new Set(
  "inning outing canning herring earring evening proceed exceed succeed".split(" "),
);

const STEP_2: readonly (readonly [suffix: string, by: string])[] = [
  ["ization", "ize"],
  ["ational", "ate"],
  ["fulness", "ful"],
  ["ousness", "ous"],
  ["iveness", "ive"],
  ["tional", "tion"],
  ["biliti", "ble"],
  ["lessli", "less"],
  ["entli", "ent"],
  ["ation", "ate"],
  ["alism", "al"],
  ["aliti", "al"],
  ["ousli", "ous"],
  ["iviti", "ive"],
  ["fulli", "ful"],
  ["enci", "ence"],
  ["anci", "ance"],
  ["abli", "able"],
  ["izer", "ize"],
  ["ator", "ate"],
  ["alli", "al"],
  ["bli", "ble"],
  ["ogist", "og"],
  ["ogi", "og"],
  ["li", ""],
];

const STEP_3: readonly (readonly [suffix: string, by: string])[] = [
  ["ational", "ate"],
  ["tional", "tion"],
  ["alize", "al"],
  ["icate", "ic"],
  ["iciti", "ic"],
  ["ative", ""],
  ["ical", "ic"],
  ["ness", ""],
  ["ful", ""],
];

const STEP_4: readonly string[] = "ement ance ence able ible ment ant ent ism ate iti ous ive ize ion al er ic".split(
  " ",
);

const DOUBLE = /(?:bb|dd|ff|gg|mm|nn|pp|rr|tt)$/;
const SHORT_END = /(?:^[aeiouy][^aeiouy]|[^aeiouy][aeiouy][^aeiouywxY])$/;

class Stemmer {
  #word: string;
  #r1: number;
  #r2: number;

  constructor(word: string) {
    let text = word.startsWith("'") ? word.slice(1) : word;
    // A `y` that is a consonant is written `Y` meanwhile.
    text = text.replace(/^y/, "Y").replace(/([aeiouy])y/g, "$1Y");
    this.#word = text;
    this.#r1 = /^(?:gener|commun|arsen|past|univers|later|emerg|organ|inter)/.exec(text)?.[0].length ?? after(text, 0);
    this.#r2 = after(text, this.#r1);
  }

  stem(): string {
    this.#step0();
    this.#step1a();
    if (!DONE_AFTER_1A.has(this.#word)) {
      this.#step1b();
      this.#step1c();
      this.#replaceLongest(STEP_2, (suffix, stem) => this.#mayReplace2(suffix, stem));
      this.#replaceLongest(STEP_3, (suffix) => suffix !== "ative" || this.#inR2(suffix));
      this.#step4();
      this.#step5();
    }
    return this.#word.toLowerCase();
  }

  #step0(): void {
    this.#word = this.#word.replace(/(?:'s'|'s|')$/, "");
  }

  #step1a(): void {
    const word = this.#word;
    if (word.endsWith("sses")) this.#cut(2);
    else if (/ie[ds]$/.test(word)) this.#cut(word.length > 4 ? 2 : 1);
    else if (/[^us]s$/.test(word) && /[aeiouy].+s$/.test(word)) this.#cut(1);
  }

  #step1b(): void {
    const word = this.#word;
    const eed = /eed(?:ly)?$/.exec(word)?.[0];
    if (eed !== undefined) {
      if (this.#inR1(eed)) this.#word = `${word.slice(0, -eed.length)}ee`;
      return;
    }
    const suffix = /(?:ingly|edly|ing|ed)$/.exec(word)?.[0];
    if (suffix === undefined) return;
    const stem = word.slice(0, -suffix.length);
    if (suffix === "ing" && /^[^aeiouy]y$/.test(stem)) {
      this.#word = `${stem.slice(0, -1)}ie`;
      return;
    }
    if (!/[aeiouy]/.test(stem)) return;
    this.#word = stem;
    if (/(?:at|bl|iz)$/.test(stem)) this.#word += "e";
    else if (DOUBLE.test(stem)) {
      if (!/^[aeo](?:bb|dd|ff|gg|mm|nn|pp|rr|tt)$/.test(stem)) this.#cut(1);
    } else if (this.#isShort()) this.#word += "e";
  }

  #step1c(): void {
    if (/.[^aeiouy][yY]$/.test(this.#word)) this.#word = `${this.#word.slice(0, -1)}i`;
  }

  #mayReplace2(suffix: string, stem: string): boolean {
    if (suffix === "ogi") return stem.endsWith("l");
    return suffix !== "li" || /[cdeghkmnrt]$/.test(stem);
  }

  /** The longest suffix that fits decides, whether or not it may be replaced. */
  #replaceLongest(rules: readonly (readonly [string, string])[], may: (suffix: string, stem: string) => boolean): void {
    const rule = rules.find(([suffix]) => this.#word.endsWith(suffix));
    if (rule === undefined) return;
    const [suffix, by] = rule;
    const stem = this.#word.slice(0, -suffix.length);
    if (this.#inR1(suffix) && may(suffix, stem)) this.#word = stem + by;
  }

  #step4(): void {
    const suffix = STEP_4.find((end) => this.#word.endsWith(end));
    if (suffix === undefined || !this.#inR2(suffix)) return;
    const stem = this.#word.slice(0, -suffix.length);
    if (suffix !== "ion" || /[st]$/.test(stem)) this.#word = stem;
  }

  #step5(): void {
    const word = this.#word;
    if (word.endsWith("e")) {
      if (this.#inR2("e") || (this.#inR1("e") && !endsShort(word.slice(0, -1)))) this.#cut(1);
    } else if (word.endsWith("ll") && this.#inR2("l")) this.#cut(1);
  }

  #isShort(): boolean {
    return this.#r1 >= this.#word.length && endsShort(this.#word);
  }

  #inR1(suffix: string): boolean {
    return this.#word.length - suffix.length >= this.#r1;
  }

  #inR2(suffix: string): boolean {
    return this.#word.length - suffix.length >= this.#r2;
  }

  #cut(chars: number): void {
    this.#word = this.#word.slice(0, -chars);
  }
}

/** Where the region after the first consonant that follows a vowel begins, from `start` on. */
function after(text: string, start: number): number {
  const found = /[aeiouy][^aeiouy]/.exec(text.slice(start));
  return found === null ? text.length : start + found.index + 2;
}

function endsShort(text: string): boolean {
  return SHORT_END.test(text) || text === "past";
}
