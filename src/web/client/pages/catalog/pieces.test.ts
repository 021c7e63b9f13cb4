import * as fc from "fast-check";
import { expect, test } from "vitest";
import { countLines, pieceAt, pieceKey, withoutLine, type Piece } from "./pieces.ts";

const encode = (text: string) => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

async function cut(text: string, size: number): Promise<Piece[]> {
  const file = new Blob([text]);
  const pieces: Piece[] = [];
  let [offset, lines] = [0, 0];
  for (;;) {
    const piece = await pieceAt(file, offset, lines, size);
    if (piece === undefined) return pieces;
    pieces.push(piece);
    offset = piece.end;
    lines += countLines(piece.bytes);
  }
}

const texts = fc.array(fc.constantFrom("\n", "a", "ü", "\r\n", '{"b":1}', "c".repeat(50)), { maxLength: 60 });

test("pieces are the file, cut at newlines", async () => {
  await fc.assert(
    fc.asyncProperty(texts, fc.integer({ min: 1, max: 40 }), async (parts, size) => {
      const text = parts.join("");
      const pieces = await cut(text, size);
      const inner = pieces.slice(0, -1).map(({ bytes }) => decode(bytes));
      expect(pieces.map(({ bytes }) => decode(bytes)).join("")).toBe(text);
      expect(inner.filter((piece) => !piece.endsWith("\n"))).toEqual([]);
      // One that is larger is larger for the sake of its first line.
      const large = inner.filter((piece) => encode(piece).length > size);
      expect(large.filter((piece) => encode(piece.slice(0, piece.indexOf("\n") + 1)).length <= size)).toEqual([]);
      expect(await cut(text, size)).toEqual(pieces);
    }),
  );
});

test("each piece knows its first line", async () => {
  const pieces = await cut("1\n2\n3\n4\n5", 4);
  expect(pieces.map(({ linesBefore }) => linesBefore)).toEqual([0, 2, 4]);
});

test("a file that became shorter is said", async () => {
  const file = { size: 100, slice: () => new Blob(["a\n"]) };
  await expect(pieceAt(file, 0, 0)).rejects.toThrow("has changed");
});

test("a line that is left out leaves its number", () => {
  expect(decode(withoutLine(encode("a\nb\nc\n"), 2))).toBe("a\n\nc\n");
  expect(decode(withoutLine(encode("a\nb"), 2))).toBe("a\n");
  expect(decode(withoutLine(encode("a"), 1))).toBe("");
  expect(decode(withoutLine(encode("a"), 9))).toBe("a");
});

test("keys are the same for the same, and others for anything else", () => {
  const file = { name: "ä b.ndjson", size: 10, lastModified: 5 };
  const piece = { offset: 0, bytes: encode("abc") };
  const key = pieceKey(file, piece);
  expect(key).toMatch(/^[!-~]{1,255}$/);
  expect(pieceKey({ ...file }, { ...piece, bytes: encode("abc") })).toBe(key);
  const others = [
    pieceKey({ ...file, name: "a" }, piece),
    pieceKey({ ...file, size: 11 }, piece),
    pieceKey({ ...file, lastModified: 6 }, piece),
    pieceKey(file, { ...piece, offset: 1 }),
    pieceKey(file, { ...piece, bytes: encode("abd") }),
  ];
  expect(new Set([key, ...others]).size).toBe(6);
  expect(pieceKey({ ...file, name: "x".repeat(10_000) }, piece).length).toBeLessThan(256);
});
