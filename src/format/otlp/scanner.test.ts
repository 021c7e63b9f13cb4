import { describe, expect, test } from "vitest";
import { Misfits } from "../ndjson/misfits.ts";
import { DEFAULT_SHAPE, type ColumnSpec } from "../types.ts";
import { ARRIVED_NS, scanLogs } from "./scan.test-kit.ts";
import { OTLP_LOGS_SHAPE } from "./shape.ts";
import { double, fixed32, fixed64, int, len, list, member, nested, object, request, text } from "./wire.test-kit.ts";

const TIME_NS = 1_767_323_045_123_456_789n;

const FULL = Buffer.concat([
  fixed64(1, TIME_NS),
  int(2, 9),
  len(3, "INFO"),
  len(5, text('said "hello"\n')),
  len(6, member("http.method", text("GET"))),
  len(6, member("n", int(3, 9_007_199_254_740_993n))),
  int(7, 3),
  fixed32(8, 0xffff_ffff),
  len(9, Buffer.from("000102030405060708090a0b0c0d0eff", "hex")),
  len(10, Buffer.from("00010203040506ff", "hex")),
  fixed64(11, TIME_NS + 1n),
  len(12, "user.login"),
]);

const RESOURCE = len(1, len(1, member("service.name", text("shop"))), len(1, member("pid", int(3, 7))), int(2, 5));
const SCOPE = len(1, len(1, "lib"), len(2, "1.2"), len(3, member("k", int(2, 1))), int(4, 6));

describe("a record", () => {
  test("with everything", () => {
    const body = len(1, RESOURCE, len(2, SCOPE, len(2, FULL), len(3, "https://scope")), len(3, "https://resource"));
    const { cells, ...scanned } = scanLogs(body);
    expect(scanned).toMatchObject({ rows: 1, lines: 1 });
    expect(cells).toEqual([
      {
        at: TIME_NS,
        label: "user.login",
        body: 'said "hello"\n',
        props: '{"resource_dropped_attributes":5,"scope_dropped_attributes":6}',
        observed_at: TIME_NS + 1n,
        severity_number: 9,
        severity_text: "INFO",
        trace_id: "000102030405060708090a0b0c0d0eff",
        span_id: "00010203040506ff",
        flags: 4_294_967_295n,
        service_name: "shop",
        scope_name: "lib",
        scope_version: "1.2",
        resource: '{"service.name":"shop","pid":7}',
        scope: '{"k":true}',
        attributes: '{"http.method":"GET","n":9007199254740993}',
        dropped_attributes: 3n,
        resource_schema_url: "https://resource",
        scope_schema_url: "https://scope",
      },
    ]);
  });

  test("with nothing", () => {
    expect(scanLogs(request(Buffer.alloc(0))).cells).toEqual([{ at: ARRIVED_NS, label: "log" }]);
  });

  test("without a time has the one at which it was observed", () => {
    expect(scanLogs(request(fixed64(11, 5n))).cells).toEqual([{ at: 5n, observed_at: 5n, label: "log" }]);
  });

  test("fields may come in any order, also those of its resource and scope", () => {
    const record = len(2, len(5, text("x")));
    const body = len(1, len(3, "url"), len(2, len(3, "scope url"), record, SCOPE), RESOURCE);
    expect(scanLogs(body).cells).toEqual([
      expect.objectContaining({ body: "x", service_name: "shop", scope_name: "lib", resource_schema_url: "url" }),
    ]);
  });
});

