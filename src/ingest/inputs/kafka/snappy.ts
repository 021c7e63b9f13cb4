/**
 * Decompression of Snappy (https://github.com/google/snappy/blob/main/format_description.txt), as producers of Kafka write
 * it: raw, or in the frames of xerial's snappy-java (a header of 16 bytes, then blocks with their length in front).
 */

const XERIAL = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0]);
const XERIAL_HEADER_BYTES = 16;

/** Throws an `Error` for what is damaged or would have more than `maxBytes`. */
export function decompressSnappy(input: Buffer, maxBytes: number): Buffer {
  if (!input.subarray(0, XERIAL.length).equals(XERIAL)) return decodeBlock(input, maxBytes);
  const blocks: Buffer[] = [];
  let sizeBytes = 0;
  for (let at = XERIAL_HEADER_BYTES; at < input.length;) {
    if (at + 4 > input.length) throw new Error("the Snappy frame is cut off");
    const end = at + 4 + input.readUInt32BE(at);
    if (end > input.length) throw new Error("the Snappy frame is cut off");
    const block = decodeBlock(input.subarray(at + 4, end), maxBytes - sizeBytes);
    sizeBytes += block.length;
    blocks.push(block);
    at = end;
  }
  return blocks.length === 1 && blocks[0] !== undefined ? blocks[0] : Buffer.concat(blocks);
}

function decodeBlock(input: Buffer, maxBytes: number): Buffer {
  const { length, at: start } = readLength(input);
  if (length > maxBytes) throw new Error(`the Snappy block has ${length} bytes, more than the ${maxBytes} allowed`);
  const output = Buffer.allocUnsafe(length);
  let out = 0;
  for (let at = start; at < input.length;) {
    const tag = input[at++] ?? 0;
    if ((tag & 3) === 0) {
      const extraBytes = Math.max(0, (tag >> 2) - 59);
      const size = 1 + (extraBytes === 0 ? tag >> 2 : readLittleEndian(input, at, extraBytes));
      at += extraBytes;
      if (at + size > input.length || out + size > length) throw damaged();
      input.copy(output, out, at, at + size);
      at += size;
      out += size;
      continue;
    }
    const { size, distance, at: next } = readCopy(input, at, tag);
    at = next;
    if (distance === 0 || distance > out || out + size > length) throw damaged();
    copyWithin(output, out, distance, size);
    out += size;
  }
  if (out !== length) throw damaged();
  return output;
}

function readCopy(input: Buffer, at: number, tag: number): { size: number; distance: number; at: number } {
  if ((tag & 3) === 1) {
    return {
      size: 4 + ((tag >> 2) & 7),
      distance: ((tag >> 5) << 8) | readLittleEndian(input, at, 1),
      at: at + 1,
    };
  }
  const bytes = (tag & 3) === 2 ? 2 : 4;
  return { size: 1 + (tag >> 2), distance: readLittleEndian(input, at, bytes), at: at + bytes };
}

/** Copies what lies `distance` bytes back; where it reaches into what is being written, it repeats. */
export function copyWithin(output: Buffer, at: number, distance: number, size: number): void {
  if (distance >= size) output.copyWithin(at, at - distance, at - distance + size);
  else for (let i = 0; i < size; i++) output[at + i] = output[at + i - distance] ?? 0;
}

function readLength(input: Buffer): { length: number; at: number } {
  let length = 0;
  for (let at = 0, factor = 1; at < 5 && at < input.length; at++, factor *= 128) {
    const byte = input[at] ?? 0;
    length += (byte & 127) * factor;
    if (byte < 128) return { length, at: at + 1 };
  }
  throw damaged();
}

function readLittleEndian(input: Buffer, at: number, bytes: number): number {
  if (at + bytes > input.length) throw damaged();
  return input.readUIntLE(at, bytes);
}

function damaged(): Error {
  return new Error("the Snappy block is damaged");
}
