import { describe, expect, it } from "vitest";
import { EngineError } from "../../core/errors.ts";
import { ColumnSet } from "../columns/column-set.ts";
import { encodeTlm } from "../tlm.ts";
import { decodeTlm, type Value } from "../tlm-decode.ts";
import { DEFAULT_SHAPE, parseColumnType, type ColumnSpec } from "../types.ts";
import { jsonScanner } from "./json-scanner.ts";
import { Misfits } from "./misfits.ts";

const ARRIVED = 42n;
const AT = "2024-01-01T00:00:00Z";
const AT_NS = 1_704_067_200_000_000_000n;

/** `name type, …` */
function shape(text: string): ColumnSpec[] {
  return text.split(",").map((part) => {
    const [name = "", kind = ""] = part.trim().split(/\s+/);
    const type = parseColumnType(kind);
    if (type === undefined) throw new Error(`no type: ${part}`);
    return { name, type };
  });
}

const TYPED = shape("at timestamp, b bool, i int, l long, r real, s string, t timestamp, d dynamic, props dynamic");
const bytesOf = (text: string) => new TextEncoder().encode(text);

class Scanned {
  readonly set: ColumnSet;
  readonly misfits = new Misfits();

  constructor(columns: readonly ColumnSpec[], maxBytes?: number) {
    this.set = new ColumnSet(columns, maxBytes);
  }

  scan(body: string | Uint8Array, evolve = true): number {
    const bytes = typeof body === "string" ? bytesOf(body) : body;
    return jsonScanner.scan({ bytes, evolve, arrivedAtNs: ARRIVED, misfits: this.misfits }, this.set).rows;
  }

  refusal(body: string | Uint8Array, evolve = true): EngineError {
    try {
      this.scan(body, evolve);
    } catch (error) {
      if (error instanceof EngineError) return error;
      throw error;
    }
    throw new Error("the body was taken");
  }

  get rows(): Record<string, Value>[] {
    const { rows, columns } = decodeTlm(encodeTlm(this.set));
    return Array.from({ length: rows }, (_, row) => {
      const present = columns.filter(({ values }) => values[row] !== null);
      return Object.fromEntries(present.map(({ spec, values }) => [spec.name, values[row] ?? null]));
    });
  }

  get newColumns(): string[] {
    return this.set.newColumns.map(({ name, type }) => `${name} ${type.kind}`);
  }
}

/** 32 members of an object. */
const fields = (prefix: string) => Array.from({ length: 32 }, (_, i) => `"${prefix}${i}":1`).join();

/** The rows of one body in a table, without `at` where it is the time of arrival. */
function rowsOf(columns: readonly ColumnSpec[], body: string, evolve = true): Record<string, Value>[] {
  const scanned = new Scanned(columns);
  scanned.scan(body, evolve);
  return scanned.rows.map((row) => {
    if (row["at"] === ARRIVED) delete row["at"];
    return row;
  });
}

const rowOf = (columns: readonly ColumnSpec[], row: string, evolve = true) => rowsOf(columns, row, evolve)[0];

