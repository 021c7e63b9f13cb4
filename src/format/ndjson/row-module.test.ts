import { afterEach, describe, expect, test, vi } from "vitest";
import { ColumnSet } from "../columns/column-set.ts";
import { seededRandom } from "../../core/random.ts";
import { encodeTlm } from "../tlm.ts";
import { newByteScanner } from "./byte-scanner.ts";
import { bodyOf, specs } from "./generate-cases.test-kit.ts";
import { jsonScanner } from "./json-scanner.ts";
import { remakeModule, RowModule, rowModule } from "./row-module.ts";
import type { BodyScanner } from "./scanner.ts";
import { ROWS_MODULE } from "./wasm/module.ts";

const TABLE = specs("at:timestamp, s:string, l:long");
const ROWS = Array.from({ length: 200 }, (_, i) => `{"at":${1_767_225_600 + i},"s":"row ${i}","l":${i}}\n`).join("");
/** Read by the module from the second row on. */
const scanner = newByteScanner(0);

function extentOf(reader: BodyScanner): Uint8Array {
  const set = new ColumnSet(TABLE);
  expect(reader.scan(bodyOf(ROWS), set)).toEqual({ rows: 200, lines: 200 });
  return encodeTlm(set);
}

describe("without the module", () => {
  const usual = remakeModule(() => new RowModule(Buffer.from(ROWS_MODULE, "base64")));
  afterEach(() => {
    remakeModule(usual);
    vi.restoreAllMocks();
  });

  test("that does not compile, all is read by the scanner in JavaScript, with one warning", () => {
    const warn = vi.spyOn(process, "emitWarning").mockReturnValue();
    remakeModule(() => new RowModule(Buffer.from("no module")));
    expect(rowModule()).toBeUndefined();
    expect(extentOf(scanner)).toEqual(extentOf(jsonScanner));
    expect(extentOf(scanner)).toEqual(extentOf(jsonScanner));
    expect(warn).toHaveBeenCalledOnce();
  });

  test.each([0, 1, 3])("that traps after %i calls, the body goes on in JavaScript, with one warning", (calls) => {
    const warn = vi.spyOn(process, "emitWarning").mockReturnValue();
    remakeModule(() => trapping(usual(), calls));
    expect(extentOf(scanner)).toEqual(extentOf(jsonScanner));
    expect(rowModule()).toBeUndefined();
    expect(warn).toHaveBeenCalledOnce();
  });
});

test.each([
  ["zeroes", "\0".repeat(10)],
  ["line feeds", "\n".repeat(10)],
  ["an epoch with a control character", "1767225600\u0001"],
])("a time of %s is refused by a module that has read none before", (_, time) => {
  const usual = remakeModule(() => new RowModule(Buffer.from(ROWS_MODULE, "base64")));
  remakeModule(usual);
  const body = bodyOf(
    `{"at":1,"s":"","l":1}\n{"at":2,"s":"","l":1}\n{"at":"${time}","s":"","l":1}\n{"at":3,"s":"","l":1}\n`,
  );
  const problemOf = (reader: BodyScanner) => {
    try {
      return reader.scan(body, new ColumnSet(TABLE));
    } catch (error) {
      return String(error);
    }
  };
  expect(problemOf(scanner)).toEqual(problemOf(jsonScanner));
  expect(problemOf(jsonScanner)).toMatch(/^EngineError: line 3: /);
});

describe("whatever keys follow each other", () => {
  const names = Array.from({ length: 80 }, (_, i) => `k${i}`);
  const table = specs(`at:timestamp, ${names.map((name) => `${name}:long`).join(", ")}`);
  const rowOf = (keys: readonly string[], at: number) =>
    `{"at":${1_767_225_600 + at},${keys.map((key, i) => `"${key}":${at * 100 + i}`).join(",")}}\n`;
  const random = seededRandom(7);
  const inEveryOrder = () => names.toSorted(() => random.next() - 0.5);

  test.each([
    ["kinds in turn", (at: number) => names.filter((_, i) => i % 10 === at % 10 || i % 7 === 0)],
    ["fields that come and go", () => names.filter(() => random.next() < 0.7)],
    ["any order", inEveryOrder],
    // A step for each pair of keys: more than there is room for.
    ["more kinds than are remembered", (at: number) => [`k${at % 80}`, ...names.filter((_, i) => i !== at % 80)]],
    ["rows without a field", (at: number) => (at % 3 === 0 ? ["k1"] : ["k1", "k2"])],
  ])("values are where their keys are: %s", (_, keysOf) => {
    const body = bodyOf(Array.from({ length: 300 }, (_row, at) => rowOf(keysOf(at), at)).join(""));
    const read = (reader: BodyScanner) => {
      const set = new ColumnSet(table);
      expect(reader.scan(body, set)).toEqual({ rows: 300, lines: 300 });
      return encodeTlm(set);
    };
    expect(read(scanner)).toEqual(read(jsonScanner));
  });
});

describe("the least and the greatest text are found", () => {
  const table = specs("at:timestamp, s:string, t:string, d:dynamic");
  const random = seededRandom(11);
  const oneOf = <T>(some: readonly T[]) => some[Math.floor(random.next() * some.length)] as T;
  const pieces = ["", "a", "b", "abcdefgh", "abcdefg", "\0", "\u0001", "é", "\uffff", "😀", "abcdefghabcdefgh"];
  const text = () => Array.from({ length: Math.floor(random.next() * 4) }, () => oneOf(pieces)).join("");
  /** Some lines are for the host: a key that is escaped. */
  const line = (at: number) => {
    const row = JSON.stringify({
      at: 1_767_225_600 + at,
      ...(random.next() < 0.7 && { s: random.next() < 0.1 ? null : text() }),
      ...(random.next() < 0.3 && { t: text(), d: text() }),
    });
    return `${random.next() < 0.05 ? row.replace('"s"', '"\\u0073"') : row}\n`;
  };

  test.each([1, 2, 10, 3_000])("in bodies of %i rows, some of which are refused and taken back", (rows) => {
    const bodies = Array.from({ length: 20 }, (_, i) => {
      const lines = Array.from({ length: rows }, (_row, at) => line(at)).join("");
      return bodyOf(i % 4 === 1 ? `${lines}{"s":"a","at":"no time"}\n` : lines);
    });
    const statsBy = (reader: BodyScanner) => {
      const set = new ColumnSet(table);
      const refused = bodies.map((body) => {
        try {
          return void reader.scan(body, set);
        } catch (error) {
          return String(error);
        }
      });
      return { refused, rows: set.rows, stats: set.columns.map((column) => column.stats(set.rows)) };
    };
    const expected = statsBy(jsonScanner);
    expect(expected.rows).toBe(15 * rows);
    expect(statsBy(scanner)).toEqual(expected);
  });
});

/** The module, reading one row in each call, and failing after so many. */
function trapping(module: RowModule, calls: number): RowModule {
  const { scan } = module.functions;
  let left = calls;
  const failing: typeof scan = (start, _end, ...rest) => {
    if (left-- === 0) throw new Error("unreachable");
    return scan(start, start + 1, ...rest);
  };
  return Object.assign(module, { functions: { ...module.functions, scan: failing } });
}
