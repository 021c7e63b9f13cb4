import { StringStream } from "@codemirror/language";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { sqlParser } from "./sql-language.ts";

/** The pieces of a text with what each is taken for. */
function tokens(text: string): [string, string][] {
  const state = sqlParser.startState?.(2);
  if (state === undefined) throw new Error("the parser has no state");
  const found: [string, string][] = [];
  for (const line of text.split("\n")) {
    const stream = new StringStream(line, 2, 2);
    while (!stream.eol()) {
      stream.start = stream.pos;
      const kind = sqlParser.token(stream, state);
      if (stream.pos === stream.start) throw new Error(`no progress at ${stream.pos} of ${line}`);
      if (kind !== null) found.push([stream.current(), kind]);
    }
  }
  return found;
}

test.each([
  ["SELECT", [["SELECT", "keyword"]]],
  [
    "select 1_000.5e-3",
    [
      ["select", "keyword"],
      ["1_000.5e-3", "number"],
    ],
  ],
  [
    "'it''s' x",
    [
      ["'it''s'", "string"],
      ["x", "variableName"],
    ],
  ],
  ['"a ""b"""', [['"a ""b"""', "variableName"]]],
  [
    "count (*)",
    [
      ["count", "variableName.function"],
      ["*", "operator"],
    ],
  ],
  [
    "x::bigint",
    [
      ["x", "variableName"],
      ["::", "operator"],
      ["bigint", "typeName"],
    ],
  ],
  [
    "-- a 'b\nFROM",
    [
      ["-- a 'b", "comment"],
      ["FROM", "keyword"],
    ],
  ],
  [
    "/* a /* b */ c\n*/ NULL",
    [
      ["/* a /* b */ c", "comment"],
      ["*/", "comment"],
      ["NULL", "atom"],
    ],
  ],
  [
    "'a\nb' 2",
    [
      ["'a", "string"],
      ["b'", "string"],
      ["2", "number"],
    ],
  ],
  [
    "$$a\n'b$$ größe",
    [
      ["$$a", "string"],
      ["'b$$", "string"],
      ["größe", "variableName"],
    ],
  ],
  [
    "$name ? 1",
    [
      ["$name", "atom"],
      ["1", "number"],
    ],
  ],
] as [string, [string, string][]][])("%j", (text, expected) => {
  expect(tokens(text)).toEqual(expected);
});

test("takes any text to its end, and leaves no letter out", () => {
  const text = fc.string({
    unit: fc.constantFrom("a", "S", "'", '"', "$", "-", "/", "*", "\n", " ", "1", ".", "é", "(", ":"),
  });
  fc.assert(
    fc.property(text, (given) => {
      expect(tokens(given).length).toBeLessThanOrEqual(given.length);
    }),
  );
});
