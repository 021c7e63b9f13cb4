import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { constants, createZstdCompress, createZstdDecompress, type ZstdCompress } from "node:zlib";
import { messageOf } from "../../../core/errors.ts";
import { ArchiveError } from "../../../io/tar/archive-error.ts";
import { MAX_PARTS, PART_BYTES, type ImageLayer } from "../../contract/images/image.ts";
import { packLayer, type PackOptions } from "./layer-pack.ts";
import { unpackLayer } from "./layer-unpack.ts";

/** Layers as they are stored: compressed with zstd, and cut into parts. */

/** The window that compressing takes, and the most that decompressing may: 8 MiB. */
const WINDOW_LOG = 23;
const LEVEL = 3;

export type PackedLayer = Pick<ImageLayer, "parts" | "sha256" | "sizeBytes" | "unpackedBytes">;

/** Packs a layer, and writes its parts one after the other. Rejects with `ArchiveError`, and as `write` does. */
export async function writeLayer(
  options: PackOptions,
  write: (part: number, bytes: Uint8Array) => Promise<void>,
): Promise<PackedLayer> {
  const { ZSTD_c_compressionLevel, ZSTD_c_windowLog, ZSTD_c_checksumFlag } = constants;
  const params = { [ZSTD_c_compressionLevel]: LEVEL, [ZSTD_c_windowLog]: WINDOW_LOG, [ZSTD_c_checksumFlag]: 1 };
  let unpackedBytes = 0;
  const tar = async function* (): AsyncGenerator<Buffer> {
    ({ unpackedBytes } = yield* packLayer(options));
  };
  const compressed = createZstdCompress({ params });
  const fed = feed(tar(), compressed);
  const hash = createHash("sha256");
  let [parts, sizeBytes] = [0, 0];
  try {
    for await (const part of inParts(compressed)) {
      if (parts === MAX_PARTS) throw new ArchiveError(`the archive is longer than ${MAX_PARTS * PART_BYTES} bytes`);
      hash.update(part);
      sizeBytes += part.length;
      await write(parts, part);
      parts++;
    }
  } finally {
    compressed.destroy();
    await fed;
  }
  return { parts, sha256: hash.digest("hex"), sizeBytes, unpackedBytes };
}

/**
 * Compresses bytes in pieces of one size, each before the next is given, and the end after the last: what comes out
 * depends on how it is cut. Never rejects: whoever reads hears what went wrong.
 */
async function feed(source: AsyncIterable<Buffer>, compressed: ZstdCompress): Promise<void> {
  try {
    for await (const piece of inParts(source)) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      compressed.write(piece, (error) => (error instanceof Error ? reject(error) : resolve()));
      await promise;
    }
    compressed.end();
  } catch (error) {
    compressed.destroy(error instanceof Error ? error : new Error(messageOf(error)));
  }
}

/** Pieces of `PART_BYTES`, and what is left. */
async function* inParts(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of source) {
    pieces.push(piece);
    length += piece.length;
    while (length >= PART_BYTES) {
      const all = Buffer.concat(pieces);
      yield all.subarray(0, PART_BYTES);
      pieces = [all.subarray(PART_BYTES)];
      length -= PART_BYTES;
    }
  }
  if (length > 0) yield Buffer.concat(pieces);
}

/**
 * Applies a stored layer to a folder with the layers below it. Rejects with `ArchiveError` when the bytes are not the
 * layer's, or are not accepted: then the folder is to be thrown away.
 */
export async function readLayer(
  layer: PackedLayer,
  root: string,
  read: (part: number) => Promise<Uint8Array>,
): Promise<void> {
  const hash = createHash("sha256");
  let sizeBytes = 0;
  const stored = async function* (): AsyncGenerator<Uint8Array> {
    for (let part = 0; part < layer.parts; part++) {
      const bytes = await read(part);
      sizeBytes += bytes.byteLength;
      if (sizeBytes > layer.sizeBytes) throw new ArchiveError("the archive is longer than it was");
      hash.update(bytes);
      yield bytes;
    }
  };
  const params = { [constants.ZSTD_d_windowLogMax]: WINDOW_LOG };
  const tar = createZstdDecompress({ params });
  const fed = pipeline(Readable.from(stored()), tar).then(
    () => undefined,
    (error: unknown) => (error instanceof Error ? error : new Error(messageOf(error))),
  );
  try {
    await unpackLayer(tar, root, layer.unpackedBytes);
  } catch (error) {
    tar.destroy();
    throw isDecompressing(error)
      ? new ArchiveError(`the archive is damaged: ${messageOf(error)}`, { cause: error })
      : error;
  }
  const problem = await fed;
  if (problem !== undefined) throw problem;
  if (sizeBytes !== layer.sizeBytes || hash.digest("hex") !== layer.sha256) {
    throw new ArchiveError("the archive is not what was stored: its hash is another");
  }
}

function isDecompressing(error: unknown): boolean {
  return error instanceof Error && "code" in error && typeof error.code === "string" && error.code.startsWith("ZSTD_");
}
