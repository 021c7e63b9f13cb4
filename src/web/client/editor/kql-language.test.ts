import { StringStream } from "@codemirror/language";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { kqlParser } from "./kql-language.ts";

/** The pieces of a text with what each is taken for. */
function tokens(text: string): string[] {
  const state = kqlParser.startState?.(2);
  if (state === undefined) throw new Error("the parser has no state");
  const found: string[] = [];
  for (const line of text.split("\n")) {
    const stream = new StringStream(line, 2, 2);
    while (!stream.eol()) {
      stream.start = stream.pos;
      const kind = kqlParser.token(stream, state);
      if (stream.pos === stream.start) throw new Error(`no progress at ${stream.pos} of ${line}`);
      if (kind !== null) found.push(`${stream.current()} ${kind}`);
    }
  }
  return found;
}

test.each([
  ["where project-away x", ["where keyword", "project-away keyword", "x variableName"]],
  ["count (x)", ["count variableName.function", "x variableName"]],
  ["| count", ["| operator", "count keyword"]],
  ["a-b", ["a variableName", "- operator", "b variableName"]],
  ["1h 2.5e-3 0xFF 10ms", ["1h number", "2.5e-3 number", "0xFF number", "10ms number"]],
  ["'it\\'s' @\"c:\\\" h'x'", ["'it\\'s' string", '@"c:\\" string', "h'x' string"]],
  ["// a 'b\ntrue", ["// a 'b comment", "true atom"]],
  ["```a\n'b``` größe", ["```a string", "'b``` string", "größe variableName"]],
  ["x !has 'y'", ["x variableName", "!has operator", "'y' string"]],
  [
    "tolong(x) x:long",
    ["tolong variableName.function", "x variableName", "x variableName", ": operator", "long typeName"],
  ],
])("%j", (text, expected) => {
  expect(tokens(text)).toEqual(expected);
});

test("takes any text to its end, and leaves no letter out", () => {
  const text = fc.string({
    unit: fc.constantFrom("a", "h", "'", '"', "@", "-", "/", "`", "~", "\n", " ", "1", ".", "é", "\\", "!", "$"),
  });
  fc.assert(
    fc.property(text, (given) => {
      expect(tokens(given).length).toBeLessThanOrEqual(given.length);
    }),
  );
});
