import { array, assert, asyncProperty, constantFrom, integer, string, tuple } from "fast-check";
import { describe, expect, test } from "vitest";
import { parseColumnType, type ColumnSpec } from "../../format/types.ts";
import { csvRows } from "./csv-rows.ts";
import type { InputRow } from "./row-cutter.ts";

const ORIGIN = { shown: "x.csv", unit: "line" } as const;

async function* chunksOf(data: Buffer, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < data.length; at += size) yield await Promise.resolve(data.subarray(at, at + size));
}

async function rowsOf(
  input: string | Buffer,
  {
    delimiter = ",",
    columns = {},
    size = 5,
  }: { delimiter?: string; columns?: Record<string, string>; size?: number } = {},
): Promise<InputRow[]> {
  const specs = Object.entries(columns).map(([name, text]): ColumnSpec => {
    const type = parseColumnType(text);
    if (type === undefined) throw new Error(text);
    return { name, type };
  });
  const rows: InputRow[] = [];
  for await (const piece of csvRows(chunksOf(Buffer.from(input), size), {
    origin: ORIGIN,
    delimiter,
    columns: specs,
  })) {
    rows.push(...piece);
  }
  return rows;
}

const jsonOf = async (...args: Parameters<typeof rowsOf>) => (await rowsOf(...args)).map(({ json }) => json);
const linesOf = async (...args: Parameters<typeof rowsOf>) => (await rowsOf(...args)).map(({ line }) => line);

describe("fields", () => {
  test("are texts, whatever they look like, to columns that are not there", async () => {
    expect(await jsonOf("a,b,c\n007,1.50,true\n+1,1e400,NaN\n")).toEqual([
      '{"a":"007","b":"1.50","c":"true"}',
      '{"a":"+1","b":"1e400","c":"NaN"}',
    ]);
  });

  test("without a value are left out, and the empty text is not one of them", async () => {
    expect(await jsonOf('a,b\n,""\n"",\n,\n')).toEqual(['{"b":""}', '{"a":""}', "{}"]);
  });

  test("in quotes hold delimiters, quotes and line breaks", async () => {
    expect(await jsonOf('a,b\r\n"x, y","say ""hi"""\r\n"two\r\nlines","\u{1f600}"\r\n')).toEqual([
      '{"a":"x, y","b":"say \\"hi\\""}',
      '{"a":"two\\r\\nlines","b":"\u{1f600}"}',
    ]);
  });

  test("keep control characters, and names that would be members of any object", async () => {
    expect(await jsonOf("__proto__,constructor\n\u001b[2J,\u0000\n")).toEqual([
      '{"__proto__":"\\u001b[2J","constructor":"\\u0000"}',
    ]);
  });

  test("another delimiter", async () => {
    expect(await jsonOf("a;b\n1,5;2\n", { delimiter: ";" })).toEqual(['{"a":"1,5","b":"2"}']);
    expect(await jsonOf("a\tb\n1\t2\n", { delimiter: "\t" })).toEqual(['{"a":"1","b":"2"}']);
  });
});

describe("columns that are there say how a field is written", () => {
  test.for([
    ["long", "9223372036854775807", "9223372036854775807"],
    ["long", "-0", "-0"],
    ["real", "1.50E+3", "1.50E+3"],
    ["int", "007", '"007"'],
    ["int", "1,000", '"1,000"'],
    ["int", "0x10", '"0x10"'],
    ["int", " 1", '" 1"'],
    ["real", "Infinity", '"Infinity"'],
    ["real", ".5", '".5"'],
    ["bool", "TRUE", "true"],
    ["bool", "false", "false"],
    ["bool", "1", '"1"'],
    ["string", "1", '"1"'],
    ["timestamp", "1767225600", "1767225600"],
    ["timestamp", "2026-01-02", '"2026-01-02"'],
    ["dynamic", '{"a": [1, 2]}', '{"a": [1, 2]}'],
    ["dynamic", "{broken", '"{broken"'],
    ["dynamic", "text", '"text"'],
    ["dynamic", '{"a":\n1}', '"{\\"a\\":\\n1}"'],
    ["vector(2)", "[1,2.5]", "[1,2.5]"],
  ] as const)("%s: %s", async ([type, field, json]) => {
    const text = `V,w\n"${field.replaceAll('"', '""')}",x\n`;
    expect(await jsonOf(text, { columns: { v: type } })).toEqual([`{"V":${json},"w":"x"}`]);
  });

  test("times by their names are written as numbers where they are numbers", async () => {
    expect(await jsonOf("at,Timestamp,when\n1767225600,2,3\n")).toEqual(['{"at":1767225600,"Timestamp":2,"when":"3"}']);
  });

  test("what a row weighs does not depend on them", async () => {
    const text = 'v,w\n1,"{""a"":1}"\ntrue,[1]\n';
    const weights = async (columns: Record<string, string>) =>
      (await rowsOf(text, { columns })).map(({ weightBytes }) => weightBytes);
    expect(await weights({ v: "long", w: "dynamic" })).toEqual(await weights({}));
    expect(await weights({ v: "bool", w: "string" })).toEqual(await weights({}));
  });
});

