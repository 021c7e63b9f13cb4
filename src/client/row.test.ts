import { assert, dictionary, jsonValue, property, string } from "fast-check";
import { expect, test } from "vitest";
import { linesOf } from "./lines.ts";
import { fieldText, splitRow } from "./row.ts";

test("a row is cut into its fields, in order and as written", () => {
  const line = ' {"b" : 12345678901234567890 ,"1":"x,}\\"","0":{"a":[{"}":"]"}]}, "":null,"n":-1.50e3} ';
  expect(splitRow(line.trim())).toEqual([
    { name: "b", raw: "12345678901234567890" },
    { name: "1", raw: '"x,}\\""' },
    { name: "0", raw: '{"a":[{"}":"]"}]}' },
    { name: "", raw: "null" },
    { name: "n", raw: "-1.50e3" },
  ]);
  expect(splitRow("{}")).toEqual([]);
});

test("cutting and parsing agree with JSON.parse", () => {
  assert(
    property(dictionary(string(), jsonValue()), (row) => {
      const text = JSON.stringify(row);
      const rebuilt = new Map(splitRow(text).map(({ name, raw }) => [name, JSON.parse(raw) as unknown]));
      expect(rebuilt).toEqual(new Map(Object.entries(JSON.parse(text) as object)));
    }),
  );
});

test("text of a field", () => {
  expect([fieldText("null"), fieldText('"null"'), fieldText('"a\\u0000"'), fieldText("[1, 2]")]).toEqual([
    null,
    "null",
    "a\0",
    "[1, 2]",
  ]);
});

async function* inBytes(text: string) {
  for (const byte of Buffer.from(text)) yield Uint8Array.of(byte);
}

test("lines come whole however they arrive", async () => {
  expect(await Array.fromAsync(linesOf(inBytes("a\n\n日本\nlast")))).toEqual(["a", "日本", "last"]);
});
