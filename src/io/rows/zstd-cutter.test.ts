import { constants, zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { array, assert, integer, property, uint8Array } from "fast-check";
import { describe, expect, test } from "vitest";
import { ZstdCutter } from "./zstd-cutter.ts";

/** A frame that decoders skip (RFC 8878 §3.1.2). */
function skippable(bytes: number): Buffer {
  const header = Buffer.alloc(8);
  header.writeUInt32LE(0x184d2a53, 0);
  header.writeUInt32LE(bytes, 4);
  return Buffer.concat([header, Buffer.alloc(bytes, 7)]);
}

function inPieces(data: Buffer, sizes: readonly number[]): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0, i = 0; at < data.length; i++) {
    const size = sizes[i % sizes.length] ?? 1;
    pieces.push(data.subarray(at, at + size));
    at += size;
  }
  return pieces;
}

/** The frames that come out, each whole, and whether the data may end there. */
function cut(pieces: readonly Buffer[]): { frames: Buffer[]; isWhole: boolean } {
  const cutter = new ZstdCutter();
  const frames: Buffer[] = [];
  let parts: Uint8Array[] = [];
  for (const piece of pieces) {
    for (const { bytes, endsFrame } of cutter.cut(piece)) {
      parts.push(bytes);
      if (!endsFrame) continue;
      frames.push(Buffer.concat(parts));
      parts = [];
    }
  }
  return { frames, isWhole: cutter.isBetweenFrames };
}

const sizes = array(integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 4 });

test("frames come out whole, however the data arrives, and skippable ones not at all", () => {
  assert(
    property(array(uint8Array({ maxLength: 300 }), { minLength: 1, maxLength: 4 }), sizes, (texts, pieces) => {
      const data = texts.flatMap((text, i) => [
        skippable(i * 3),
        zstdCompressSync(text, { params: { [constants.ZSTD_c_checksumFlag]: i % 2 } }),
      ]);
      const { frames, isWhole } = cut(inPieces(Buffer.concat(data), pieces));
      expect(isWhole).toBe(true);
      expect(frames.map((frame) => zstdDecompressSync(frame).toString("hex"))).toEqual(
        texts.map((text) => Buffer.from(text).toString("hex")),
      );
    }),
    { numRuns: 60 },
  );
});

test("large blocks, blocks of one repeated byte and empty frames", () => {
  const texts = [
    Buffer.alloc(600_000, "a"),
    Buffer.alloc(0),
    Buffer.from(Array.from({ length: 300_000 }, (_, i) => i)),
  ];
  const data = Buffer.concat(texts.map((text) => zstdCompressSync(text)));
  const { frames } = cut(inPieces(data, [1_000]));
  expect(
    frames.map((frame) => zstdDecompressSync(frame).equals(texts[frames.indexOf(frame)] ?? Buffer.alloc(1))),
  ).toEqual([true, true, true]);
});

describe("data that ends in the middle", () => {
  const data = Buffer.concat([zstdCompressSync("one"), skippable(4), zstdCompressSync("two")]);
  const ends = new Set([zstdCompressSync("one").length, zstdCompressSync("one").length + 12, data.length, 0]);
  test("is told at every byte", () => {
    for (let length = 0; length <= data.length; length++) {
      expect([length, cut([data.subarray(0, length)]).isWhole]).toEqual([length, ends.has(length)]);
    }
  });
});

test("garbage behind a frame is refused", () => {
  expect(() => cut([zstdCompressSync("one"), Buffer.from("garbage")])).toThrow("something else follows a frame");
});
