import { tableFromIPC } from "@uwdata/flechette";
import * as fc from "fast-check";
import { tableFromArrays, tableToIPC } from "apache-arrow";
import { describe, expect, test } from "vitest";
import { ApiError, errorOf } from "./api-error.ts";
import { readArrowMessages } from "./arrow-messages.ts";
import { newId } from "./clock.ts";
import { formatBytes, formatDuration, formatShortCount, plural } from "./format.ts";
import { bestMatches, scoreOf } from "./matching.ts";
import { readNdjson } from "./ndjson.ts";
import { packText, unpackText } from "./packed-text.ts";
import { choice, flag, json, readParams, text, writeParams } from "./params.ts";

/** A body that arrives in pieces of that many bytes. */
function inPieces(bytes: Uint8Array, size: number): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.slice(at, at + size));
      at += size;
    },
  });
}

async function all<T>(values: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const value of values) found.push(value);
  return found;
}

describe("state in the address", () => {
  const PARAMS = {
    q: text(),
    look: choice(["lines", "bars"], "lines"),
    on: flag(),
    range: json(
      { from: 0 },
      (value): value is { from: number } => typeof (value as { from?: unknown })?.from === "number",
    ),
  };

  test("what is written is read back, and what is the default is not written", () => {
    const values = fc.record({
      q: fc.string({ unit: "grapheme" }),
      look: fc.constantFrom("lines" as const, "bars" as const),
      on: fc.boolean(),
      range: fc.record({ from: fc.integer() }),
    });
    fc.assert(
      fc.property(values, (given) => {
        const written = writeParams(PARAMS, new URLSearchParams("other=1"), given);
        expect(readParams(PARAMS, new URLSearchParams(written.toString()))).toEqual(given);
        expect(written.get("other")).toBe("1");
        expect(written.has("look")).toBe(given.look !== "lines");
      }),
    );
  });

  test("what an address brings and nobody has written is the default", () => {
    const search = new URLSearchParams("look=circles&on=maybe&range=[]&q");
    expect(readParams(PARAMS, search)).toEqual({ q: "", look: "lines", on: false, range: { from: 0 } });
    fc.assert(
      fc.property(fc.webQueryParameters(), (query) => {
        const { look, range } = readParams(PARAMS, new URLSearchParams(query));
        expect(["lines", "bars"]).toContain(look);
        expect(typeof range.from).toBe("number");
      }),
    );
  });

  test("a change to the default takes the parameter away", () => {
    expect(writeParams(PARAMS, new URLSearchParams("on=1&look=bars"), { on: false }).toString()).toBe("look=bars");
    expect(writeParams(PARAMS, new URLSearchParams("on=1"), {}).toString()).toBe("on=1");
  });

  test("long texts come back from the fragment, and are shorter there", async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: "binary", maxLength: 5_000 }), async (given) => {
        const packed = await packText(given);
        expect(packed).toMatch(/^[\w-]*$/);
        expect(await unpackText(packed)).toBe(given.toWellFormed());
      }),
    );
    const long = "SELECT level, count(*) FROM events WHERE level = 'error'\n".repeat(2_000);
    const packed = await packText(long);
    expect(packed.length).toBeLessThan(2_000);
    expect(await unpackText(packed)).toBe(long);
  });

  test("what is no such text, or was cut, is none", async () => {
    const packed = await packText("SELECT 1 FROM a WHERE b = 'c'");
    for (const wrong of ["%%%", "AAAA", packed.slice(0, 12), "é", `${packed}!`]) {
      expect(await unpackText(wrong)).toBeUndefined();
    }
    // Eight million characters that are one, a thousand times smaller.
    expect(await unpackText(await packText("a".repeat(8_000_001)))).toBeUndefined();
  });
});

describe("errors of the server", () => {
  test("have their place, suggestion, request id and time to wait", async () => {
    const body = {
      error: { code: "parse_error", message: "no", request_id: "r", line: 2, column: 7, suggestion: "s", hint: "h" },
    };
    const error = await errorOf(Response.json(body, { status: 429, headers: { "Retry-After": "3" } }));
    expect(error).toBeInstanceOf(ApiError);
    expect([error.status, error.message, error.isTemporary]).toEqual([429, "no", true]);
    expect(error.details).toEqual({
      code: "parse_error",
      message: "no",
      requestId: "r",
      line: 2,
      column: 7,
      suggestion: "s",
      hint: "h",
      retryAfterMs: 3_000,
    });
  });

  test("of a budget are not temporary, whatever their status says", async () => {
    const error = await errorOf(Response.json({ error: { code: "budget_exceeded", message: "no" } }, { status: 429 }));
    expect([error.code, error.isTemporary]).toEqual(["budget_exceeded", false]);
  });

  test.each([
    ["<html>Bad gateway</html>", "the server answered with status 502"],
    ["", "the server answered with status 502"],
    ["upstream is down", "upstream is down"],
    ['{"detail":"x"}', '{"detail":"x"}'],
    ["x".repeat(1_000), `${"x".repeat(300)}…`],
  ])("of a proxy are told as they are: %s", async (body, message) => {
    const error = await errorOf(new Response(body, { status: 502, headers: { "X-Request-ID": "p" } }));
    expect([error.message, error.code, error.details.requestId, error.isTemporary]).toEqual([
      message,
      "http_502",
      "p",
      true,
    ]);
  });

  test.each([
    ["soon", undefined],
    ["-1", undefined],
    ["0", 0],
    ["1e9", 3_600_000],
  ])("Retry-After %s", async (header, waitMs) => {
    const error = await errorOf(new Response("", { status: 503, headers: { "Retry-After": header } }));
    expect(error.details.retryAfterMs).toBe(waitMs);
  });
});

