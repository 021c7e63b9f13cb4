import { Readable, type Transform } from "node:stream";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { messageOf } from "../../core/errors.ts";
import { UnreadableRows } from "./unreadable-rows.ts";
import { PeekedInput } from "./peeked.ts";
import { ZstdCutter, type ZstdPiece } from "./zstd-cutter.ts";

/** Bytes that tell all codings apart. */
const MAGIC_BYTES = 4;
const CHUNK_BYTES = 256 * 1024;

/**
 * Input without the coding that its first bytes tell (gzip of any number of members, zstd of any number of frames),
 * whatever its name is. Memory does not grow with what comes out: a bomb is only a long input.
 */
export async function* decodeInput(chunks: AsyncIterable<Uint8Array>, shown: string): AsyncGenerator<Uint8Array> {
  const reading = new Watched(chunks);
  const input = new PeekedInput(reading);
  try {
    const coding = codingOf(await input.head(MAGIC_BYTES));
    if (coding === undefined) yield* input;
    else if (coding === "gzip") yield* named("gzip", { shown, reading, decoded: gunzip(input) });
    else yield* named("zstd", { shown, reading, decoded: unzstd(input) });
  } finally {
    await input.return();
  }
}

function codingOf(head: Buffer): "gzip" | "zstd" | undefined {
  if (head.length < MAGIC_BYTES) return undefined;
  const magic = head.readUInt32LE(0);
  // The one method that there is, behind the magic number of two bytes.
  if ((magic & 0xffffff) === 0x088b1f) return "gzip";
  const isFrame = magic === 0xfd2fb528 || (magic & 0xfffffff0) >>> 0 === 0x184d2a50;
  return isFrame ? "zstd" : undefined;
}

/** Remembers whether reading the input failed. */
class Watched implements AsyncIterable<Uint8Array> {
  failure: Error | undefined;
  readonly chunks: AsyncIterable<Uint8Array>;

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.chunks = chunks;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    try {
      yield* this.chunks;
    } catch (error) {
      this.failure = error as Error;
      throw error;
    }
  }
}

type Decoding = { shown: string; reading: Watched; decoded: AsyncGenerator<Uint8Array> };

/** Says of what the decoders find wrong where it is. */
async function* named(coding: string, { shown, reading, decoded }: Decoding): AsyncGenerator<Uint8Array> {
  try {
    yield* decoded;
  } catch (error) {
    // Reading the input failed, not decoding it.
    if (reading.failure !== undefined) throw reading.failure;
    const message = `${shown} is broken: its ${coding} data cannot be decoded: ${messageOf(error)}`;
    throw new UnreadableRows(message, { cause: error });
  }
}

async function* gunzip(input: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let givenBytes = 0;
  const counted = async function* (): AsyncGenerator<Uint8Array> {
    for await (const chunk of input) {
      givenBytes += chunk.length;
      yield chunk;
    }
  };
  const engine = createGunzip({ chunkSize: CHUNK_BYTES });
  yield* through(engine, counted());
  // Node takes zero bytes, and all that follows them, for padding.
  if (engine.bytesWritten < givenBytes) throw new Error("something follows its end");
}

async function* unzstd(input: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const pieces = zstdPieces(input);
  for (;;) {
    const first = await pieces.next();
    if (first.done === true) return;
    yield* through(createZstdDecompress({ chunkSize: CHUNK_BYTES }), oneFrame(first.value, pieces));
  }
}

async function* zstdPieces(input: AsyncIterable<Uint8Array>): AsyncGenerator<ZstdPiece> {
  const cutter = new ZstdCutter();
  for await (const chunk of input) yield* cutter.cut(chunk);
  if (!cutter.isBetweenFrames) throw new Error("it is cut off");
}

/** The bytes of one frame. The pieces go on behind it, so they are not closed with it. */
async function* oneFrame(first: ZstdPiece, pieces: AsyncGenerator<ZstdPiece>): AsyncGenerator<Uint8Array> {
  let piece = first;
  for (;;) {
    yield piece.bytes;
    if (piece.endsFrame) return;
    const next = await pieces.next();
    if (next.done === true) return;
    piece = next.value;
  }
}

/** What the engine makes of the chunks, no faster than it is read. */
async function* through(engine: Transform, chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const source = Readable.from(chunks);
  source.once("error", (error) => engine.destroy(error));
  source.pipe(engine);
  try {
    for await (const part of engine as AsyncIterable<Uint8Array>) yield part;
  } finally {
    engine.destroy();
    source.destroy();
  }
}