describe("values", () => {
  const jsonOf = (value: Buffer) => scanLogs(request(len(6, member("v", value)))).cells[0]?.["attributes"];

  test.each<[string, Buffer, string]>([
    ["text", text('"\\\b\f\n\r\t\u0001\u001f é 🦉'), JSON.stringify('"\\\b\f\n\r\t\u0001\u001f é 🦉')],
    ["no text", text(""), '""'],
    ["true", int(2, 1), "true"],
    ["false", int(2, 0), "false"],
    ["the least integer", int(3, -(2n ** 63n)), "-9223372036854775808"],
    ["the greatest integer", int(3, 2n ** 63n - 1n), "9223372036854775807"],
    ["a small negative integer", int(3, -1), "-1"],
    ["a double", double(4, 0.1), "0.1"],
    ["a large double", double(4, 1e300), "1e+300"],
    ["negative zero", double(4, -0), "-0"],
    ["no number", double(4, NaN), '"NaN"'],
    ["infinity", double(4, -Infinity), '"-Infinity"'],
    ["bytes", len(7, Buffer.from([0, 255, 254])), '"AP/+"'],
    ["a list", list(int(3, 1), Buffer.alloc(0), list()), "[1,null,[]]"],
    ["an object", object(member("a", int(3, 1)), member("b", object())), '{"a":1,"b":{}}'],
    ["nothing", Buffer.alloc(0), "null"],
    ["something newer", len(99, "x"), "null"],
    ["the last of several", Buffer.concat([text("a"), int(3, 2)]), "2"],
    ["lists that are one", Buffer.concat([list(int(3, 1)), list(int(3, 2))]), "[1,2]"],
    ["lists with another value between", Buffer.concat([list(int(3, 1)), int(3, 5), list(int(3, 2))]), "[2]"],
    ["objects that are one", Buffer.concat([object(member("a")), object(member("b", int(3, 1)))]), '{"a":null,"b":1}'],
  ])("%s", (_name, value, json) => {
    expect(jsonOf(value)).toBe(`{"v":${json}}`);
  });

  test("of equal keys the last counts, at the place of the first, however many there are", () => {
    const few = [member("a", int(3, 1)), member("b", int(3, 2)), member("a", int(3, 3)), member("", text("x"))];
    const many = Array.from({ length: 300 }, (_, i) => member(`k${i % 150}`, int(3, i)));
    expect(jsonOf(object(...few))).toBe('{"v":{"a":3,"b":2,"":"x"}}');
    const expected = Object.fromEntries(Array.from({ length: 150 }, (_, i) => [`k${i}`, 150 + i]));
    expect(jsonOf(object(...many))).toBe(JSON.stringify({ v: expected }));
  });

  test("a value that comes in two parts is one", () => {
    const twice = member("v", list(int(3, 1)), list(int(3, 2)));
    expect(scanLogs(request(len(6, twice))).cells[0]).toMatchObject({ attributes: '{"v":[1,2]}' });
    // Between the two is a field that nobody knows: the number of a list of members, but the type of a number.
    const apart = member("v", list(int(3, 1)), int(6, 7), list(int(3, 2)));
    expect(scanLogs(request(len(6, apart))).cells[0]).toMatchObject({ attributes: '{"v":[1,2]}' });
    const body = Buffer.concat([len(5, object(member("a"))), int(2, 9), len(5, object(member("b")))]);
    expect(scanLogs(request(body)).cells[0]).toMatchObject({ body: '{"a":null,"b":null}', severity_number: 9 });
    const parts = len(1, RESOURCE, len(1, len(1, member("pid", int(3, 8)))), len(2, len(2)));
    expect(scanLogs(parts).cells[0]).toMatchObject({
      service_name: "shop",
      resource: '{"service.name":"shop","pid":8}',
    });
  });

  test.each<[string, Buffer, string | undefined]>([
    ["text as it is", text("a\nb"), "a\nb"],
    ["a number as JSON", int(3, 5), "5"],
    ["an object as JSON", object(member("a", text("b"))), '{"a":"b"}'],
    ["bytes as base64", len(7, Buffer.from([1, 2])), "AQI="],
    ["text that is no UTF-8 repaired", text(Buffer.from([0x61, 0xff, 0x62])), "a\ufffdb"],
    ["also inside of other values", list(text(Buffer.from([0xff]))), '["\ufffd"]'],
    ["no value as none", Buffer.alloc(0), undefined],
  ])("a body is %s", (_name, value, body) => {
    expect(scanLogs(request(len(5, value))).cells[0]?.["body"]).toBe(body);
  });
});

describe("a record that cannot be kept", () => {
  const bad = Buffer.from([0xc3, 0x28]);

  test.each<[string, Buffer]>([
    ["a severity", len(3, bad)],
    ["an event name", len(12, bad)],
    ["a key", len(6, member(bad, int(3, 1)))],
    ["a value", len(6, member("a", list(text(bad))))],
  ])("%s that is no UTF-8 leaves its neighbours alone", (_name, record) => {
    const { cells, rows, lines, rejected } = scanLogs(request(len(3, "A"), record, len(3, "B"), record));
    expect([rows, lines, cells.map((row) => row["severity_text"])]).toEqual([2, 4, ["A", "B"]]);
    expect(rejected).toEqual({
      rows: 2,
      reason: "record 2 is not stored: text outside its body is not valid UTF-8",
    });
  });

  test("is nested deeper than 1,000 levels, the row and its attributes among them", () => {
    const deep = (depth: number) => scanLogs(request(len(6, member("a", nested(depth)))));
    expect(deep(998)).toMatchObject({ rows: 1 });
    expect(deep(999)).toMatchObject({
      rows: 0,
      rejected: { rows: 1, reason: "record 1 is not stored: its values are nested deeper than 1000 levels" },
    });
    expect(scanLogs(request(len(5, nested(999)))).rows).toBe(1);
    expect(scanLogs(request(len(5, nested(1000)))).rows).toBe(0);
    expect(scanLogs(request(len(5, nested(200_000)))).rejected?.rows).toBe(1);
  });

  test("is every one of a resource or scope that cannot be kept", () => {
    const resource = len(1, len(1, len(1, member("a", text(bad)))), len(2, len(2), len(2)), len(2, len(2)));
    const scope = len(1, len(2, len(1, len(1, bad)), len(2)), len(2, len(2, len(3, "kept"))));
    expect(scanLogs(resource)).toMatchObject({ rows: 0, lines: 3, rejected: { rows: 3 } });
    expect(scanLogs(Buffer.concat([resource, scope]))).toMatchObject({ rows: 1, lines: 5, rejected: { rows: 4 } });
  });

  test("makes no columns when nothing is kept", () => {
    const { set, rows } = scanLogs(request(len(3, bad)), { columns: DEFAULT_SHAPE });
    expect([rows, set.newColumns]).toEqual([0, []]);
    expect(scanLogs(Buffer.alloc(0))).toMatchObject({ rows: 0, lines: 0 });
  });
});