describe("lines", () => {
  it("may be blank, end in CRLF and lack the last line feed", () => {
    const scanned = new Scanned(DEFAULT_SHAPE);
    expect(scanned.scan('\n{"label":"a"}\r\n \t \r\n\r\n  {"label":"b"}  \n{"label":"c"}')).toBe(3);
    expect(scanned.rows.map(({ label }) => label)).toEqual(["a", "b", "c"]);
  });

  it.each(["", "\n", " \t\r\n\n\r"])("of a body %j are none", (body) => {
    const error = new Scanned(DEFAULT_SHAPE).refusal(body);
    expect([error.code, error.message]).toEqual(["bad_request_body", "the body has no rows"]);
  });

  it.each([
    ["cut off", '{"a":1}\n\n{"a":', 3, "cut off"],
    ["no object", '{"a":1}\r\n[1]\n{"b":2}', 2, "an array"],
    ["a byte order mark", '\uFEFF{"a":1}', 1, "byte order mark"],
    ["a raw NUL", '{"a":1}\n{"a":"\u0000"}', 2, "U+0000"],
    ["a lone surrogate", '{"a":"\\udc00"}', 1, "surrogate"],
    ["deep nesting", `{}\n{"a":${"[".repeat(1_000)}${"]".repeat(1_000)}}`, 2, "1000 levels"],
    ["two objects on one line", '{"a":1} {"a":2}', 1, "character 9"],
  ])("are refused with their number: %s", (_name, body, line, reason) => {
    const error = new Scanned(DEFAULT_SHAPE).refusal(body);
    expect(error.code).toBe("bad_request_body");
    expect(error.details.line).toBe(line);
    expect(error.message).toMatch(new RegExp(`^line ${line}: `));
    expect(error.message).toContain(reason);
  });

  it("take 1,000 levels of nesting", () => {
    const value = `${"[".repeat(999)}${"]".repeat(999)}`;
    expect(rowOf(DEFAULT_SHAPE, `{"label":${value}}`)).toEqual({ label: value });
    expect(rowOf(DEFAULT_SHAPE, `{"props":${value}}`)).toEqual({ props: value });
  });

  it.each([
    ["a stray continuation byte", [0x80]],
    ["an overlong form", [0xc0, 0xaf]],
    ["an encoded surrogate", [0xed, 0xa0, 0x80]],
    ["a character cut off", [0xf0, 0x9f, 0x98]],
  ])("must be UTF-8: %s", (_name, bad) => {
    const body = Uint8Array.from([...bytesOf('{"label":"é"}\n{"label":"'), ...bad, ...bytesOf('"}\n')]);
    const error = new Scanned(DEFAULT_SHAPE).refusal(body);
    expect([error.details.line, error.message]).toEqual([2, "line 2: the line is not valid UTF-8"]);
  });

  it("are read from views into larger buffers, shared ones too", () => {
    const body = bytesOf('xx{"label":"é"}yy');
    const shared = new Uint8Array(new SharedArrayBuffer(body.length));
    shared.set(body);
    for (const bytes of [body, shared]) {
      const scanned = new Scanned(DEFAULT_SHAPE);
      scanned.scan(bytes.subarray(2, bytes.length - 2));
      expect(scanned.rows).toEqual([{ at: ARRIVED, label: "é" }]);
    }
  });
});

describe("values", () => {
  it.each([
    ["b", "true", true],
    ["b", "false", false],
    ["i", "-2147483648", -2_147_483_648],
    ["i", "1e3", 1000],
    ["i", "3.0", 3],
    ["i", "-0", 0],
    ["l", "9223372036854775807", 2n ** 63n - 1n],
    ["l", "9007199254740993", 9007199254740993n],
    ["r", "1.5e300", 1.5e300],
    ["r", "7", 7],
    ["s", '"é\\u0000😀"', "é\u0000😀"],
    ["s", '""', ""],
    ["s", "200", "200"],
    ["s", "1.0", "1.0"],
    ["s", "12345678901234567890", "12345678901234567890"],
    ["s", "true", "true"],
    ["s", '{ "b": 1, "2": [ "x\\/" ] }', '{"b":1,"2":["x/"]}'],
    ["t", '"2024-01-01t01:00:00.5+01:00"', AT_NS + 500_000_000n],
    ["t", '"2024-01-01T00:00:00"', AT_NS],
    ["t", '"2024-01-01 00:00:00.000000001"', AT_NS + 1n],
    ["t", '"2024-01-01"', AT_NS],
    ["t", "1704067200", AT_NS],
    ["t", '"1704067200"', AT_NS],
    ["t", '"1704067200000"', AT_NS],
    ["t", '"1704067200000000"', AT_NS],
    ["t", '"1704067200000000001"', AT_NS + 1n],
    ["t", '"-1.5"', -1_500_000_000n],
    ["d", '"x"', '"x"'],
    ["d", "1.50", "1.50"],
    ["d", "[1, null]", "[1,null]"],
    ["d", "false", "false"],
  ])("fit column %s: %s", (column, value, stored) => {
    expect(rowOf(TYPED, `{"${column}":${value}}`)).toEqual({ [column]: stored });
  });

  it.each(["b", "i", "l", "r", "s", "t", "d"])("null is NULL in column %s", (column) => {
    expect(rowOf(TYPED, `{"${column}":null}`)).toEqual({});
  });

  it.each([
    ["b", "1"],
    ["b", '"true"'],
    ["i", "1.5"],
    ["i", "2147483648"],
    ["i", '"1"'],
    ["i", "true"],
    ["l", "9223372036854775808"],
    ["l", "1e19"],
    ["l", '"1"'],
    ["r", "1e309"],
    ["r", '"1.5"'],
    ["t", '"yesterday"'],
    ["t", '"2024-02-30T00:00:00"'],
    ["t", '"2024-01-01T24:00:00Z"'],
    ["t", '" 2024-01-01"'],
    ["t", '"1e400"'],
    ["t", "1e400"],
    ["t", "true"],
    ["i", '{"a":[1,2]}'],
  ])("that do not fit column %s go to props: %s", (column, value) => {
    for (const evolve of [true, false]) {
      expect(rowOf(TYPED, `{"${column}":${value}}`, evolve)).toEqual({ props: `{"${column}":${value}}` });
    }
  });

  it("that do not fit are refused where there is no props", () => {
    const error = new Scanned(shape("at timestamp, i int")).refusal('{"i":1}\n{"i":"x"}');
    expect([error.code, error.details.line, error.details.column]).toEqual(["bad_request_body", 2, "i"]);
    expect(error.message).toMatch(/^line 2, column "i": .*int/);
  });

  it("that do not fit are refused where props cannot hold JSON", () => {
    const error = new Scanned(shape("at timestamp, i int, props long")).refusal('{"i":"x","props":1}');
    expect([error.details.line, error.details.column]).toEqual([1, "i"]);
  });
});

