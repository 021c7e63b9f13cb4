import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { drawnRandom } from "../../src/core/drawn-seed.test-kit.ts";
import type { Random } from "../../src/core/random.ts";
import { Translated } from "./translated.test-kit.ts";

function letters(text: string): string[] {
  return Array.from(text);
}

/** Functions over two strings and a number, and what they are by the reference, in JavaScript over code points. */
const FUNCTIONS: Readonly<Record<string, (s: string, t: string, n: number) => unknown>> = {
  "strlen(s)": (s) => letters(s).length,
  "string_size(s)": (s) => Buffer.byteLength(s),
  "substring(s, n)": (s, _, n) => letters(s).slice(from(s, n)).join(""),
  "substring(s, n, 2)": (s, _, n) =>
    letters(s)
      .slice(from(s, n), from(s, n) + 2)
      .join(""),
  "split(s, '-')": (s) => s.split("-"),
  "indexof(s, t)": (s, t) => (s.includes(t) ? letters(s.slice(0, s.indexOf(t))).length : -1),
  "countof(s, t)": (s, t) =>
    t === "" ? 0 : letters(s).filter((_, i) => letters(s).slice(i).join("").startsWith(t)).length,
  "translate(t, 'xy', s)": (s, t) =>
    letters(s)
      .map((c) => (t.includes(c) ? "xy"[letters(t).indexOf(c)] : c))
      .join(""),
  "replace_string(s, t, '.')": (s, t) => (t === "" ? s : s.replaceAll(t, ".")),
  "strcat_delim(t, s, n, s)": (s, t, n) => [s, n, s].join(t),
  "strrep(s, 2, t)": (s, t) => s + t + s,
  "unicode_codepoints_from_string(s)": (s) => letters(s).map((c) => c.codePointAt(0)),
  "hash_md5(s)": (s) => createHash("md5").update(s).digest("hex"),
  "hash_sha1(s)": (s) => createHash("sha1").update(s).digest("hex"),
  "hash_sha256(s)": (s) => createHash("sha256").update(s).digest("hex"),
  "base64_encode_tostring(s)": (s) => Buffer.from(s).toString("base64"),
  "base64_decode_tostring(base64_encode_tostring(s))": (s) => s,
  "url_decode(url_encode(s))": (s) => s,
  "url_decode(url_encode_component(s))": (s) => s,
  "punycode_to_string(punycode_from_string(s))": (s) => s,
  "isascii(punycode_from_string(s))": () => true,
  "s has t": (s, t) => hasTerm(s, t, true, true),
  "s hasprefix t": (s, t) => hasTerm(s, t, true, false),
  "s hassuffix t": (s, t) => hasTerm(s, t, false, true),
  "s contains t": (s, t) => s.toLowerCase().includes(t.toLowerCase()),
  "s startswith t": (s, t) => s.toLowerCase().startsWith(t.toLowerCase()),
  "s endswith_cs t": (s, t) => s.endsWith(t),
  "s =~ t": (s, t) => s.toLowerCase() === t.toLowerCase(),
};

/** Where the part begins that a number names; a negative one counts from the end. */
function from(s: string, n: number): number {
  return n < 0 ? Math.max(letters(s).length + n, 0) : n;
}

function hasTerm(s: string, t: string, begins: boolean, ends: boolean): boolean {
  if (t === "") return true;
  const [text, term] = [letters(s.toLowerCase()), letters(t.toLowerCase())];
  const isOf = (c: string | undefined): boolean => c !== undefined && /[\p{L}\p{M}\p{N}]/u.test(c);
  return text.some((_, i) => {
    if (text.slice(i, i + term.length).join("") !== term.join("")) return false;
    const isBegun = !begins || !isOf(term[0]) || !isOf(text[i - 1]);
    return isBegun && (!ends || !isOf(term.at(-1)) || !isOf(text[i + term.length]));
  });
}

const LETTERS = letters("aAb-_. 1%+\u00e9\u03b1\u65e5\u{1f600}");

function text(random: Random, most: number): string {
  const length = Math.floor(random.next() * (most + 1));
  return Array.from({ length }, () => LETTERS[Math.floor(random.next() * LETTERS.length)]).join("");
}

test("functions over strings are what they are by the reference", async () => {
  const random = drawnRandom();
  const rows = Array.from({ length: 150 }, (_, i) => ({
    i,
    s: text(random, 12),
    t: text(random, 2),
    n: Math.floor(random.next() * 10) - 4,
  }));
  const names = Object.keys(FUNCTIONS);
  const outcome = await (
    await Translated.open()
  )
    .run(`datatable(i: long, s: string, t: string, n: long)[${rows.map(({ i, s, t, n }) => `${i}, '${s}', '${t}', ${n < 0 ? `long(${n})` : n}`).join(", ")}]
    | project i, s, t, n, ${names.map((name, i) => `f${i} = ${name}`).join(", ")} | sort by i asc`);
  const want = rows.map((row) => {
    const values = Object.values(FUNCTIONS).map((own, i) => [`f${i}`, own(row.s, row.t, row.n)]);
    return Object.fromEntries([...Object.entries(row), ...values]) as unknown;
  });
  expect("rows" in outcome ? outcome.rows : outcome).toEqual(want);
});
