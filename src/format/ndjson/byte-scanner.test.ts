import { describe, expect, test } from "vitest";
import { drawnSeed } from "../../core/drawn-seed.test-kit.ts";
import { LIMITS } from "../../core/limits.ts";
import { seededRandom } from "../../core/random.ts";
import { ColumnSet } from "../columns/column-set.ts";
import { byteScanner } from "./byte-scanner.ts";
import { counted, difference } from "./differential.test-kit.ts";
import { bodyOf, CASE_KINDS, randomCase, specs } from "./generate-cases.test-kit.ts";
import { minimise } from "./minimise.test-kit.ts";
import type { NdjsonBody } from "./scanner.ts";

const DOCUMENTS = 2_000;

const shown = (bodies: readonly NdjsonBody[]) =>
  bodies.map(({ bytes, evolve }) => ({ evolve, text: Buffer.from(bytes).toString("latin1") }));

describe("the byte scanner agrees with the reference", () => {
  test(`on ${DOCUMENTS} generated and mutated bodies`, { timeout: 120_000 }, () => {
    const seed = drawnSeed();
    const random = seededRandom(seed);
    for (let documents = 0; documents < DOCUMENTS;) {
      const { kind, columns, bodies } = randomCase(random);
      const differs = (some: readonly NdjsonBody[]) => difference(columns, some) !== undefined;
      const smallest = differs(bodies) ? minimise(bodies, differs) : [];
      expect(shown(smallest), `seed ${seed}, ${kind}, when ${documents} agreed`).toEqual([]);
      documents += bodies.length;
    }
  });

  /** Of rows that the generators of a kind make, how many at least the scanner must read itself. */
  const FAST_SHARES: Partial<Record<(typeof CASE_KINDS)[number], number>> = {
    // Some of their columns are inferred, and take fewer forms.
    typed: 0.3,
    times: 0.3,
    inferring: 0.3,
    standIns: 0.3,
    spellings: 0.2,
    evolving: 0.4,
  };

  test.each(CASE_KINDS)("and does not leave all to it: %s", (kind) => {
    // The shares are those of some forty cases, which other ones would miss by a little.
    const random = seededRandom(7);
    counted.rows = counted.slowRows = 0;
    for (let i = 0; i < 40; i++) {
      const { columns, bodies } = randomCase(random, kind);
      expect(difference(columns, bodies)).toBeUndefined();
    }
    expect(counted.rows).toBeGreaterThan(40);
    expect(1 - counted.slowRows / counted.rows).toBeGreaterThan(FAST_SHARES[kind] ?? 0.5);
  });
});

const TABLE = specs("at:timestamp, s:string, i:int, l:long, r:real, b:bool, d:dynamic, v:vector(2), props:dynamic");
const ROW = '{"at":"2026-01-02T03:04:05.678Z","s":"text","i":1,"l":-9223372036854775808,"r":1.25,"b":true,"v":[1,2]}';

/** Bodies whose every byte matters to some part of the scanner. */
const NASTY = [
  `${ROW}\n${ROW}\n`,
  '{"s":"\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20ac\\ud83d\\ude00é€😀","v":[ 0 , -1e-3 ]}\n',
  `{"s":"${"a".repeat(31)}\\n${"é".repeat(17)}","d":"\\u0061","v":[1,2]}\r\n{"v":[3,4],"s":"${"b".repeat(64)}"}\n`,
  '{"d":{"a":[1,{"b":null,"a":[ ]}], "a":2},"v":[1,2],"props":{"x" : 1}}\n\n \t\n{"v":[0,0],"d":[true,false,null]}\n',
  '{"l":9223372036854775807,"i":-2147483648,"r":-0.0,"v":[1,2]}\n{"l":9223372036854775808,"i":2147483648,"r":1e309,"v":[1,2]}\n',
  '{"r":0.30000000000000004,"i":1e3,"l":9007199254740993,"v":[16777217,1e-46]}\n{"r":5e-324,"v":[1,2]}\n',
  '{"at":1767225600.123456789,"v":[1,2]}\n{"at":-1767225600,"v":[1,2]}\n{"at":"1969-12-31T23:59:59.999999999-23:59","v":[1,2]}\n',
  '{"timestamp":"2026-01-02T03:04:05Z","v":[1,2]}\n{"_timestamp":1767225600000,"v":[1,2]}\n{"at":null,"timestamp":1,"v":[1,2]}\n',
  '{"v":[1,2],"new":1,"other":{"deep":[1]}}\n{"new":"x","v":[1,2],"S":"y","s":"z"}\n{"v":[1,2],"new":null,"v2":[]}\n',
  ' \t{ "v" : [ 1 , 2 ] , "s" : null , "b" : false } \r\n{"v":[1,2],"d":{ },"s":[ ],"i":null}',
  '{"v":[1,2],"s":"\\ud800"}\n',
  '{"v":[1,2],"":"empty","s":""}\n{"v":[1,2],"\\u0073":"escaped"}\n',
].map((text) => new Uint8Array(Buffer.from(text)));

/** Bytes around a body, which must not be taken for a part of it. */
const AROUND = Buffer.from('"}9 \\\n\0a');

