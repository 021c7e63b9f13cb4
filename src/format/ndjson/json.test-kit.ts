import * as fc from "fast-check";

/** JSON as people and programs really write it, for tests: source text, and what it is in compact form. */
export type JsonSource = { source: string; compact: string };

const space = fc.constantFrom("", "", "", " ", "\t", "  ", " \r ");

const number = fc
  .tuple(
    fc.constantFrom("", "-"),
    fc.oneof(fc.constant("0"), fc.bigInt({ min: 1n, max: 10n ** 25n }).map(String)),
    fc.constantFrom("", "", ".0", ".50", ".123456789012345678901"),
    fc.constantFrom("", "", "e3", "E+05", "e-400", "e999"),
  )
  .map((parts) => parts.join(""));

/** One UTF-16 unit or surrogate pair, with one of its spellings. */
const character = fc.oneof(
  fc.constantFrom(["a", "a"], ["é", "é"], ["😀", "😀"], ["\u2028", "\u2028"], ["\u007f", "\u007f"], [" ", " "]),
  fc.constantFrom(
    ['"', '\\"'],
    ["\\", "\\\\"],
    ["/", "\\/"],
    ["/", "/"],
    ["\n", "\\n"],
    ["\b", "\\b"],
    ["\u0000", "\\u0000"],
  ),
  fc.constantFrom(
    ["A", "\\u0041"],
    ["\u001f", "\\u001F"],
    ["\n", "\\u000a"],
    ["😀", "\\ud83d\\uDE00"],
    ["é", "\\u00E9"],
  ),
);

const string = fc.array(character, { maxLength: 6 }).map((characters) => ({
  source: `"${characters.map(([, spelled]) => spelled).join("")}"`,
  compact: JSON.stringify(characters.map(([plain]) => plain).join("")),
}));

/** Keys that collide often, and those that JavaScript objects treat specially. */
const key = fc.oneof(
  fc
    .constantFrom("a", "b", "2", "10", "1", "__proto__", "constructor", "", "toString")
    .map((text) => ({ source: JSON.stringify(text), compact: JSON.stringify(text) })),
  fc.constant({ source: '"\\u0061"', compact: '"a"' }),
  string,
);

export const { value: jsonValue, object: jsonObject } = fc.letrec<{
  value: JsonSource;
  object: JsonSource;
  array: JsonSource;
}>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.oneof(
      fc.constantFrom("null", "true", "false").map((token) => ({ source: token, compact: token })),
      number.map((token) => ({ source: token, compact: token })),
      string,
    ),
    tie("object"),
    tie("array"),
  ),
  object: fc.array(fc.tuple(key, tie("value"), space, space), { maxLength: 6 }).map((members) => {
    // A Map keeps the place of a key's first appearance and the value of its last.
    const kept = new Map(members.map(([name, value]) => [name.compact, value.compact]));
    return {
      source: `{${members.map(([name, value, a, b]) => `${a}${name.source}${b}:${a}${value.source}${b}`).join(",")}}`,
      compact: `{${[...kept].map(([name, value]) => `${name}:${value}`).join(",")}}`,
    };
  }),
  array: fc.array(fc.tuple(tie("value"), space), { maxLength: 5 }).map((items) => ({
    source: `[${items.map(([value, a]) => `${a}${value.source}${a}`).join(",")}]`,
    compact: `[${items.map(([value]) => value.compact).join(",")}]`,
  })),
}));
