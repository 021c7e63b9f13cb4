import { describe, expect, test } from "vitest";
import { EngineError } from "../../core/errors.ts";
import { drawnRandom } from "../../core/drawn-seed.test-kit.ts";
import { RequestMaker } from "./generate.test-kit.ts";
import { estimateJsonRecords, estimateRecords } from "./estimate.ts";
import { logsJsonToWire, MalformedJson } from "./json-form.ts";
import { ColumnSet } from "../columns/column-set.ts";
import { ARRIVED_NS, scanLogs } from "./scan.test-kit.ts";
import { logsJsonScanner, logsScanner } from "./scanner.ts";
import { OTLP_LOGS_SHAPE } from "./shape.ts";
import { fixed64, int, len, list, member, nested, object, request, tag, text, varint } from "./wire.test-kit.ts";

/** Bytes that are made to break the reader: it refuses them, or stores what they say, in little time and memory. */

/** What refuses the bytes; undefined when they are taken. */
function refusalOf(bytes: Uint8Array, form: "protobuf" | "json" = "protobuf"): string | undefined {
  try {
    const scanner = form === "json" ? logsJsonScanner : logsScanner;
    scanner.scan({ bytes, evolve: true, arrivedAtNs: ARRIVED_NS }, new ColumnSet(OTLP_LOGS_SHAPE));
    return undefined;
  } catch (error) {
    if (error instanceof EngineError) return error.code;
    throw error;
  }
}

/** How many rows a request has; they are not looked at. */
function rowsOf(bytes: Uint8Array): number {
  return logsScanner.scan({ bytes, evolve: true, arrivedAtNs: ARRIVED_NS }, new ColumnSet(OTLP_LOGS_SHAPE)).rows;
}

function repeated(count: number, piece: Buffer): Buffer {
  return Buffer.alloc(count * piece.length, piece);
}