test("each row knows the line with which it begins", async () => {
  const text = 'a,b\r\n1,2\r\n\r\n"x\r\ny\n\nz",2\r\n\n3,"\n"\n4,4';
  for (const size of [1, 2, 3, 1_000]) expect(await linesOf(text, { size })).toEqual([2, 4, 9, 11]);
});

test("whatever is written comes back, in whatever pieces it is read", async () => {
  const field = string({
    unit: constantFrom('"', ",", "\n", "\r\n", "a", "é", " ", "\u0000", "\\", "'"),
    maxLength: 6,
  });
  const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`;
  await assert(
    asyncProperty(array(tuple(field, field), { maxLength: 8 }), integer({ min: 1, max: 20 }), async (rows, size) => {
      const text = `a,b\n${rows.map((row) => `${row.map(quoted).join(",")}\n`).join("")}`;
      const found = await rowsOf(text, { size });
      expect(found.map(({ json }) => JSON.parse(json) as unknown)).toEqual(rows.map(([a, b]) => ({ a, b })));
      const starts = rows.map((_, i) => 2 + rows.slice(0, i).flat().join("").split("\n").length - 1 + i);
      expect(found.map(({ line }) => line)).toEqual(starts);
    }),
    { numRuns: 60 },
  );
});

describe("what is not CSV is refused by its line", () => {
  test.for([
    ["a,b\n1,2\n1,2,3\n", "line 3 of x.csv has 3 fields, the header 2"],
    ["a,b\n1\n", "line 2 of x.csv has 1 field, the header 2"],
    ['a,b\n1,2\n3,x"y\n', "line 3 of x.csv: a quote stands within a field"],
    ['a,b\n"x"y,2\n', "line 2 of x.csv: something follows the closing quote"],
    ['a,b\n1,2\n"never\nclosed,2\n', "line 3 of x.csv: a quote is opened and never closed"],
    ["a,A\n1,2\n", 'line 1 of x.csv: the header has "A" twice'],
    ["a,,c\n1,2,3\n", "line 1 of x.csv: column 2 of the header has no name"],
    ["1,2,3\n4,5,6\n", "line 1 of x.csv: this is no header but a row of numbers"],
    ["a;b\n1;2\n", "the header has one column, \"a;b\"; is the --delimiter ';'?"],
    ["a,b\r1,2\r", "line 1 of x.csv"],
  ] as const)("%j", async ([text, message]) => {
    await expect(rowsOf(text)).rejects.toThrow(message);
    await expect(rowsOf(text, { size: 1_000 })).rejects.toThrow(message);
  });

  test("bytes that are no UTF-8", async () => {
    const latin1 = Buffer.from("a,b\n1,2\ncaf\u00e9,2\n", "latin1");
    await expect(rowsOf(latin1)).rejects.toThrow("x.csv is not UTF-8");
    await expect(rowsOf(Buffer.from([0x61, 0x0a, 0xc3]))).rejects.toThrow("x.csv is not UTF-8");
  });
});

test("a header alone has no rows", async () => {
  expect(await rowsOf("a,b\n")).toEqual([]);
  expect(await rowsOf("")).toEqual([]);
});
