import { expect, test } from "vitest";
import { beginningOf, cutAfter, cutWithin } from "./cut-text.ts";

test("a text that has room stays as it is", () => {
  for (const cut of [beginningOf, cutAfter, cutWithin]) {
    expect(["", "abc", "a😀"].map((text) => cut(text, 3))).toEqual(["", "abc", "a😀"]);
  }
});

test("what is cut off is marked, after the characters that stay or within them", () => {
  expect([beginningOf("abcd", 3), cutAfter("abcd", 3), cutWithin("abcd", 3)]).toEqual(["abc", "abc…", "ab…"]);
});

test("a surrogate pair is never cut in half, and half of one that was there is replaced", () => {
  expect([beginningOf("a😀b", 2), cutAfter("a😀b", 2), cutWithin("ab😀b", 4)]).toEqual(["a", "a…", "ab…"]);
  expect([cutAfter("😀😀", 2), cutAfter("\ude00abc", 2)]).toEqual(["😀…", "\ufffda…"]);
});