describe("protobuf", () => {
  test.each<[string, Buffer]>([
    ["a tag that is cut off", Buffer.from([0x8a])],
    ["a field without a number", Buffer.from([0x02, 0x00])],
    ["a tag of more than five bytes", Buffer.from([0x8a, 0x80, 0x80, 0x80, 0x80, 0x00, 0x00])],
    ["a number of eleven bytes", Buffer.concat([tag(9, 0), Buffer.alloc(10, 0xff), Buffer.from([1])])],
    ["a number that is cut off", Buffer.from([0x48, 0xff])],
    ["64 bits that are cut off", Buffer.from([0x49, 1, 2, 3])],
    ["32 bits that are cut off", Buffer.from([0x4d, 1, 2, 3])],
    ["a length past the end", Buffer.from([0x0a, 0x05, 0x00])],
    ["a length of 2^32", Buffer.concat([tag(1, 2), varint(2n ** 32n)])],
    ["a length of 2^63", Buffer.concat([tag(1, 2), varint(2n ** 63n)])],
    ["wire type 6", Buffer.from([0x0e])],
    ["wire type 7", Buffer.from([0x0f])],
    ["the end of a group that did not begin", Buffer.from([0x0c])],
    ["a group that does not end", Buffer.from([0x0b])],
    ["a group that ends another", Buffer.concat([tag(9, 3), tag(10, 4)])],
    ["groups in groups, without an end", repeated(250_000, tag(9, 3))],
    ["groups nested too deep", Buffer.concat([repeated(200, tag(9, 3)), repeated(200, tag(9, 4))])],
  ])("%s is refused, wherever it is", (_name, bytes) => {
    expect(refusalOf(bytes)).toBe("bad_request_body");
    const places = [
      len(1, bytes),
      len(1, len(1, bytes)),
      len(1, len(1, len(1, bytes))),
      len(1, len(2, bytes)),
      len(1, len(2, len(1, bytes))),
      request(bytes),
      request(len(5, bytes)),
      request(len(5, list(bytes))),
      request(len(6, bytes)),
      request(len(6, member("k", bytes))),
      request(len(6, member("k", object(bytes)))),
      // Also where the value is given up for another, or its record for something else.
      request(Buffer.concat([len(6, member("k", bytes)), len(6, member("k"))])),
      request(len(5, Buffer.concat([list(bytes), int(3, 1)]))),
      request(Buffer.concat([len(3, Buffer.from([0xff])), len(6, member("k", list(bytes)))])),
      request(Buffer.concat([len(5, list(text("a")), list(bytes))])),
    ];
    for (const place of places) expect(refusalOf(place)).toBe("bad_request_body");
  });

  test("random bytes, and requests with damage, never do anything but what a request may", () => {
    const random = drawnRandom();
    const maker = new RequestMaker(random);
    for (let i = 0; i < 3_000; i++) {
      const isRandom = i % 4 === 0;
      const bytes = isRandom
        ? Buffer.from(random.fill(new Uint8Array(Math.floor(random.next() * 300))))
        : maker.damaged(maker.damaged(maker.request()));
      const refusal = refusalOf(bytes);
      expect([undefined, "bad_request_body"]).toContain(refusal);
      expect(estimateRecords(bytes)).toBeGreaterThan(0);
    }
  });

  test("a group as large as a body does not hold up who estimates its records", () => {
    const group = Buffer.concat([tag(9, 3), repeated(8_000_000, int(9, 1)), tag(9, 4)]);
    const records = len(1, len(2, repeated(100, len(2))));
    const startedMs = performance.now();
    for (let i = 0; i < 50; i++) expect(estimateRecords(Buffer.concat([records, group]))).toBeGreaterThanOrEqual(100);
    expect(estimateRecords(len(1, group))).toBe(1);
    // Reading one of them to its end takes a tenth of a second and more.
    expect(performance.now() - startedMs).toBeLessThan(4_000);
    expect(rowsOf(Buffer.concat([records, group]))).toBe(100);
  });

  test("bombs are over soon", () => {
    const distinct = Array.from({ length: 50_000 }, (_, i) => len(6, member(`k${i}`)));
    const bombs: [string, Buffer, number][] = [
      ["a quarter of a million records of two bytes", len(1, len(2, repeated(250_000, len(2)))), 250_000],
      ["half a million unknown fields", len(1, repeated(500_000, int(99, 1))), 0],
      ["50,000 attributes", request(Buffer.concat(distinct)), 1],
      ["one key a quarter of a million times", request(repeated(250_000, len(6, member("k", int(3, 1))))), 1],
      ["a body in a quarter of a million parts", request(repeated(250_000, len(5, list(int(3, 1))))), 1],
      [
        "a resource in a quarter of a million parts",
        len(1, repeated(250_000, len(1, len(1, member("a")))), len(2, len(2))),
        1,
      ],
      ["lists half a quarter of a million deep", request(len(5, nested(200_000))), 0],
      ["lists that go on at every level", request(len(5, twice(300))), 1],
      ["a quarter of a million empty elements", request(len(5, len(5, repeated(250_000, len(1))))), 1],
      ["control characters", request(len(6, member("k", text("\u0001".repeat(4_000_000))))), 1],
    ];
    for (const [name, bytes, rows] of bombs) {
      const startedMs = performance.now();
      expect([name, rowsOf(bytes)]).toEqual([name, rows]);
      expect([name, performance.now() - startedMs < 15_000]).toEqual([name, true]);
    }
  });

  test("values may be nested as deep as rows may, in lists and in objects, and in parts", () => {
    let value = text("x");
    for (let i = 0; i < 995; i++) value = object(member("k", value));
    expect(scanLogs(request(len(5, value))).rows).toBe(1);
    expect(scanLogs(request(len(6, member("k", value)))).rows).toBe(1);
    expect(scanLogs(request(len(5, twice(990)))).rows).toBe(1);
    expect(scanLogs(request(Buffer.concat([len(5, value), fixed64(1, 1n), len(5, value)]))).rows).toBe(1);
  });
});

/** Lists in lists, each in two parts that are one. */
function twice(depth: number): Buffer {
  let value = text("x");
  for (let i = 0; i < depth; i++) value = Buffer.concat([list(int(3, i)), list(value)]);
  return value;
}

