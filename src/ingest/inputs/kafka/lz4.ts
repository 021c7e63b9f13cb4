import { copyWithin } from "./snappy.ts";

/**
 * Decompression of LZ4 frames (https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md and lz4_Block_format.md), as
 * producers of Kafka write them. Checksums are not looked at: the broker has checked that of the whole batch.
 */

const MAGIC = 0x184d2204;
const BLOCK_BYTES = [0, 0, 0, 0, 64, 256, 1024, 4096].map((kib) => kib * 1024);
const UNCOMPRESSED = 0x80000000;

/** Throws an `Error` for what is damaged or would have more than `maxBytes`. */
export function decompressLz4(input: Buffer, maxBytes: number): Buffer {
  let output = Buffer.allocUnsafe(Math.min(maxBytes, Math.max(1024, input.length * 4)));
  let out = 0;
  for (const block of blocksOf(input)) {
    // A block may end sooner; what it needs at most must be there.
    const needed = Math.min(maxBytes, out + block.mostBytes);
    if (needed > output.length) output = grown(output, out, Math.min(maxBytes, Math.max(needed, output.length * 2)));
    out = block.isPlain ? copyPlain(block.bytes, output, out) : decodeBlock(block.bytes, output, out);
  }
  return output.subarray(0, out);
}

type Block = { bytes: Buffer; isPlain: boolean; mostBytes: number };

function* blocksOf(input: Buffer): Generator<Block> {
  let at = 0;
  while (at < input.length) {
    if (input.length < at + 7 || input.readUInt32LE(at) !== MAGIC) throw damaged();
    const flags = input[at + 4] ?? 0;
    const mostBytes = BLOCK_BYTES[((input[at + 5] ?? 0) >> 4) & 7] ?? 0;
    if (flags >> 6 !== 1 || mostBytes === 0) throw damaged();
    // Size of the content and id of a dictionary, if they are there, then a byte that checks the header.
    at += 7 + ((flags & 8) === 0 ? 0 : 8) + ((flags & 1) === 0 ? 0 : 4);
    const checksumBytes = (flags & 16) === 0 ? 0 : 4;
    for (;;) {
      if (at + 4 > input.length) throw damaged();
      const size = input.readUInt32LE(at);
      at += 4;
      if (size === 0) break;
      const isPlain = size >= UNCOMPRESSED;
      const sizeBytes = isPlain ? size - UNCOMPRESSED : size;
      if (at + sizeBytes > input.length || sizeBytes > mostBytes) throw damaged();
      yield { bytes: input.subarray(at, at + sizeBytes), isPlain, mostBytes };
      at += sizeBytes + checksumBytes;
    }
    at += (flags & 4) === 0 ? 0 : 4;
  }
}

function copyPlain(block: Buffer, output: Buffer, out: number): number {
  if (out + block.length > output.length) throw tooLarge(output.length);
  block.copy(output, out);
  return out + block.length;
}

/** Returns where the output ends. */
function decodeBlock(block: Buffer, output: Buffer, start: number): number {
  let out = start;
  for (let at = 0; at < block.length;) {
    const token = block[at++] ?? 0;
    const literals = readLength(block, at, token >> 4);
    at = literals.at;
    if (at + literals.length > block.length) throw damaged();
    if (out + literals.length > output.length) throw tooLarge(output.length);
    block.copy(output, out, at, at + literals.length);
    at += literals.length;
    out += literals.length;
    // The last sequence has literals only.
    if (at === block.length) return out;
    if (at + 2 > block.length) throw damaged();
    const distance = block.readUInt16LE(at);
    const match = readLength(block, at + 2, token & 15);
    at = match.at;
    const size = match.length + 4;
    if (distance === 0 || distance > out) throw damaged();
    if (out + size > output.length) throw tooLarge(output.length);
    copyWithin(output, out, distance, size);
    out += size;
  }
  return out;
}

/** A length of 15 goes on in the bytes that follow, up to the first that is not 255. */
function readLength(block: Buffer, start: number, nibble: number): { length: number; at: number } {
  let length = nibble;
  let at = start;
  if (nibble < 15) return { length, at };
  for (;;) {
    if (at >= block.length) throw damaged();
    const byte = block[at++] ?? 0;
    length += byte;
    if (byte !== 255) return { length, at };
  }
}

function grown(output: Buffer, used: number, sizeBytes: number): Buffer<ArrayBuffer> {
  const larger = Buffer.allocUnsafe(sizeBytes);
  output.copy(larger, 0, 0, used);
  return larger;
}

function damaged(): Error {
  return new Error("the LZ4 frame is damaged");
}

function tooLarge(bytes: number): Error {
  return new Error(`the LZ4 frame has more than the ${bytes} bytes allowed, or its block more than it says`);
}
