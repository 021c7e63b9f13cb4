import { assert, property, string } from "fast-check";
import { expect, test } from "vitest";
import { foldText } from "./fold.ts";
import { stemEnglish } from "./porter2.ts";
import { TERM_LIMITS, termsOf } from "./terms.ts";

const terms = (text: string) => {
  const found: string[] = [];
  termsOf(text, (term) => found.push(term));
  return found;
};

test("words have the stems of Porter2", () => {
  // From the reference implementation (snowballstemmer 3.1.1), with which all of 10,560 words of documents agreed.
  const stems = {
    relational: "relat",
    relations: "relat",
    generously: "generous",
    communities: "communiti",
    ponies: "poni",
    ties: "tie",
    caresses: "caress",
    agreed: "agre",
    hopping: "hop",
    hoping: "hope",
    happily: "happili",
    sensibility: "sensibl",
    national: "nation",
    dying: "die",
    early: "earli",
    skies: "sky",
    succeeded: "succeed",
    controlling: "control",
    "user's": "user",
    youth: "youth",
    employed: "employ",
  };
  for (const [word, stem] of Object.entries(stems)) expect([word, stemEnglish(word)]).toEqual([word, stem]);
});

test("text is found in every script, with and without accents, whole and in parts", () => {
  expect(terms("Crème brûlée, Ångström; straße")).toEqual(["creme", "brule", "angstrom", "strass"]);
  expect(terms("東京都に")).toEqual(["東京", "京都", "都に"]);
  expect(terms("हिन्दी में")).toEqual(["हिन्दी", "में"]);
  expect(terms("مُحَمَّد")).toEqual(["محمد"]);
  expect(terms("fooBar_baz-9")).toEqual(["foobar_baz-9", "foobar", "foo", "bar", "baz", "9"]);
  expect(terms("src/ingest/sealThread.ts:12")).toEqual(expect.arrayContaining(["sealthread.ts", "seal", "12"]));
  expect(terms("v1.2.3")).toEqual(["v1.2.3", "v1", "v", "1", "2", "3"]);
  expect(terms("C++ and F#, not C")).toEqual(["c++", "c", "and", "f#", "f", "not", "c"]);
  expect(terms("-- __ '' 。")).toEqual([]);
});

test("a text has the terms of the same text written otherwise, and any text has bounded ones", () => {
  assert(
    property(string({ unit: "binary", maxLength: 300 }), (text) => {
      const found = terms(text);
      expect(terms(text)).toEqual(found);
      expect(terms(text.normalize("NFD"))).toEqual(terms(text.normalize("NFC")));
      for (const term of found) {
        expect(term).not.toBe("");
        expect(foldText(term)).toBe(term);
      }
    }),
    { numRuns: 60 },
  );
});

test("hostile text costs little: one endless word, one identifier of parts, marks upon marks", () => {
  const size = 16_384;
  const texts = [
    "a".repeat(size),
    "aB".repeat(size / 2),
    "a-".repeat(size / 2),
    "\u0300".repeat(size),
    "東".repeat(size / 3),
    "'s".repeat(size / 2),
    "ﷺ".repeat(size / 3),
  ];
  for (const text of texts) {
    const found = terms(text);
    expect(found.length).toBeLessThanOrEqual(TERM_LIMITS.termsPerChunk);
    // A whole identifier of compatible forms may grow when it is folded.
    for (const term of found) expect(term.length).toBeLessThanOrEqual(TERM_LIMITS.wholeChars * 18);
  }
});
