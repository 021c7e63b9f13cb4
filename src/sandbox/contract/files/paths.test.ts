import { isUtf8 } from "node:buffer";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { matchesEtag, matchesWeakly, parseEtags } from "../../../core/etags.ts";
import { bytesOfPath, bytesOfText, percentDecodedPath, percentEncodedPath, shownPath, textOfBytes } from "./paths.ts";

const anyBytes = fc
  .array(fc.oneof(fc.integer({ min: 0, max: 255 }), fc.constantFrom(0x2f, 0x25, 0xed, 0xb2, 0x80, 0xf0, 0x9f)))
  .map((bytes) => Buffer.from(bytes));

describe("paths as text", () => {
  test("any bytes come back, also through JSON and through URLs", () => {
    fc.assert(
      fc.property(anyBytes, (bytes) => {
        const text = textOfBytes(bytes);
        expect(bytesOfText(text).equals(bytes)).toBe(true);
        expect(bytesOfText(JSON.parse(JSON.stringify(text)) as string).equals(bytes)).toBe(true);
        const encoded = percentEncodedPath(text);
        expect(encoded).toMatch(/^[\x21-\x7e]*$/);
        expect(percentDecodedPath(encoded)).toBe(text);
        expect(text.isWellFormed()).toBe(isUtf8(bytes));
        expect(shownPath(text).isWellFormed()).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  test("text that is one stays as it is", () => {
    for (const text of ["/a b", "/ü😀💀", "/\u{10dc80}", "/\ufffd"]) {
      expect(textOfBytes(Buffer.from(text))).toBe(text);
      expect(bytesOfPath(text).toString()).toBe(text);
    }
    // CESU-8, which is not UTF-8.
    expect(textOfBytes(Buffer.from([0xed, 0xb2, 0x80]))).toBe("\udced\udcb2\udc80");
  });

  test.each(["", "a", "/a\0", "/\ud800", "/\udc00", `/${"n".repeat(4_095)}`])("%j is no path", (path) => {
    expect(() => bytesOfPath(path)).toThrow(expect.objectContaining({ code: "invalid_parameter" }));
  });

  test.each(["%", "a%2", "%zz", "a%"])("%s is no percent-encoding", (encoded) => {
    expect(percentDecodedPath(encoded)).toBe(undefined);
  });
});

describe("entity tags", () => {
  test.each([
    ["*", "*"],
    [' "a" , W/"b","c,d" ', ['"a"', '"c,d"']],
    ['W/"b"', []],
  ])("%s", (header, tags) => expect(parseEtags(header)).toEqual(tags));

  test.each(["", "a", '"a', '"a" "b"', '*, "a"'])("%j is no list", (header) => {
    expect(() => parseEtags(header)).toThrow(expect.objectContaining({ code: "invalid_header" }));
  });

  test("match strongly", () => {
    expect(matchesEtag('"a", "b"', '"b"')).toBe(true);
    expect(matchesEtag('W/"b"', '"b"')).toBe(false);
    expect(matchesEtag("*", '"b"')).toBe(true);
  });

  test("match weakly, where bytes may differ", () => {
    expect(matchesWeakly('"a", W/"b"', 'W/"b"')).toBe(true);
    expect(matchesWeakly('"b"', 'W/"b"')).toBe(true);
    expect(matchesWeakly('W/"c"', 'W/"b"')).toBe(false);
    expect(() => matchesWeakly("b", 'W/"b"')).toThrow(expect.objectContaining({ code: "invalid_header" }));
  });
});