describe("JSON", () => {
  const RECORDS =
    '{"timeUnixNano":"1767323045000000001","observedTimeUnixNano":5,"severityNumber":9,"severityText":"A\\u00fc\\n",' +
    '"body":{"kvlistValue":{"values":[{"key":"a","value":{"arrayValue":{"values":[{"intValue":"-9223372036854775808"},' +
    '{"doubleValue":"NaN"},{"doubleValue":1.5},{"boolValue":true},{"bytesValue":"AP-_"},{}]}}},{"key":"b"}]}},' +
    '"attributes":[{"key":"k","value":{"stringValue":"\\ud83e\\udd89"}}],"droppedAttributesCount":2,"flags":1,' +
    '"traceId":"00FF","spanId":"0a","eventName":"e"},{"unknown":[1,{"a":[null,true,"x\\u0000"]}],"body":null}';
  const REQUEST =
    '{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"s"}}]},' +
    `"scopeLogs":[{"scope":{"name":"n","version":"v"},"logRecords":[${RECORDS}],"schemaUrl":"u"}]}]}`;
  const encode = (json: string) => Buffer.from(json);

  test("is what the same request in protobuf is", () => {
    const first = Buffer.concat([
      fixed64(1, 1_767_323_045_000_000_001n),
      fixed64(11, 5n),
      int(2, 9),
      len(3, "Aü\n"),
      len(
        5,
        object(
          member(
            "a",
            list(
              int(3, -(2n ** 63n)),
              Buffer.concat([tag(4, 1), Buffer.from("000000000000f87f", "hex")]),
              Buffer.concat([tag(4, 1), Buffer.from("000000000000f83f", "hex")]),
              int(2, 1),
              len(7, Buffer.from([0, 0xff, 0xbf])),
              Buffer.alloc(0),
            ),
          ),
          member("b"),
        ),
      ),
      len(6, member("k", text("🦉"))),
      int(7, 2),
      Buffer.concat([tag(8, 5), Buffer.from([1, 0, 0, 0])]),
      len(9, Buffer.from([0, 255])),
      len(10, Buffer.from([10])),
      len(12, "e"),
    ]);
    const resource = len(1, len(1, member("service.name", text("s"))));
    const same = len(1, resource, len(2, len(1, len(1, "n"), len(2, "v")), len(2, first), len(2), len(3, "u")));
    const { cells } = scanLogs(encode(REQUEST), { form: "json" });
    expect(cells).toEqual(scanLogs(same).cells);
    expect(cells[0]?.["body"]).toBe('{"a":[-9223372036854775808,"NaN",1.5,true,"AP+/",null],"b":null}');
    expect(estimateJsonRecords(encode(REQUEST))).toBe(1);
  });

  test("may have white space wherever JSON may", () => {
    const spaced = JSON.stringify(JSON.parse(REQUEST), undefined, "\t \r\n");
    expect(scanLogs(encode(`\n${spaced}\n`), { form: "json" }).cells).toEqual(
      scanLogs(encode(REQUEST), { form: "json" }).cells,
    );
  });

  const record = (members: string) => `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{${members}}]}]}]}`;

  test.each([
    ["", "nothing"],
    ["[]", "an array"],
    ["null", "null"],
    ["{} {}", "two of them"],
    ["{", "one that is cut off"],
    ["{,}", "a comma alone"],
    ['{"resourceLogs":[]', "an array in one that is cut off"],
    ['{"resourceLogs":{}}', "an object for an array"],
    ['{"resourceLogs":[null]}', "null in an array"],
    ['{"resourceLogs":[{}],"resourceLogs":[{}]}', "a member that comes twice"],
    ['{"resourceLogs":[{},]}', "a comma at the end"],
    ['{"a":tru}', "a literal that is none"],
    ['{"a":01}', "a number that is none"],
    ['{"a":"\\x"}', "an escape that is none"],
    ['{"a":"\\ud800"}', "half of a surrogate pair"],
    ['{"a":"b', "a string that does not end"],
    ['{"a":"\n"}', "a line feed in a string"],
    ['{"a":[}}', "brackets that do not match"],
    ['{"a":[1 2]}', "no comma"],
    ['{"a" 1}', "no colon"],
    [record('"traceId":"0"'), "an id of an odd length"],
    [record('"traceId":"zz"'), "an id that is no hex"],
    [record('"traceId":5'), "an id that is a number"],
    [record('"timeUnixNano":-1'), "a time before 1970"],
    [record('"timeUnixNano":"18446744073709551616"'), "a time beyond 64 bits"],
    [record('"timeUnixNano":1.5'), "a time with a fraction"],
    [record('"timeUnixNano":1e999999999'), "a time with a huge power"],
    [record('"timeUnixNano":""'), "an empty time"],
    [record('"timeUnixNano":true'), "a time that is true"],
    [record('"severityNumber":"INFO"'), "the name of an enum"],
    [record('"severityNumber":2147483648'), "an enum beyond 32 bits"],
    [record('"severityText":5'), "a number for a string"],
    [record('"flags":4294967296'), "flags beyond 32 bits"],
    [record('"body":"x"'), "text for a value"],
    [record('"body":{"stringValue":"x","intValue":1}'), "a value of two kinds"],
    [record('"body":{"boolValue":"true"}'), "true in quotes"],
    [record('"body":{"doubleValue":1e999}'), "a number too large for a double"],
    [record('"body":{"bytesValue":"a"}'), "bytes that are no base64"],
    [record('"body":{"bytesValue":"a+-_"}'), "bytes of two alphabets"],
    [record('"attributes":[1]'), "a number for an attribute"],
  ])("%s is refused: %s", (json) => {
    expect(refusalOf(encode(json), "json")).toBe("bad_request_body");
  });

  test("integers may be written as any number that is one", () => {
    const timeOf = (token: string) =>
      scanLogs(encode(record(`"timeUnixNano":${token}`)), { form: "json" }).cells[0]?.["at"];
    expect(timeOf("1767323045000000001")).toBe(1_767_323_045_000_000_001n);
    expect(timeOf('"1767323045000000001"')).toBe(1_767_323_045_000_000_001n);
    expect(timeOf("1.7e18")).toBe(1_700_000_000_000_000_000n);
    expect(timeOf("1700000000000000000.00")).toBe(1_700_000_000_000_000_000n);
  });

  test("is never taken where JSON.parse refuses it", () => {
    const random = drawnRandom();
    const below = (count: number) => Math.floor(random.next() * count);
    const alphabet = [
      '"',
      "{",
      "}",
      "[",
      "]",
      ",",
      ":",
      "\\",
      "0",
      "1",
      "e",
      "-",
      ".",
      "t",
      "n",
      " ",
      "\n",
      "\u00fc",
      "\u0000",
    ];
    let taken = 0;
    for (let i = 0; i < 3_000; i++) {
      const characters = REQUEST.split("");
      for (let n = below(3); n >= 0; n--)
        characters.splice(
          below(characters.length),
          below(3),
          ...(random.next() < 0.7 ? [alphabet[below(alphabet.length)] ?? ""] : []),
        );
      const json = characters.join("");
      let isTaken = true;
      try {
        logsJsonToWire(encode(json));
      } catch (error) {
        if (!(error instanceof MalformedJson)) throw error;
        isTaken = false;
      }
      if (!isTaken) continue;
      taken++;
      expect(() => JSON.parse(json) as unknown).not.toThrow();
      expect([undefined, "bad_request_body"]).toContain(refusalOf(encode(json), "json"));
    }
    expect(taken).toBeGreaterThan(100);
  });

  test("may be nested as deep as its size allows, and is over soon", () => {
    const unknown = `{"a":${"[".repeat(500_000)}${"]".repeat(500_000)}}`;
    expect(refusalOf(encode(unknown), "json")).toBeUndefined();
    expect(refusalOf(encode('{"a":'.repeat(250_000)), "json")).toBe("bad_request_body");
    const deep = `${'{"arrayValue":{"values":['.repeat(100_000)}${"]}}".repeat(100_000)}`;
    expect(scanLogs(encode(record(`"body":${deep}`)), { form: "json" }).rejected).toMatchObject({ rows: 1 });
    expect(refusalOf(Buffer.from([0x7b, 0xff, 0x7d]), "json")).toBe("bad_request_body");
  });
});