describe("tables of other columns", () => {
  const body = len(1, RESOURCE, len(2, SCOPE, len(2, FULL), len(2), len(2, len(5, list(int(3, 1))), fixed64(11, 7n))));

  test("columns that the table lacks are added with their types", () => {
    const added = scanLogs(body, { columns: DEFAULT_SHAPE });
    expect(added.set.newColumns).toEqual(OTLP_LOGS_SHAPE.slice(DEFAULT_SHAPE.length));
    expect(added.set.metUnknownField).toBe(true);
    expect(added.cells).toEqual(scanLogs(body).cells);
  });

  test("the slow way comes to the same rows", () => {
    const vector: ColumnSpec = { name: "v", type: { kind: "vector", dimensions: 2 } };
    const slow = scanLogs(body, { columns: [...OTLP_LOGS_SHAPE, vector], lenient: true });
    expect(slow.cells).toEqual(scanLogs(body).cells);
  });

  test("values go to columns of other types as those of any row do", () => {
    const types: Partial<Record<string, ColumnSpec["type"]["kind"]>> = {
      severity_number: "string",
      severity_text: "int",
      attributes: "string",
      body: "dynamic",
    };
    const columns = OTLP_LOGS_SHAPE.map((spec): ColumnSpec => {
      const kind = types[spec.name];
      return kind === undefined || kind === "vector" ? spec : { name: spec.name, type: { kind } };
    });
    const misfits = new Misfits();
    const { cells } = scanLogs(request(FULL), { columns, misfits });
    expect(cells[0]).toMatchObject({
      severity_number: "9",
      attributes: '{"http.method":"GET","n":9007199254740993}',
      body: JSON.stringify('said "hello"\n'),
      props: '{"severity_text":"INFO"}',
    });
    expect(misfits.all()).toEqual([
      { code: "kept_in_props", type: "int", field: "severity_text", count: 1, firstLine: 1 },
    ]);
  });

  test("a vector column refuses the request, and a full table keeps all in props", () => {
    const vector: ColumnSpec = { name: "v", type: { kind: "vector", dimensions: 2 } };
    expect(() => scanLogs(body, { columns: [...OTLP_LOGS_SHAPE, vector] })).toThrow(/record 1, column "v": every row/);
    const full = Array.from({ length: 1_996 }, (_, i): ColumnSpec => ({ name: `c${i}`, type: { kind: "string" } }));
    const { cells } = scanLogs(request(len(3, "INFO")), { columns: [...DEFAULT_SHAPE, ...full] });
    expect(cells).toEqual([{ at: ARRIVED_NS, label: "log", props: '{"severity_text":"INFO"}' }]);
  });

  test("times that no column of times can have are kept in props", () => {
    const late = 2n ** 63n;
    const misfits = new Misfits();
    const { cells } = scanLogs(request(Buffer.concat([fixed64(1, late), fixed64(11, 5n)]), fixed64(11, late)), {
      misfits,
    });
    expect(cells).toEqual([
      { at: 5n, observed_at: 5n, label: "log", props: '{"time_unix_nano":9223372036854775808}' },
      { at: ARRIVED_NS, label: "log", props: '{"observed_at":9223372036854775808}' },
    ]);
  });
});

test("what rows share is in each of them, whichever way they are written and whatever is left out between", () => {
  const [late, bad] = [fixed64(1, 2n ** 63n), len(3, Buffer.from([0xff]))];
  const records = [FULL, FULL, late, bad, FULL, FULL, late, late, FULL].map((record) => len(2, record));
  const other = len(1, len(1, len(1, member("service.name", text("other")))), len(2, len(2, FULL), len(2, FULL)));
  const body = Buffer.concat([
    len(1, RESOURCE, len(2, SCOPE, ...records), len(2, len(2, FULL))),
    other,
    len(1, len(2, len(2))),
  ]);
  const { cells } = scanLogs(body);
  const names = [...Array<string>(9).fill("shop"), "other", "other", undefined];
  expect(cells.map((row) => row["service_name"])).toEqual(names);
  const scopes = [...Array<string>(8).fill("1.2"), undefined, undefined, undefined, undefined];
  expect(cells.map((row) => row["scope_version"])).toEqual(scopes);
});

test("a small request cannot grow into a large extent", () => {
  const resource = len(1, len(1, member("a", text("x".repeat(1_000_000)))));
  const records = Buffer.concat(Array.from({ length: 300 }, () => len(2)));
  expect(() => scanLogs(len(1, resource, len(2, records)))).toThrow(/more than 256 MiB/);
});
