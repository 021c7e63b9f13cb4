import { isDeepStrictEqual } from "node:util";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { EngineError } from "../../core/errors.ts";
import { TicketSchema } from "./flight-proto.test-kit.ts";
import { readTicket } from "./ticket.ts";

function messageOf(ticket: string | Uint8Array): Uint8Array {
  return toBinary(TicketSchema, create(TicketSchema, { ticket: Buffer.from(ticket) }));
}

function refusal(message: Uint8Array): EngineError {
  try {
    readTicket(message);
  } catch (error) {
    if (error instanceof EngineError) return error;
    throw error;
  }
  throw new Error("the ticket was accepted");
}

describe("a ticket", () => {
  test("has a query, and defaults for the rest", () => {
    expect(readTicket(messageOf('{"query":"SELECT 1"}'))).toEqual({
      database: "default",
      query: "SELECT 1",
      language: "sql",
    });
    const whole = '{ "language": "sql", "database": "Ünïcode", "query": "SELECT \'ü\'" }';
    expect(readTicket(messageOf(whole))).toEqual({ database: "Ünïcode", query: "SELECT 'ü'", language: "sql" });
    expect(readTicket(messageOf('{"query":"T","language":"kql"}'))).toMatchObject({ query: "T", language: "kql" });
  });

  test.each([
    ["", /not JSON/],
    ["null", /not a JSON object/],
    ["[]", /not a JSON object/],
    ['"SELECT 1"', /not a JSON object/],
    ["SELECT 1", /not JSON/],
    ["{", /not JSON/],
    ["{}", /must have a text "query"/],
    ['{"query":null}', /must have a text "query"/],
    ['{"query":["SELECT 1"]}', /must have a text "query"/],
    ['{"query":"SELECT 1","database":null}', /database must be a text/],
    ['{"query":"SELECT 1","database":{"name":"x"}}', /database must be a text/],
    ['{"query":"SELECT 1","language":null}', /language must be a text/],
    ['{"query":"SELECT 1","language":"gql"}', /no query language "gql"/],
    ['{"query":"SELECT 1","language":"SQL"}', /no query language "SQL"/],
    ['{"query":"SELECT 1","limit":5}', /no member "limit"/],
    ['{"query":"SELECT 1","Query":"SELECT 2"}', /no member "Query"/],
    ['{"query":"SELECT 1","__proto__":{"database":"x"}}', /no member "__proto__"/],
    ['{"query":"SELECT 1","constructor":1}', /no member "constructor"/],
    ['{"query":"SELECT 1"} {"query":"SELECT 2"}', /not JSON/],
    ["\ufeff{}", /not JSON/],
    [`{"query":"SELECT 1","${"x".repeat(10_000)}":1}`, /no member "x{100}…"/],
    ["[".repeat(1_000_000), /not JSON/],
    [`{"query":${'{"a":'.repeat(500_000)}`, /not JSON/],
  ])("%.60s is refused", (ticket, why) => {
    const error = refusal(messageOf(ticket));
    expect([error.code, error.message]).toEqual(["bad_request_body", expect.stringMatching(why)]);
    expect(error.message.length).toBeLessThan(300);
  });

  test("without text in its query is a query that does not parse", () => {
    expect(refusal(messageOf('{"query":" \\n"}')).code).toBe("parse_error");
  });

  test("that is not UTF-8, or not the message, is refused", () => {
    expect(refusal(messageOf(Buffer.from([0x7b, 0xff, 0x7d]))).message).toMatch(/UTF-8/);
    const malformed = [
      [0x0a],
      [0x0a, 5, 1],
      [0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f],
      [0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
      Array.from({ length: 11 }, () => 0xff),
      [0x00, 0x00],
      [0x0b, 0x0c],
      [0x0e],
      [0x09, 1, 2],
      [0x0d, 1],
      // Field 1 as a number, beside one that is right.
      [...messageOf('{"query":"SELECT 1"}'), 0x08, 0x80, 7],
    ];
    for (const bytes of malformed) expect(refusal(Buffer.from(bytes)).message).toMatch(/protobuf message Ticket/);
  });

  test("may come with fields that nobody knows, and the last of several counts", () => {
    const known = messageOf('{"query":"SELECT 2"}');
    const others = Buffer.from([0x10, 0xff, 0x01, 0x19, 1, 2, 3, 4, 5, 6, 7, 8, 0x25, 1, 2, 3, 4, 0x2a, 2, 9, 9]);
    const message = Buffer.concat([messageOf('{"query":"SELECT 1"}'), others, known, others]);
    expect(readTicket(message).query).toBe("SELECT 2");
  });
});

describe("fuzz", () => {
  const json = fc.oneof(
    fc.json(),
    fc
      .record({ query: fc.string(), database: fc.string(), language: fc.constantFrom("sql", "kql", "KQL") })
      .map((it) => JSON.stringify(it)),
    fc
      .dictionary(fc.constantFrom("query", "database", "language", "other"), fc.jsonValue())
      .map((it) => JSON.stringify(it)),
  );

  /** What becomes of a ticket: its parts, or the code of the refusal. */
  const outcome = (message: Uint8Array): unknown => {
    try {
      return readTicket(message);
    } catch (error) {
      return (error as EngineError).code;
    }
  };

  /** What should, by the rules put otherwise. */
  const expected = (text: string): unknown => {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      return "bad_request_body";
    }
    if (typeof value !== "object" || value === null || Array.isArray(value)) return "bad_request_body";
    const { query, database = "default", language = "sql", ...others } = value as Record<string, unknown>;
    const isKnown = language === "sql" || language === "kql";
    const isGood = typeof database === "string" && isKnown && Object.keys(others).length === 0;
    if (!isGood || typeof query !== "string") return "bad_request_body";
    return query.trim() === "" ? "parse_error" : { query, database, language };
  };

  test("any JSON is read as it stands, or refused", () => {
    const check = fc.property(json, (text) => isDeepStrictEqual(outcome(messageOf(text)), expected(text)));
    fc.assert(check, { numRuns: 2_000 });
  });

  test("any bytes are read as the protobuf library reads them, or refused", () => {
    const good = Buffer.concat([messageOf('{"query":"SELECT 1"}'), Buffer.from([0x12, 1, 7])]);
    const changes = fc.array(fc.tuple(fc.nat(good.byteLength - 1), fc.nat(255)), { maxLength: 4 });
    const mutated = changes.map((all) => {
      const bytes = Buffer.from(good);
      for (const [at, byte] of all) bytes[at] = byte;
      return bytes;
    });
    const refusals = new Set(["bad_request_body", "parse_error"]);
    const isRight = (bytes: Uint8Array): boolean => {
      const found = outcome(bytes);
      if (typeof found === "string") return refusals.has(found);
      const { ticket } = fromBinary(TicketSchema, bytes) as unknown as { ticket: Uint8Array };
      return isDeepStrictEqual(found, expected(Buffer.from(ticket).toString()));
    };
    fc.assert(fc.property(fc.oneof(fc.uint8Array({ maxLength: 64 }), mutated), isRight), { numRuns: 20_000 });
  });
});
