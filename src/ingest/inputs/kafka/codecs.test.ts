import { gzipSync, zstdCompressSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { drawnRandom } from "../../../core/drawn-seed.test-kit.ts";
import { type Random } from "../../../core/random.ts";
import { decompress } from "./decompress.ts";

/** Codecs against encoders of their own, and against damage. What Java writes is in `test/kafka/topics.soak.test.ts`. */

const MOST = 1 << 20;
const SNAPPY = 2;
const LZ4 = 3;

type Step = { literal: Buffer; distance: number; size: number };

const pick = (random: Random, below: number): number => Math.floor(random.next() * below);

/** What any compressor may write: literals, and copies of what came before, some of which overlap themselves. */
function stepsOf(random: Random, count: number): { steps: Step[]; plain: Buffer } {
  let plain = Buffer.alloc(0);
  const steps = Array.from({ length: count }, (): Step => {
    const literal = Buffer.from(
      Array.from({ length: 1 + pick(random, random.next() < 0.1 ? 400 : 20) }, () => pick(random, 256)),
    );
    plain = Buffer.concat([plain, literal]);
    const distance = 1 + pick(random, Math.min(plain.length, 60_000));
    const size = 4 + pick(random, random.next() < 0.1 ? 700 : 40);
    const copied = Buffer.alloc(size);
    for (let i = 0; i < size; i++)
      copied[i] = (i < distance ? plain[plain.length - distance + i] : copied[i - distance]) ?? 0;
    plain = Buffer.concat([plain, copied]);
    return { literal, distance, size };
  });
  return { steps, plain };
}

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value & 127) | 128, ...varint(value >> 7)];
}

function snappyOf({ steps, plain }: ReturnType<typeof stepsOf>): Buffer {
  const out = varint(plain.length);
  for (const { literal, distance, size } of steps) {
    const length = literal.length - 1;
    if (length < 60) out.push(length << 2);
    else if (length < 256) out.push(60 << 2, length);
    else out.push(61 << 2, length & 255, length >> 8);
    out.push(...literal);
    for (let left = size; left > 0;) {
      const part = Math.min(left, 64);
      const isShort = part >= 4 && part <= 11 && distance < 2_048;
      if (isShort) out.push(((distance >> 8) << 5) | ((part - 4) << 2) | 1, distance & 255);
      else out.push(((part - 1) << 2) | 2, distance & 255, distance >> 8);
      left -= part;
    }
  }
  return Buffer.from(out);
}

function xerialOf(blocks: readonly Buffer[]): Buffer {
  const header = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0, 0, 0, 0, 1, 0, 0, 0, 1]);
  const framed = blocks.flatMap((block) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(block.length);
    return [length, block];
  });
  return Buffer.concat([header, ...framed]);
}

function lz4Length(value: number): number[] {
  if (value < 15) return [];
  const rest = value - 15;
  return [...Array.from({ length: Math.floor(rest / 255) }, () => 255), rest % 255];
}

function lz4Block({ steps }: ReturnType<typeof stepsOf>): Buffer {
  const out: number[] = [];
  for (const { literal, distance, size } of steps) {
    out.push((Math.min(15, literal.length) << 4) | Math.min(15, size - 4));
    out.push(...lz4Length(literal.length), ...literal, distance & 255, distance >> 8, ...lz4Length(size - 4));
  }
  // The last sequence has literals only; here it has none of these either.
  out.push(0);
  return Buffer.from(out);
}

function lz4Frame(blocks: readonly { bytes: Buffer; isPlain?: boolean }[], flags = 0x60): Buffer {
  const hasSize = (flags & 8) !== 0;
  const header = Buffer.from([0x04, 0x22, 0x4d, 0x18, flags, 0x70, ...(hasSize ? [0, 0, 0, 0, 0, 0, 0, 0] : []), 0]);
  const parts = blocks.flatMap(({ bytes, isPlain }) => {
    const length = Buffer.alloc(4);
    length.writeUInt32LE(bytes.length + (isPlain === true ? 0x80000000 : 0));
    return [length, bytes, Buffer.alloc((flags & 16) === 0 ? 0 : 4)];
  });
  return Buffer.concat([header, ...parts, Buffer.alloc(4), Buffer.alloc((flags & 4) === 0 ? 0 : 4)]);
}

describe("codecs", () => {
  test("give back what any compressor may write", async () => {
    const random = drawnRandom();
    for (let round = 0; round < 60; round++) {
      const made = stepsOf(random, 1 + (round % 40));
      const { plain } = made;
      expect((await decompress(SNAPPY, snappyOf(made), MOST)).equals(plain), `snappy, round ${round}`).toBe(true);
      const framed = xerialOf([snappyOf(made), snappyOf(made)]);
      expect((await decompress(SNAPPY, framed, MOST)).equals(Buffer.concat([plain, plain]))).toBe(true);
      for (const flags of [0x60, 0x40, 0x70, 0x64, 0x7c]) {
        const frame = lz4Frame([{ bytes: lz4Block(made) }, { bytes: plain, isPlain: true }], flags);
        const found = await decompress(LZ4, frame, MOST);
        expect(found.equals(Buffer.concat([plain, plain])), `lz4, round ${round}, flags ${flags}`).toBe(true);
      }
      expect((await decompress(1, gzipSync(plain), MOST)).equals(plain)).toBe(true);
      expect((await decompress(4, zstdCompressSync(plain), MOST)).equals(plain)).toBe(true);
      expect(await decompress(0, plain, MOST)).toBe(plain);
    }
  });

  test("refuse a bomb, without taking its size", async () => {
    const zeros = Buffer.alloc(64 * 1024 * 1024);
    const lz4Bomb = Buffer.concat([Buffer.from([0x1f, 0, 1, 0]), Buffer.alloc(300_000, 255), Buffer.from([0, 0])]);
    const claimed = Buffer.from([0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0]);
    const bombs: [number, Buffer][] = [
      [1, gzipSync(zeros)],
      [4, zstdCompressSync(zeros)],
      [LZ4, lz4Frame([{ bytes: lz4Bomb }])],
      [SNAPPY, claimed],
      [SNAPPY, xerialOf([claimed])],
    ];
    for (const [codec, bomb] of bombs) {
      await expect(decompress(codec, bomb, MOST), `codec ${codec}`).rejects.toThrow(Error);
    }
    await expect(decompress(5, zeros, MOST)).rejects.toThrow("there is no codec 5");
  });

  test("end well or with an error, whatever the bytes", async () => {
    const random = drawnRandom();
    for (let round = 0; round < 3_000; round++) {
      const made = stepsOf(random, 1 + pick(random, 6));
      const intact = [snappyOf(made), xerialOf([snappyOf(made)]), lz4Frame([{ bytes: lz4Block(made) }])];
      const at = pick(random, 3);
      const bytes = Buffer.from(intact[at] ?? "");
      for (let i = 0; i <= pick(random, 4); i++) bytes[pick(random, bytes.length)] = pick(random, 256);
      const damaged = random.next() < 0.5 ? bytes : bytes.subarray(0, pick(random, bytes.length));
      const found = await decompress(at === 2 ? LZ4 : SNAPPY, damaged, MOST).catch((error: unknown) => error);
      const text = found instanceof Error ? found.message : `the LZ4 frame has ${(found as Buffer).length} bytes`;
      expect(text).toMatch(/^the (Snappy|LZ4) (block|frame) /);
      expect(Buffer.isBuffer(found) ? found.length : 0).toBeLessThanOrEqual(MOST);
    }
  });
});
