import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import {
  constants,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
  type Gunzip,
  type Inflate,
  type InflateRaw,
  type ZstdDecompress,
} from "node:zlib";
import { EngineError, messageOf } from "../../core/errors.ts";
import type { BodyOptions, HttpRequest } from "./http.ts";
import { zstdFrames } from "./zstd-frames.ts";

/**
 * Request bodies with a `Content-Encoding` (RFC 9110 §8.4): `gzip` (alias `x-gzip`, any number of members), `zstd` (any
 * number of frames, windows up to 8 MiB as RFC 9659 has it) and `deflate`, which is the zlib format, or the bare deflate
 * stream that some clients send instead (§8.4.1.2). The limit counts decoded bytes; decoding stops when it
 * is passed. The work is done by zlib's streams on libuv's threads, in steps of one output buffer each; this thread
 * starts the steps and joins their results.
 *
 * `options.onGrow` is called before more memory is taken than the headers announce, with all that is taken then: the body as it
 * came and what is decoded of it. What it throws ends the reading. Only a body without a coding can be `shared`.
 *
 * An empty body stays empty under any coding: clients that set the header for every request send such.
 */
export async function readDecodedBody(
  request: HttpRequest,
  limitBytes: number,
  options: BodyOptions = {},
): Promise<Uint8Array> {
  const { onGrow } = options;
  const encodedOptions = onGrow === undefined ? {} : { onGrow };
  const coding = request.header("content-encoding")?.trim().toLowerCase() ?? "";
  switch (coding) {
    case "":
    case "identity":
      return request.body(limitBytes, options);
    case "gzip":
    case "x-gzip":
      return gunzip(await request.body(encodedLimit(limitBytes), encodedOptions), limitBytes, onGrow);
    case "zstd":
      return unzstd(await request.body(encodedLimit(limitBytes), encodedOptions), limitBytes, onGrow);
    case "deflate":
      return inflate(await request.body(encodedLimit(limitBytes), encodedOptions), limitBytes, onGrow);
    default:
      throw new EngineError("unsupported_media_type", `Content-Encoding ${JSON.stringify(coding)} is not supported`, {
        headers: { "Accept-Encoding": "gzip, zstd, deflate" },
      });
  }
}

type OnGrow = NonNullable<BodyOptions["onGrow"]>;

/** Deflate stores what it can't compress, with 5 bytes for every block; the smallest blocks in use have some 6 KiB. */
function encodedLimit(limitBytes: number): number {
  return limitBytes + (limitBytes >> 10) + 1024;
}

async function gunzip(encoded: Uint8Array, limitBytes: number, onGrow: OnGrow | undefined): Promise<Uint8Array> {
  if (encoded.length === 0) return encoded;
  const engine = createGunzip({ chunkSize: stepBytes(gzipLengthHint(encoded), encoded.length, limitBytes) });
  const decoded = await decode("gzip", engine, [encoded], { limitBytes, onGrow });
  // node takes zero bytes, and what follows them, for padding.
  if (engine.bytesWritten < encoded.length) throw corrupt("gzip", "there is something after the end");
  return decoded;
}

async function inflate(encoded: Uint8Array, limitBytes: number, onGrow: OnGrow | undefined): Promise<Uint8Array> {
  if (encoded.length === 0) return encoded;
  const options = { chunkSize: stepBytes(undefined, encoded.length, limitBytes) };
  const engine = hasZlibHeader(encoded) ? createInflate(options) : createInflateRaw(options);
  const decoded = await decode("deflate", engine, [encoded], { limitBytes, onGrow });
  // node ignores what follows the end.
  if (engine.bytesWritten < encoded.length) throw corrupt("deflate", "there is something after the end");
  return decoded;
}

/**
 * Whether the bytes begin as the zlib format does (RFC 1950 §2.2): method 8, a window that exists, and a checksum. No
 * encoder's bare stream begins so: its first block would be a stored one (RFC 1951 §3.2.4) with padding that is not 0.
 */