describe("vectors", () => {
  const table = shape("at timestamp, v vector(3), props dynamic");

  it("take arrays of exactly that many numbers", () => {
    expect(rowsOf(table, '{"v":[1, -0.5 ,2e2]}\n{"V":[0,0,0]}')).toEqual([{ v: [1, -0.5, 200] }, { v: [0, 0, 0] }]);
  });

  it.each([
    "{}",
    '{"v":null}',
    '{"v":[]}',
    '{"v":[1,2]}',
    '{"v":[1,2,3,4]}',
    '{"v":[1,2,null]}',
    '{"v":[1,2,"3"]}',
    '{"v":[1,2,[3]]}',
    '{"v":[1,2,1e39]}',
    '{"v":"[1,2,3]"}',
    '{"v":{"0":1}}',
  ])("refuse a row of %s, naming line and column", (row) => {
    const error = new Scanned(table).refusal(`{"v":[1,2,3]}\n${row}`, false);
    expect([error.code, error.details.line, error.details.column]).toEqual(["bad_request_body", 2, "v"]);
    expect(error.message).toContain("vector(3)");
  });
});

describe("names", () => {
  it("match exactly, else without regard to ASCII case", () => {
    expect(rowOf(TYPED, '{"I":5,"S":"x"}')).toEqual({ i: 5, s: "x" });
    expect(rowOf(shape("at timestamp, É string, props dynamic"), '{"é":"x"}')).toEqual({ é: "x" });
  });

  it.each([
    ['{"S":"1","s":"2"}', { s: "2", props: '{"S":"1"}' }],
    ['{"s":"2","S":"1"}', { s: "2", props: '{"S":"1"}' }],
    ['{"S":"1","s":null}', { props: '{"S":"1"}' }],
    ['{"s":"2","S":null}', { s: "2" }],
    ['{"L":1,"l":2,"L":3}', { l: 2n, props: '{"L":3}' }],
    ['{"Props":{"a":1},"props":{"b":2}}', { props: '{"b":2,"Props":{"a":1}}' }],
    ['{"Props":{"a":1}}', { props: '{"a":1}' }],
  ])("of two spellings let the exact one win: %s", (row, stored) => {
    for (const evolve of [true, false]) expect(rowOf(TYPED, row, evolve)).toEqual(stored);
  });

  it("of two inexact spellings let the first win", () => {
    const table = shape("at timestamp, foo string, props dynamic");
    expect(rowOf(table, '{"FOO":"1","Foo":"2","FOO":"3"}')).toEqual({ foo: "3", props: '{"Foo":"2"}' });
    expect(rowOf(DEFAULT_SHAPE, '{"Foo":"1","foo":"2"}')).toEqual({ Foo: "1", props: '{"foo":"2"}' });
  });

  it("of two spellings refuse the body where there is no props", () => {
    const error = new Scanned(shape("at timestamp, s string")).refusal('{"s":"1","S":"2"}');
    expect([error.details.line, error.details.column]).toEqual([1, "s"]);
  });

  it("like __proto__ and those of object members are ordinary", () => {
    const scanned = new Scanned(DEFAULT_SHAPE);
    scanned.scan('{"__proto__":{"x":1},"constructor":2,"toString":3,"hasOwnProperty":4}');
    expect(scanned.newColumns).toEqual([
      "__proto__ string",
      "constructor string",
      "toString string",
      "hasOwnProperty string",
    ]);
    expect(Object.entries(scanned.rows[0] ?? {})).toContainEqual(["__proto__", '{"x":1}']);
  });
});

