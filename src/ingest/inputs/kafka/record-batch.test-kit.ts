import { gzipSync } from "node:zlib";

/** Record batches as a broker gives them. */
export type MadeRecord = {
  offset: number;
  timestampMs: number;
  key: Buffer | null;
  value: Buffer | null;
  headers?: number;
};
export type MadeBatch = {
  records: readonly MadeRecord[];
  baseOffset?: number;
  lastOffset?: number;
  attributes?: number;
  producerId?: bigint;
  isGzip?: boolean;
};

export function zigzag(value: number): number[] {
  let left = value >= 0 ? BigInt(value) * 2n : BigInt(value) * -2n - 1n;
  const bytes: number[] = [];
  for (; left >= 128n; left >>= 7n) bytes.push(Number(left & 127n) | 128);
  return [...bytes, Number(left)];
}

function fieldOf(bytes: Buffer | null): Buffer {
  return bytes === null ? Buffer.from(zigzag(-1)) : Buffer.concat([Buffer.from(zigzag(bytes.length)), bytes]);
}

export function recordsOf(records: readonly MadeRecord[], baseOffset: number, baseTimestampMs: number): Buffer {
  return Buffer.concat(
    records.map(({ offset, timestampMs, key, value, headers = 0 }) => {
      const header = Buffer.concat([fieldOf(Buffer.from("h")), fieldOf(Buffer.from("v"))]);
      const body = Buffer.concat([
        Buffer.from([0, ...zigzag(timestampMs - baseTimestampMs), ...zigzag(offset - baseOffset)]),
        fieldOf(key),
        fieldOf(value),
        Buffer.from(zigzag(headers)),
        ...Array.from({ length: headers }, () => header),
      ]);
      return Buffer.concat([Buffer.from(zigzag(body.length)), body]);
    }),
  );
}

export function batchBytes(made: MadeBatch): Buffer {
  const { records, attributes = 0, producerId = -1n, isGzip = false } = made;
  const baseOffset = made.baseOffset ?? records[0]?.offset ?? 0;
  const lastOffset = made.lastOffset ?? records.at(-1)?.offset ?? baseOffset;
  const baseTimestampMs = records[0]?.timestampMs ?? 0;
  const plain = recordsOf(records, baseOffset, baseTimestampMs);
  const body = isGzip ? gzipSync(plain) : plain;
  const header = Buffer.alloc(61);
  header.writeBigInt64BE(BigInt(baseOffset), 0);
  header.writeInt32BE(49 + body.length, 8);
  header.writeInt8(2, 16);
  header.writeInt16BE(attributes | (isGzip ? 1 : 0), 21);
  header.writeInt32BE(lastOffset - baseOffset, 23);
  header.writeBigInt64BE(BigInt(baseTimestampMs), 27);
  header.writeBigInt64BE(BigInt(Math.max(baseTimestampMs, ...records.map(({ timestampMs }) => timestampMs))), 35);
  header.writeBigInt64BE(producerId, 43);
  header.writeInt32BE(records.length, 57);
  return Buffer.concat([header, body]);
}
