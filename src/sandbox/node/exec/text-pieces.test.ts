import { isUtf8 } from "node:buffer";
import { array, assert, constantFrom, nat, oneof, property, string, tuple, uint8Array } from "fast-check";
import { describe, expect, it } from "vitest";
import { TextPieces, type TextPiece } from "./text-pieces.ts";

const bytesOf = ({ data, encoding }: TextPiece) => Buffer.from(data, encoding ?? "utf8");

function piecesOf(chunks: readonly Uint8Array[], at = 0): TextPiece[] {
  const pieces = new TextPieces(at);
  return [...chunks.flatMap((chunk) => pieces.push(chunk)), ...pieces.end()];
}

/** Text of all lengths of characters, or bytes that are mostly none. */
const content = oneof(
  string({ unit: "binary", maxLength: 400 }).map((text) => Buffer.from(text.toWellFormed())),
  uint8Array({ maxLength: 400 }).map((bytes) => Buffer.from(bytes)),
  array(constantFrom("a", "é", "€", "😀", "\ufeff", "\0"), { maxLength: 300 }).map((some) =>
    Buffer.from(some.join("")),
  ),
);
const chunked = tuple(content, array(nat(400), { maxLength: 40 })).map(([bytes, cuts]) => {
  const places = [0, ...cuts.map((cut) => Math.min(cut, bytes.length)), bytes.length].sort((a, b) => a - b);
  return { bytes, chunks: places.slice(1).map((end, i) => bytes.subarray(places[i], end)) };
});

describe("pieces of output", () => {
  it("hold every byte once and in order, and count them", () => {
    assert(
      property(chunked, nat(1_000), ({ bytes, chunks }, before) => {
        const pieces = piecesOf(chunks, before);
        expect(Buffer.concat(pieces.map(bytesOf))).toEqual(bytes);
        let at = before;
        for (const piece of pieces) expect(piece.at).toBe((at += bytesOf(piece).length));
      }),
      { numRuns: 500 },
    );
  });

  it("are text wherever the stream is, however it falls into parts", () => {
    assert(
      property(chunked, ({ bytes, chunks }) => {
        const pieces = piecesOf(chunks);
        const areText = pieces.every(({ encoding }) => encoding === undefined);
        expect(areText).toBe(isUtf8(bytes));
        // From any piece on, the rest is the rest: a client resumes there.
        for (const { at } of pieces) {
          const rest = piecesOf([bytes.subarray(at)], at);
          expect(Buffer.concat(rest.map(bytesOf))).toEqual(bytes.subarray(at));
        }
      }),
      { numRuns: 300 },
    );
  });

  it("keep a character together over many parts, and a text of many pieces", () => {
    const text = "😀".repeat(50_000);
    const bytes = Buffer.from(text);
    const byByte = piecesOf(Array.from(Buffer.from("é€😀"), (byte) => Uint8Array.of(byte)));
    expect(byByte.map(({ data }) => data)).toEqual(["é", "€", "😀"]);
    const pieces = piecesOf([bytes.subarray(0, 77_777), bytes.subarray(77_777)]);
    expect(pieces.map(({ data }) => data).join("")).toBe(text);
    expect(Math.max(...pieces.map((piece) => bytesOf(piece).length))).toBeLessThanOrEqual(32 * 1024);
  });

  it("give up what waits when the rest is missing or does not come", () => {
    const pieces = new TextPieces();
    expect(pieces.push(Buffer.from([0x61, 0xe2, 0x82]))).toEqual([{ data: "a", at: 1 }]);
    expect(pieces.skip(10)).toEqual([{ data: "4oI=", encoding: "base64", at: 3 }]);
    expect(pieces.push(Buffer.from("b"))).toEqual([{ data: "b", at: 14 }]);
    expect(pieces.push(Buffer.from([0xf0]))).toEqual([]);
    expect(pieces.end()).toEqual([{ data: "8A==", encoding: "base64", at: 15 }]);
  });
});
