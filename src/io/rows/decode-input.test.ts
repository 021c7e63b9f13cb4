import { gzipSync, zstdCompressSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { decodeInput } from "./decode-input.ts";

async function* chunksOf(data: Buffer, size = 7): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < data.length; at += size) yield await Promise.resolve(data.subarray(at, at + size));
}

async function decoded(data: Buffer, size?: number): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const part of decodeInput(chunksOf(data, size), "x.ndjson")) parts.push(part);
  return Buffer.concat(parts).toString();
}

const gz = (text: string) => gzipSync(text);
const zst = (text: string) => zstdCompressSync(text);

describe("input is decoded by its content", () => {
  test.for([
    ["as it is", Buffer.from("{}\n"), "{}\n"],
    ["nothing", Buffer.alloc(0), ""],
    ["less than a magic number", Buffer.from("{}"), "{}"],
    ["gzip", gz("one\n"), "one\n"],
    ["gzip of several members", Buffer.concat([gz("one\n"), gz(""), gz("two\n")]), "one\ntwo\n"],
    ["zstd", zst("one\n"), "one\n"],
    ["zstd of several frames", Buffer.concat([zst("one\n"), zst(""), zst("two\n")]), "one\ntwo\n"],
  ] as const)("%s", async ([, data, text]) => {
    expect(await decoded(data)).toBe(text);
    expect(await decoded(data, 1)).toBe(text);
    expect(await decoded(data, 1 << 20)).toBe(text);
  });
});

describe("what is broken is told", () => {
  const long = Array.from({ length: 5_000 }, (_, i) => `${i}\n`).join("");
  test.for([
    ["gzip that is cut off", gz(long).subarray(0, -9), "x.ndjson is broken: its gzip data cannot be decoded"],
    ["gzip with a wrong checksum", flipped(gz(long), -6), "incorrect data check"],
    ["gzip with garbage behind it", Buffer.concat([gz(long), Buffer.from("garbage")]), "its gzip data"],
    ["gzip with zeros and more behind it", Buffer.concat([gz(long), Buffer.alloc(3), gz("lost")]), "follows its end"],
    ["zstd that is cut off", zst(long).subarray(0, -1), "its zstd data cannot be decoded: it is cut off"],
    ["zstd with garbage behind it", Buffer.concat([zst(long), Buffer.from("garbage")]), "something else follows"],
    ["zstd with a wrong byte", flipped(zst(long), 30), "its zstd data cannot be decoded"],
  ] as const)("%s", async ([, data, message]) => {
    await expect(decoded(data)).rejects.toThrow(message);
    await expect(decoded(data, 1 << 20)).rejects.toThrow(message);
  });
});

function flipped(data: Buffer, at: number): Buffer {
  const copy = Buffer.from(data);
  const place = at < 0 ? copy.length + at : at;
  copy[place] = (copy[place] ?? 0) ^ 0xff;
  return copy;
}

test("a bomb is read in small pieces, and as far as somebody reads", async () => {
  const bomb = gzipSync(Buffer.alloc(200 * 2 ** 20, "x"));
  let pieces = 0;
  for await (const piece of decodeInput(chunksOf(bomb, 65_536), "bomb")) {
    expect(piece.length).toBeLessThanOrEqual(256 * 1024);
    if (++pieces === 3) break;
  }
  expect(pieces).toBe(3);
});