describe("answers in pieces", () => {
  test("NDJSON is the same however it is cut", async () => {
    const rows = fc.array(fc.record({ a: fc.string({ unit: "grapheme" }), b: fc.integer() }), { maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(rows, fc.integer({ min: 1, max: 40 }), fc.boolean(), async (given, size, hasEnd) => {
        const lines = given.map((row) => JSON.stringify(row)).join("\n") + (hasEnd ? "\n" : "");
        const read = await all(readNdjson(inPieces(new TextEncoder().encode(lines), size)));
        expect(read.flat()).toEqual(given);
      }),
    );
  });

  test("NDJSON that was cut short is an error, after the rows that came", async () => {
    const read: unknown[] = [];
    const reading = (async () => {
      for await (const rows of readNdjson(inPieces(new TextEncoder().encode('{"a":1}\n{"a":'), 8))) read.push(...rows);
    })();
    await expect(reading).rejects.toThrow(SyntaxError);
    expect(read).toEqual([{ a: 1 }]);
  });

  const TABLE = tableFromArrays({
    id: BigInt64Array.from([1n, 2n, 9_007_199_254_740_993n]),
    name: ["a", "b", "ä"],
    size: Float64Array.from([0.5, 1, 2]),
  });
  const STREAM = tableToIPC(TABLE, "stream");

  test.each([1, 7, 64, 1_000_000])("Arrow is the same in pieces of %i bytes", async (size) => {
    const messages = await all(readArrowMessages(inPieces(STREAM, size)));
    expect(messages.map(({ kind }) => kind)).toEqual(["schema", "dictionary", "batch"]);
    const table = tableFromIPC(
      messages.map(({ bytes }) => bytes),
      { useBigInt: true },
    );
    expect(table.numRows).toBe(3);
    expect(table.getChild("name").toArray()).toEqual(["a", "b", "ä"]);
    expect(table.getChild("id").at(2)).toBe(9_007_199_254_740_993n);
  });

  test("Arrow that was cut short is an error, wherever", async () => {
    // Behind the last message there are 8 bytes that say so, which may be missing.
    for (let length = 1; length < STREAM.length - 8; length += 11) {
      const reading = all(readArrowMessages(inPieces(STREAM.slice(0, length), 50)));
      const rows = await reading.then(
        (messages) => messages.filter(({ kind }) => kind === "batch").length,
        () => "failed",
      );
      // Between two messages nothing tells that more was to come; the server tears the connection then.
      expect([0, "failed"]).toContain(rows);
    }
    await expect(all(readArrowMessages(inPieces(new TextEncoder().encode("not arrow at all"), 5)))).rejects.toThrow(
      "not an Arrow IPC stream",
    );
  });

  test("who stops reading ends the answer", async () => {
    let isCancelled = false;
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new TextEncoder().encode('{"a":1}\n')),
      cancel: () => void (isCancelled = true),
    });
    for await (const rows of readNdjson(endless)) {
      expect(rows).toEqual([{ a: 1 }]);
      break;
    }
    expect(isCancelled).toBe(true);
  });
});

describe("what is shown", () => {
  test.each([
    [0, "0 B"],
    [999, "999 B"],
    [1_000, "1.00 kB"],
    [12_345, "12.3 kB"],
    [172_000_000, "172 MB"],
    [9_007_199_254_740_991, "9.01 PB"],
  ])("%i bytes", (bytes, shown) => expect(formatBytes(bytes)).toBe(shown));

  test("counts and durations", () => {
    expect([9_999, 1_250_000].map(formatShortCount)).toEqual(["9,999", "1.3M"]);
    expect([0, 999, 1_234, 59_400, 125_000].map(formatDuration)).toEqual([
      "0 ms",
      "999 ms",
      "1.2 s",
      "59 s",
      "2 min 5 s",
    ]);
    expect([plural(1, "row"), plural(1_200, "row"), plural(0, "entry", "entries")]).toEqual([
      "1 row",
      "1,200 rows",
      "0 entries",
    ]);
  });

  test("what was typed finds titles by their letters, best first", () => {
    const items = ["Theme: dark", "Dashboards", "Show all keys", "Read the API reference"].map((title) => ({ title }));
    const found = (typed: string) => bestMatches(typed, items).map(({ title }) => title);
    expect(found("da")[0]).toBe("Dashboards");
    expect(found("dark")).toEqual(["Theme: dark"]);
    expect(found("api ref")).toEqual(["Read the API reference"]);
    expect(found("")).toHaveLength(4);
    expect(found("zzz")).toEqual([]);
    expect(scoreOf("keys", "Show all keys")).toBeGreaterThan(scoreOf("sal", "Show all keys") ?? 0);
  });

  test("ids are UUIDs of version 4, each another", () => {
    const ids = Array.from({ length: 1_000 }, newId);
    expect(new Set(ids).size).toBe(1_000);
    expect(ids.every((id) => /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/.test(id))).toBe(true);
  });
});
