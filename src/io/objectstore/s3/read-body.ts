import { Readable } from "node:stream";
import { crc32 } from "node:zlib";
import { RequestFailure } from "./failure.ts";

/**
 * Reads a body of exactly `sizeBytes` into a buffer of its own. One that ends early or goes on longer is a
 * `DamagedBody`; an aborted signal ends the stream and is thrown.
 */
export async function readBody(
  body: unknown,
  sizeBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array<ArrayBuffer>> {
  if (!(body instanceof Readable)) throw new RequestFailure("UnusableAnswer", "answered without a body");
  const abort = () => body.destroy(signal.reason as Error);
  signal.addEventListener("abort", abort, { once: true });
  try {
    signal.throwIfAborted();
    return await fill(body, sizeBytes);
  } finally {
    signal.removeEventListener("abort", abort);
    body.destroy();
  }
}

async function fill(body: Readable, sizeBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  // Not zero-filled: every byte is written below, or the call fails.
  const { buffer } = Buffer.allocUnsafeSlow(sizeBytes);
  const bytes = new Uint8Array(buffer);
  let filled = 0;
  for await (const chunk of body) {
    if (!(chunk instanceof Uint8Array)) throw new TypeError("the body is not a stream of bytes");
    if (filled + chunk.length > sizeBytes) {
      throw new RequestFailure("DamagedBody", `more than the ${sizeBytes} bytes announced arrived`);
    }
    bytes.set(chunk, filled);
    filled += chunk.length;
  }
  if (filled === sizeBytes) return bytes;
  throw new RequestFailure("DamagedBody", `${filled} of ${sizeBytes} bytes arrived`);
}

/**
 * Checks an object that was uploaded in parts of `partBytes` against its composite checksum: the CRC-32 of the CRC-32s
 * of its parts, in base64, and the number of parts. Another number means that it was written with parts of another
 * size, about which nothing can be said. Throws `DamagedBody`.
 */
export function verifyComposite(bytes: Uint8Array, partBytes: number, checksum: string): void {
  const [expected, parts] = checksum.split("-");
  if (Number(parts) !== Math.ceil(bytes.length / partBytes)) return;
  const found = compositeChecksum(bytes, partBytes);
  if (found !== checksum) {
    throw new RequestFailure("DamagedBody", `the checksum of what arrived is ${found}, not ${expected}-${parts}`);
  }
}

function compositeChecksum(bytes: Uint8Array, partBytes: number): string {
  const parts = Array.from({ length: Math.ceil(bytes.length / partBytes) }, (_, part) =>
    bytes.subarray(part * partBytes, (part + 1) * partBytes),
  );
  return compositeOf(parts.map((part) => crc32(part)));
}

/** `base64(crc32(crc32(part 1) … crc32(part n)))-n`, as S3 forms it from the CRC-32s of the parts. */
export function compositeOf(sums: readonly number[]): string {
  const bytes = Buffer.alloc(4 * sums.length);
  for (const [part, sum] of sums.entries()) bytes.writeUInt32BE(sum, 4 * part);
  const whole = Buffer.alloc(4);
  whole.writeUInt32BE(crc32(bytes));
  return `${whole.toString("base64")}-${sums.length}`;
}
