import { expect, test } from "vitest";
import { EXIT, exitCodeOf } from "../client/failure.ts";
import { parseColumns, withTimeColumn } from "./schema.ts";
import { formatColumnType } from "../format/types.ts";

const parsed = (text: string) =>
  parseColumns("--schema", text).map(({ name, type }) => `${name}|${formatColumnType(type)}`);

const manyColumns = (count: number) => Array.from({ length: count }, (_, i) => `c${i}:int`).join(",");
const namesWithTime = (text: string) => withTimeColumn(parseColumns("--schema", text)).map(({ name }) => name);

function thrownBy(run: () => unknown): unknown {
  try {
    return run();
  } catch (error) {
    return error;
  }
}

test.for([
  ["a:string", ["a|string"]],
  [" a : INT ,b:vector( 3 ) , c:bool", ["a|int", "b|vector(3)", "c|bool"]],
  ['"my col":string,"a,b:c":long', ["my col|string", "a,b:c|long"]],
  ['"say ""hi""":real', ['say "hi"|real']],
  ["größe:real, my col:timestamp", ["größe|real", "my col|timestamp"]],
  ["at:timestamp,props:dynamic", ["at|timestamp", "props|dynamic"]],
  ["__proto__:string, constructor:int", ["__proto__|string", "constructor|int"]],
] as const)("%s", ([text, columns]) => {
  expect(parsed(text)).toEqual(columns);
});

test.for([
  ["", 'expected name:type at ""'],
  ["a", 'expected name:type at "a"'],
  ["a:int,", 'expected name:type at ""'],
  [":int", 'expected name:type at ":int"'],
  ['"a:int', "expected name:type at "],
  ["a:vector(3", "expected name:type at "],
  ["a:text", 'column "a" has type "text"'],
  ["a:", 'column "a" has type ""; expected one of bool, int, long'],
  ["a:strng", 'column "a" has type "strng"; did you mean string?'],
  ["a:vector(0)", 'column "a" has type "vector(0)"'],
  ["a:vector(99999)", 'column "a" has type "vector(99999)"'],
  ["a:int(3)", 'column "a" has type "int(3)"'],
  ["a:int, A:long", 'column "A" is there twice'],
  ['"":int', '"" is no column name'],
  ['"a\u0001":int', "is no column name"],
  [`${"x".repeat(256)}:int`, "is no column name"],
  ["at:string", 'column "at" holds the time of a row and must be of type timestamp'],
  ["AT:long", "must be of type timestamp"],
  ["props:string", 'column "props" holds what fits no other column and must be of type dynamic'],
] as const)("%j is refused", ([text, reason]) => {
  expect(() => parsed(text)).toThrow(`--schema: `);
  expect(() => parsed(text)).toThrow(reason);
  expect(exitCodeOf(thrownBy(() => parsed(text)))).toBe(EXIT.usage);
});

test("a table has at most 2,000 columns", () => {
  expect(parsed(manyColumns(2_000))).toHaveLength(2_000);
  expect(() => parsed(manyColumns(2_001))).toThrow("a table has at most 2000 columns, here are 2001");
});

test("the time column comes first unless the schema names it", () => {
  expect(namesWithTime("a:int")).toEqual(["at", "a"]);
  expect(namesWithTime("a:int,At:timestamp")).toEqual(["a", "At"]);
});