describe("evolution", () => {
  it("makes string columns in order of appearance, null fields included", () => {
    const scanned = new Scanned(DEFAULT_SHAPE);
    scanned.scan('{"z":1,"n":null}\n{"a":{"x":[1]},"label":"l"}\n{"z":"s"}');
    expect(scanned.newColumns).toEqual(["z string", "n string", "a string"]);
    expect(scanned.rows).toEqual([
      { at: ARRIVED, z: "1" },
      { at: ARRIVED, label: "l", a: '{"x":[1]}' },
      { at: ARRIVED, z: "s" },
    ]);
  });

  it("when off drops unknown fields, and keeps known ones", () => {
    const scanned = new Scanned(DEFAULT_SHAPE);
    scanned.scan('{"z":1,"":2,"LABEL":"x"}', false);
    expect(scanned.newColumns).toEqual([]);
    expect(scanned.rows).toEqual([{ at: ARRIVED, label: "x" }]);
  });

  it("takes 32 columns per body; the 33rd goes to props", () => {
    const scanned = new Scanned(DEFAULT_SHAPE);
    const first = Array.from({ length: 31 }, (_, i) => `"f${i}":${i}`).join();
    scanned.scan(`{${first}}\n{"f31":31,"f32":{"x":32},"n":null}\n{"f0":"again","f32":33}`);
    expect(scanned.newColumns).toHaveLength(32);
    expect(scanned.rows[1]).toEqual({ at: ARRIVED, f31: "31", props: '{"f32":{"x":32}}' });
    expect(scanned.rows[2]).toEqual({ at: ARRIVED, f0: "again", props: '{"f32":33}' });
  });

  it("charges a column to the body that brings it only", () => {
    const scanned = new Scanned(DEFAULT_SHAPE);
    scanned.scan(`{${fields("a")}}`);
    scanned.scan(`{${fields("A")},${fields("b")}}`);
    expect(scanned.newColumns).toHaveLength(64);
    scanned.scan('{"a0":7,"c":1}', false);
    expect(scanned.rows[2]).toEqual({ at: ARRIVED, a0: "7" });
  });

  it("stops at 2,000 columns of the table; the 2,001st goes to props", () => {
    const columns = [...DEFAULT_SHAPE, ...shape(Array.from({ length: 1_995 }, (_, i) => `c${i} int`).join())];
    const scanned = new Scanned(columns);
    scanned.scan('{"last":1,"beyond":2}');
    expect(scanned.newColumns).toEqual(["last string"]);
    expect(scanned.rows).toEqual([{ at: ARRIVED, last: "1", props: '{"beyond":2}' }]);
    const bare = new Scanned([
      ...shape("at timestamp"),
      ...columns.filter(({ name }) => /^c\d/.test(name)),
      ...shape("x int,y int,z int"),
    ]);
    const error = bare.refusal('{"last":1}\n{"beyond":2}');
    expect([error.details.line, error.details.column]).toEqual([2, "beyond"]);
  });

  it.each([
    ["of 255 bytes", "é".repeat(127) + "a", true],
    ["of 256 bytes", "é".repeat(128), false],
    ["of 10 kB", "k".repeat(10_000), false],
    ["that is empty", "", false],
    ["with a control character", "a\u0000b", false],
    ["with quotes and slashes", `a"b/..'`, true],
  ])("makes a column of a name %s, or puts it into props", (_name, key, isColumn) => {
    const scanned = new Scanned(DEFAULT_SHAPE);
    scanned.scan(JSON.stringify({ [key]: 1 }));
    expect(scanned.rows).toEqual([
      isColumn ? { at: ARRIVED, [key]: "1" } : { at: ARRIVED, props: JSON.stringify({ [key]: 1 }) },
    ]);
    if (isColumn) return;
    const error = new Scanned(shape("at timestamp")).refusal(JSON.stringify({ [key]: 1 }));
    expect([error.code, error.details.line, error.details.column]).toEqual(["bad_request_body", 1, key]);
    expect(error.message.length).toBeLessThan(600);
  });

  it("may make the props that a table lacks", () => {
    const scanned = new Scanned(shape("at timestamp, i int"));
    scanned.scan('{"i":"x","props":{"a":1}}\n{"i":"y"}');
    expect(scanned.newColumns).toEqual(["props string"]);
    expect(scanned.rows.map(({ props }) => props)).toEqual(['{"a":1,"i":"x"}', '{"i":"y"}']);
  });
});