function hasZlibHeader(encoded: Uint8Array): boolean {
  const [first = 0, second = 0] = encoded;
  return (first & 0x0f) === 8 && first >> 4 <= 7 && (first * 256 + second) % 31 === 0;
}

async function unzstd(encoded: Uint8Array, limitBytes: number, onGrow: OnGrow | undefined): Promise<Uint8Array> {
  if (encoded.length === 0) return encoded;
  // node says nothing of a last frame that is cut off, and ignores all frames but the first of a piece.
  const frames = zstdFrames(encoded);
  if (typeof frames === "string") throw corrupt("zstd", frames);
  const engine = createZstdDecompress({
    chunkSize: stepBytes(undefined, encoded.length, limitBytes),
    params: { [constants.ZSTD_d_windowLogMax]: 23 },
  });
  return decode("zstd", engine, frames, { limitBytes, onGrow });
}

/** The size that a gzip file of one member states in its last four bytes, unless deflate can't have compressed so much. */
function gzipLengthHint(encoded: Uint8Array): number | undefined {
  if (encoded.length < 18) return undefined;
  const sizeBytes = new DataView(encoded.buffer, encoded.byteOffset).getUint32(encoded.length - 4, true);
  return sizeBytes <= encoded.length * 1032 ? sizeBytes : undefined;
}

const MIN_STEP_BYTES = 16 * 1024;
const MAX_GUESSED_STEP_BYTES = 4 * 1024 * 1024;

/** The output buffer of one step: all of the result where its size is known, so that nothing has to be joined. */
function stepBytes(hintBytes: number | undefined, encodedBytes: number, limitBytes: number): number {
  const guessBytes = hintBytes === undefined ? Math.min(encodedBytes * 8, MAX_GUESSED_STEP_BYTES) : hintBytes + 1;
  return Math.max(MIN_STEP_BYTES, Math.min(guessBytes, limitBytes + 1));
}

async function decode(
  coding: string,
  engine: Gunzip | Inflate | InflateRaw | ZstdDecompress,
  pieces: readonly Uint8Array[],
  { limitBytes, onGrow }: { limitBytes: number; onGrow: OnGrow | undefined },
): Promise<Uint8Array> {
  const encodedBytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const parts: Buffer[] = [];
  let sizeBytes = 0;
  let problem: string | undefined;
  let refusal: { error: unknown } | undefined;
  try {
    await pipeline(Readable.from(pieces), engine, async (source: AsyncIterable<Buffer>) => {
      for await (const part of source) {
        sizeBytes += part.length;
        if (sizeBytes > limitBytes) break;
        try {
          onGrow?.(encodedBytes + sizeBytes);
        } catch (error) {
          refusal = { error };
          break;
        }
        parts.push(part);
      }
    });
  } catch (error) {
    problem = messageOf(error);
  }
  // Leaving early makes the pipeline fail too; this is why it did.
  if (refusal !== undefined) throw refusal.error;
  if (sizeBytes > limitBytes) {
    throw new EngineError("body_too_large", `the decoded body has more than ${limitBytes} bytes`);
  }
  if (problem !== undefined) throw corrupt(coding, problem);
  return join(parts, sizeBytes);
}

function join(parts: readonly Buffer[], sizeBytes: number): Uint8Array<ArrayBuffer> {
  const only = parts.length === 1 ? parts[0] : undefined;
  // A part is the beginning of its step's buffer, and nobody else's; a small part of a large buffer is not worth it.
  if (only !== undefined && only.buffer instanceof ArrayBuffer && only.buffer.byteLength <= 2 * sizeBytes) {
    return new Uint8Array(only.buffer, only.byteOffset, only.length);
  }
  const joined = new Uint8Array(sizeBytes);
  let atBytes = 0;
  for (const part of parts) {
    joined.set(part, atBytes);
    atBytes += part.length;
  }
  return joined;
}

function corrupt(coding: string, problem: string): EngineError {
  return new EngineError("bad_request_body", `the body is not valid ${coding}: ${problem}`);
}