describe("wherever the body lies in its buffer", () => {
  test.each(NASTY.map((bytes, index) => [index, bytes] as const))("document %i", (_index, bytes) => {
    const whole = bytes;
    const cut = bytes.at(-1) === 0x0a ? bytes.subarray(0, -1) : bytes;
    for (let offset = 0; offset <= 64; offset++) {
      for (const body of [whole, cut]) {
        const after = offset % 13;
        const sizeBytes = offset + body.length + after;
        // Bodies also come in memory that threads share.
        const memory = offset % 2 === 0 ? new ArrayBuffer(sizeBytes) : new SharedArrayBuffer(sizeBytes);
        const buffer = new Uint8Array(memory).fill(AROUND[offset % AROUND.length] ?? 0);
        buffer.set(body, offset);
        const placed = { ...bodyOf(""), bytes: buffer.subarray(offset, offset + body.length) };
        const found = difference(TABLE, [placed, bodyOf(whole), placed]);
        expect(found, `offset ${offset}, ${after} bytes after it`).toBeUndefined();
      }
    }
  });

  test.each(NASTY.map((bytes, index) => [index, bytes] as const))("or ends: document %i", (_index, bytes) => {
    for (let end = 0; end < bytes.length; end++) {
      // As it is, with a line feed behind, and in the middle of a larger buffer that goes on as the document did.
      const line = bodyOf(Buffer.concat([bytes.subarray(0, end), Buffer.from("\n")]));
      const inside = { ...bodyOf(""), bytes: bytes.subarray(0, end) };
      for (const body of [bodyOf(bytes.subarray(0, end)), line, inside]) {
        expect(difference(TABLE, [bodyOf(`${ROW}\n`), body, bodyOf(`${ROW}\n`)]), `first ${end} bytes`).toBeUndefined();
      }
    }
  });
});

const DEFAULT = specs("at:timestamp, label:string, body:string, props:dynamic");

describe("bounds", () => {
  test.each([31, 32, 33, 40])("%i new columns in one body, twice", (count) => {
    const fields = (prefix: string) => Array.from({ length: count }, (_, i) => `"${prefix}${i}":${i}`).join();
    const body = bodyOf(`{${fields("a")}}\n{${fields("a")}}\n{"label":"x",${fields("b")}}\n`);
    expect(difference(DEFAULT, [body, body])).toBeUndefined();
  });

  test.each([998, 999, 1_000])("%i levels of nesting, wherever the value goes", (levels) => {
    for (const key of ["label", "props", "unknown"]) {
      for (const evolve of [true, false]) {
        const body = bodyOf(`{"${key}":${"[".repeat(levels)}${"]".repeat(levels)}}\n{"label":"x"}\n`, evolve);
        expect(difference(DEFAULT, [body]), `${key} ${evolve}`).toBeUndefined();
      }
    }
  });

  test("more keys than it remembers, and keys longer than that, without evolution", () => {
    const lines = Array.from({ length: 20_000 }, (_, i) => `{"label":"${i}","k${i}":[${i}],"k${i % 7}":0}\n`);
    lines.push(`{"${"k".repeat(5_000)}":1,"label":"long"}\n`, '{"label":"last"}\n');
    expect(difference(DEFAULT, [bodyOf(lines.join(""), false)])).toBeUndefined();
  });

  test("keys that it learned for a column are forgotten with the column", () => {
    const failing = bodyOf('{"new":1}\n{"new":2}\n{"new":3}\n{"cut\n');
    const plain = bodyOf('{"label":"a","new":1}\n{"label":"b","new":2}\n', false);
    const other = bodyOf('{"label":"a","other":1}\n{"label":"b","other":2,"new":{}}\n{"other":3}\n');
    expect(difference(DEFAULT, [failing, plain, other, failing, plain, other])).toBeUndefined();
  });

  test("a value that fits nowhere costs no memory that it does not take", () => {
    const set = new ColumnSet(specs("at:timestamp, l:long, v:int, props:dynamic"), 4 * 1024 * 1024);
    const misfits = bodyOf('{"l":"x","v":1.5}\n'.repeat(20_000));
    expect(byteScanner.scan(misfits, set).rows).toBe(20_000);
  });

  test("what is too much for one extent is refused by both, whole", () => {
    const columns = specs(`at:timestamp, ${Array.from({ length: 60 }, (_, i) => `c${i}:long`).join(", ")}`);
    const set = new ColumnSet(columns, 1024 * 1024);
    const wide = bodyOf(`{${Array.from({ length: 60 }, (_, i) => `"c${i}":1`).join()}}\n`.repeat(2_000));
    expect(byteScanner.scan(wide, set).rows).toBe(2_000);
    const refused = expect.objectContaining({ code: "too_many_requests" }) as Error;
    expect(() => byteScanner.scan(bodyOf("{}\n".repeat(300)), set)).toThrow(refused);
    expect(set.rows).toBe(2_000);
    expect(byteScanner.scan(bodyOf("{}\n".repeat(100)), set).rows).toBe(100);
  });

  test(`${LIMITS.columnsPerTable} columns, one row of each`, () => {
    const names = Array.from({ length: LIMITS.columnsPerTable - 1 }, (_, i) => `c${i}`);
    const columns = specs(`at:timestamp, ${names.map((name) => `${name}:string`).join(", ")}`);
    const row = `{${names.map((name) => `"${name}":"v"`).join()}}\n`;
    expect(difference(columns, [bodyOf(row + row), bodyOf('{"one more":1}\n'), bodyOf(row)])).toBeUndefined();
  });
});