describe("at", () => {
  it.each([
    [`{"at":"${AT}"}`, { at: AT_NS }],
    [`{"AT":"${AT}"}`, { at: AT_NS }],
    [`{"timestamp":"${AT}"}`, { at: AT_NS }],
    [`{"Timestamp":"${AT}"}`, { at: AT_NS }],
    [`{"_timestamp":1704067200}`, { at: AT_NS }],
    [`{"_timestamp":1,"at":null,"timestamp":"${AT}"}`, { at: AT_NS, _timestamp: "1" }],
    [`{"at":"${AT}","timestamp":"x"}`, { at: AT_NS, timestamp: "x" }],
    [`{"timestamp":"${AT}","_timestamp":null,"Timestamp":5}`, { at: AT_NS, props: '{"Timestamp":5}' }],
    ['{"timestamp":null}', {}],
    ["{}", {}],
    ['{"at":"soon"}', { props: '{"at":"soon"}' }],
    ['{"AT":[1]}', { props: '{"AT":[1]}' }],
    ['{"at":99999999999}', { props: '{"at":99999999999}' }],
    ['{"at":"1500-01-01T00:00:00Z"}', { props: '{"at":"1500-01-01T00:00:00Z"}' }],
    [`{"at":"soon","timestamp":"${AT}"}`, { at: AT_NS, props: '{"at":"soon"}' }],
    [`{"timestamp":{},"_timestamp":"${AT}","at":[]}`, { at: AT_NS, props: '{"timestamp":{},"at":[]}' }],
    ['{"timestamp":"soon"}', { props: '{"timestamp":"soon"}' }],
    ['{"at":"soon","timestamp":"later"}', { props: '{"at":"soon","timestamp":"later"}' }],
  ])("of %s", (row, stored) => {
    const scanned = new Scanned(DEFAULT_SHAPE);
    scanned.scan(row);
    expect(scanned.rows).toEqual([{ at: ARRIVED, ...stored }]);
  });

  it.each([
    [`{"timestamp":"${AT}"}`, []],
    [`{"_timestamp":"${AT}"}`, []],
    ['{"timestamp":null,"_timestamp":"soon"}', []],
    [`{"timestamp":"${AT}","_timestamp":1}`, ["_timestamp string"]],
    [`{"at":"${AT}","TimeStamp":1}`, ["TimeStamp string"]],
  ])("of %s makes columns only of what it did not look at", (row, newColumns) => {
    const scanned = new Scanned(DEFAULT_SHAPE);
    scanned.scan(row);
    expect(scanned.newColumns).toEqual(newColumns);
  });

  it("is taken from a field that has a column of its own, which gets it too", () => {
    const table = shape("at timestamp, timestamp string, _timestamp timestamp, props dynamic");
    expect(rowOf(table, `{"timestamp":"${AT}"}`)).toEqual({ at: AT_NS, timestamp: AT });
    expect(rowOf(table, `{"_timestamp":"${AT}"}`)).toEqual({ at: AT_NS, _timestamp: AT_NS });
    // The column holds what could not be read, so nothing is lost and props is not needed.
    expect(rowOf(table, '{"timestamp":"soon"}')).toEqual({ timestamp: "soon" });
    expect(rowOf(table, '{"_timestamp":"soon"}')).toEqual({ props: '{"_timestamp":"soon"}' });
  });

  it("works without evolution and without props", () => {
    expect(rowOf(shape("at timestamp"), `{"timestamp":"${AT}","x":1}`, false)).toEqual({ at: AT_NS });
    const error = new Scanned(shape("at timestamp")).refusal('{"at":"soon"}', false);
    expect([error.details.line, error.details.column]).toEqual([1, "at"]);
  });
});

