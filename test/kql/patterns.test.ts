import { expect, test } from "vitest";
import { drawnRandom } from "../../src/core/drawn-seed.test-kit.ts";
import { Translated } from "./translated.test-kit.ts";

/** Pieces of regular expressions: as the language writes them, and as JavaScript does where that is another way. */
const WORD = String.raw`\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d`;
const SPACE = String.raw`\t-\r\x85 \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000`;
const PIECES: readonly (readonly [kql: string, javascript?: string])[] = [
  ...["a", "b", "\u00e9", "^", "$", "|", ")", "*", "+", "?", "{2}", "[ab]", "[^a]", "*?", "+?"].map(
    (one) => [one] as const,
  ),
  ...["x41", "p{Lu}", "P{L}", "."].map((one) => [`\\${one}`] as const),
  [".", String.raw`[^\n]`],
  [String.raw`\d`, String.raw`\p{Nd}`],
  [String.raw`\w`, `[${WORD}]`],
  [String.raw`\W`, `[^${WORD}]`],
  [String.raw`\s`, `[${SPACE}]`],
  [String.raw`\S`, `[^${SPACE}]`],
  [String.raw`[\w-]`, String.raw`[${WORD}\-]`],
  [String.raw`[\S]`, `[^${SPACE}]`],
  [String.raw`[\dx]`, String.raw`[\p{Nd}x]`],
  [String.raw`\A`, "^"],
  [String.raw`\z`, "$"],
  [String.raw`\p{Greek}`, String.raw`\p{Script=Greek}`],
  [String.raw`\PL`, String.raw`\P{L}`],
  ["[[:alpha:]]", "[A-Za-z]"],
  ["(a", "(?:a"],
  ["(?:b"],
];
const TEXTS = [
  "",
  "a",
  "ab 1\u00e9",
  "\u0664a\u00a0b",
  "\u03b1\u03b2A.\n_b",
  "\u24d0a-b",
  "\u2028x\u0301",
  "\u65e5\u672c a1",
  "AA.bb",
];
const PATTERNS = 80;

function rowsOf(texts: readonly string[]): string {
  return texts.map((one) => `"${one.replaceAll("\n", String.raw`\n`)}"`).join(", ");
}

test("a regular expression finds what JavaScript's finds, with Unicode's classes", { timeout: 120_000 }, async () => {
  const random = drawnRandom();
  const translated = await Translated.open();
  let compared = 0;
  while (compared < PATTERNS) {
    const pieces = Array.from(
      { length: 1 + Math.floor(random.next() * 5) },
      () => PIECES[Math.floor(random.next() * PIECES.length)] ?? ["a"],
    );
    const pattern = pieces.map(([kql]) => kql).join("");
    const javascript = compiled(pieces.map(([kql, own]) => own ?? kql).join(""));
    if (javascript === undefined) continue;
    const query = `datatable(i: long, t: string)[${TEXTS.map((one, i) => `${i}, ${rowsOf([one])}`).join(", ")}]
      | project i, found = t matches regex @'${pattern}', got = extract(@'${pattern}', 0, t) | sort by i asc`;
    const outcome = await translated.run(query);
    // What one of the two dialects does not have is refused in it.
    if ("refused" in outcome && outcome.refused.code === "invalid_query") continue;
    const want = TEXTS.map((one, i) => {
      const found = javascript.exec(one);
      return { i, found: found !== null, got: found?.[0] ?? "" };
    });
    expect({ pattern, ...outcome }).toMatchObject({ pattern, rows: want });
    compared++;
  }
});

function compiled(pattern: string): RegExp | undefined {
  try {
    return new RegExp(pattern, "u");
  } catch {
    return undefined;
  }
}

test("no regular expression gets through to DuckDB that it does not know", { timeout: 120_000 }, async () => {
  const random = drawnRandom();
  const translated = await Translated.open();
  const tokens = [
    ...PIECES.map(([kql]) => kql),
    "(",
    "[",
    "]",
    "{",
    "}",
    "(?i)",
    "(?x)",
    "(?P<x>",
    "(?<y>",
    "(?s-i:",
    "(?-u:",
    "&&",
    "-",
    "#",
    "{1,3}",
    String.raw`\b`,
    String.raw`\Q`,
    String.raw`\8`,
    String.raw`\12`,
    String.raw`\u0041`,
    "a-z",
    "[^",
  ];
  const leaked: unknown[] = [];
  for (let i = 0; i < 150; i++) {
    const length = 1 + Math.floor(random.next() * 7);
    const pattern = Array.from({ length }, () => tokens[Math.floor(random.next() * tokens.length)]).join("");
    const outcome = await translated.run(
      `print found = 'ab 1' matches regex @'${pattern}', rest = trim(@'${pattern}', 'ab 1')`,
    );
    if ("refused" in outcome && outcome.refused.code !== "invalid_query") leaked.push({ pattern, ...outcome });
  }
  expect(leaked).toEqual([]);
});