describe("what does not fit", () => {
  const of = (table: readonly ColumnSpec[], body: string, evolve = true) => {
    const scanned = new Scanned(table);
    scanned.scan(body, evolve);
    return scanned.misfits.all();
  };

  it("is nothing for what fits, is null, is absent, or goes to props for another reason", () => {
    const wide = JSON.stringify(Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`f${i}`, i])));
    const body = `{"at":"2024-01-01","i":1}\n{}\n{"at":null,"i":null}\n${wide}\n{"i":1,"I":2,"":3}\n{"props":[1]}`;
    expect(of(TYPED, body)).toBeUndefined();
  });

  it("is counted by column, with the line of the first", () => {
    const body = '\n{"i":"x"}\n{"b":1,"I":2.5}\n \r\n{"t":"soon","i":1,"b":null}\n{"i":{},"b":"true"}';
    expect(of(TYPED, body)).toEqual([
      { code: "kept_in_props", field: "i", type: "int", count: 3, firstLine: 2 },
      { code: "kept_in_props", field: "b", type: "bool", count: 2, firstLine: 3 },
      { code: "kept_in_props", field: "t", type: "timestamp", count: 1, firstLine: 5 },
    ]);
  });

  it("are rows whose time cannot be read, whatever field was to tell it", () => {
    const body = '{"label":"a"}\n{"at":"soon"}\n{"timestamp":true}\n{"at":"x","_timestamp":"y"}\n{"at":"2024-01-01"}';
    expect(of(DEFAULT_SHAPE, body)).toEqual([{ code: "at_unreadable", count: 3, firstLine: 2 }]);
    const value = { code: "kept_in_props", field: "at", type: "timestamp", count: 1, firstLine: 1 };
    expect(of(DEFAULT_SHAPE, '{"at":"soon","timestamp":0}')).toEqual([value]);
    // Its own column holds what could not be read, as text; the row's time is the time of arrival all the same.
    const own = shape("at timestamp, timestamp string, _timestamp timestamp, props dynamic");
    const time = { code: "at_unreadable", count: 1, firstLine: 1 };
    expect(of(own, '{"timestamp":"soon"}')).toEqual([time]);
    expect(of(own, '{"_timestamp":"soon"}')).toEqual([time, { ...value, field: "_timestamp" }]);
  });

  it("is told of without evolution, too", () => {
    expect(of(TYPED, '{"i":"x","unknown":1}', false)).toEqual([
      { code: "kept_in_props", field: "i", type: "int", count: 1, firstLine: 1 },
    ]);
  });
});

describe("props", () => {
  it.each([
    ['{"props":{"a":1}}', '{"a":1}'],
    ['{"props":{ "b" : 1.0, "a":{"c":null} },"i":"x"}', '{"b":1.0,"a":{"c":null},"i":"x"}'],
    ['{"i":"x","props":{}}', '{"i":"x"}'],
    ['{"i":"x","props":null}', '{"i":"x"}'],
    ['{"i":"x","props":{"i":"own"}}', '{"i":"own","i_2":"x"}'],
    ['{"i":"x","props":{"i":1,"i_2":2,"i_3":3}}', '{"i":1,"i_2":2,"i_3":3,"i_4":"x"}'],
    ['{"i":"x","I":"y","props":{"i":1,"I":2}}', '{"i":1,"I":2,"i_2":"x","I_2":"y"}'],
    ['{"i":"x","props":{"\\u0069":1}}', '{"i":1,"i_2":"x"}'],
    ['{"i":"x","props":[1, 2]}', '{"props":[1,2],"i":"x"}'],
    ['{"i":"x","props":"text"}', '{"props":"text","i":"x"}'],
    ['{"i":"x","props":false}', '{"props":false,"i":"x"}'],
    ['{"props":"text"}', '"text"'],
    ['{"l":0.5,"i":"x"}', '{"l":0.5,"i":"x"}'],
    ['{"i":"x","props":{"__proto__":1}}', '{"__proto__":1,"i":"x"}'],
  ])("of %s", (row, props) => {
    expect(rowOf(TYPED, row)?.["props"]).toBe(props);
  });

  it("spelled otherwise keeps both of a collision with its own name", () => {
    const table = shape("at timestamp, Props dynamic");
    expect(rowOf(table, '{"Props":5,"props":6}')).toEqual({ Props: '{"props":5,"props_2":6}' });
  });
});

describe("a refused body", () => {
  it("leaves no row, no column and no trace", () => {
    const touched = new Scanned(TYPED);
    const untouched = new Scanned(TYPED);
    touched.scan('{"s":"first","new1":1}');
    touched.refusal('{"s":"bad","new1":2,"new2":3,"i":7}\n{"s":"cut');
    touched.refusal("\n");
    touched.scan('{"new3":1}\n{"NEW2":4,"i":8}');
    untouched.scan('{"s":"first","new1":1}');
    untouched.scan('{"new3":1}\n{"NEW2":4,"i":8}');
    expect(touched.newColumns).toEqual(["new1 string", "new3 string", "NEW2 string"]);
    expect(touched.rows).toEqual(untouched.rows);
    expect(Buffer.compare(encodeTlm(touched.set), encodeTlm(untouched.set))).toBe(0);
  });

  it("gives back its share of the column caps", () => {
    const scanned = new Scanned([
      ...DEFAULT_SHAPE,
      ...shape(Array.from({ length: 1_995 }, (_, i) => `c${i} int`).join()),
    ]);
    scanned.refusal('{"last":1}\n{');
    scanned.scan('{"other":1}');
    expect(scanned.newColumns).toEqual(["other string"]);
  });
});

describe("rows that take too much memory", () => {
  // Once every column has a value somewhere, each row costs all of them: 800 bytes and some bits here.
  const names = Array.from({ length: 99 }, (_, i) => `c${i}`);
  const wide = shape(`at timestamp, ${names.map((name) => `${name} real`).join()}`);
  const all = `{${names.map((name) => `"${name}":1`).join()}}\n`;
  const limited = () => new Scanned(wide, 1_000_000);

  it("are refused, alone for good and with others for now", () => {
    const alone = limited().refusal(all + "{}\n".repeat(1_250));
    expect([alone.code, alone.message]).toEqual(["body_too_large", expect.stringContaining("smaller parts")]);
    const shared = limited();
    shared.scan("{}\n".repeat(1_250));
    const refused = shared.refusal(all);
    expect([refused.code, refused.details.headers]).toEqual(["too_many_requests", { "Retry-After": "1" }]);
    expect(shared.set.rows).toBe(1_250);
    // What was refused no longer counts.
    expect(shared.scan("{}\n".repeat(20_000))).toBe(20_000);
  });

  it("are taken up to the limit", () => {
    expect(limited().scan(all + "{}\n".repeat(1_229))).toBe(1_230);
    expect(limited().refusal(all + "{}\n".repeat(1_231)).code).toBe("body_too_large");
  });
});
