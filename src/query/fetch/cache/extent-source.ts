import { open, type FileHandle } from "node:fs/promises";
import type { ExtentSummary } from "../../../catalog/catalog.ts";
import type { Semaphore } from "../../../core/concurrency.ts";
import { EngineError } from "../../../core/errors.ts";
import { checksumOf, RunningChecksum } from "../../../format/checksum.ts";
import { ObjectNotFound, type ObjectStore } from "../../../io/objectstore/objectstore.ts";

/** Where the bytes of extents come from, and at whose expense. */
export type ExtentSource = {
  store: ObjectStore;
  /** Requests to the store under way, of all queries together. */
  requests: Semaphore;
  signal: AbortSignal;
  /** Called before a request; throws past the budget. */
  charge(sizeBytes: number): void;
};

/** The bytes are not those that were stored, or did not come; another attempt may do better. */
export class FetchFailed extends Error {
  constructor(problem: string, cause?: unknown) {
    super(problem, cause === undefined ? undefined : { cause });
    this.name = "FetchFailed";
  }
}

/** A request brings at most this much. With the number of requests it bounds the memory of fetching. */
const PIECE_BYTES = 4 * 1024 * 1024;

export type ByteRange = { offset: number; sizeBytes: number };

/** Requests one piece, which was charged already, and has it used before another one takes its place. */
function fetchPiece<T>(
  source: ExtentSource,
  extent: ExtentSummary,
  range: ByteRange,
  use: (bytes: Uint8Array) => Promise<T>,
): Promise<T> {
  return source.requests.run(async () => {
    source.signal.throwIfAborted();
    const bytes = await getRange(source, extent, range);
    if (bytes.length === range.sizeBytes) return use(bytes);
    const problem = `${bytes.length} bytes at ${range.offset} where there should be ${range.sizeBytes}`;
    throw new FetchFailed(problem);
  });
}

async function getRange(source: ExtentSource, extent: ExtentSummary, range: ByteRange): Promise<Uint8Array> {
  try {
    return await source.store.get(extent.key, { offset: range.offset, length: range.sizeBytes, signal: source.signal });
  } catch (error) {
    source.signal.throwIfAborted();
    if (error instanceof ObjectNotFound) {
      throw new EngineError("query_failed", `the data of extent ${extent.id} is missing`, { cause: error });
    }
    throw error instanceof EngineError ? error : new FetchFailed("the object store failed", error);
  }
}

/** Fetches a range, at most some megabytes, into memory. Throws `FetchFailed`, `EngineError`, or the signal's reason. */
export function fetchBytes(source: ExtentSource, extent: ExtentSummary, range: ByteRange): Promise<Uint8Array> {
  source.charge(range.sizeBytes);
  return fetchPiece(source, extent, range, (bytes) => Promise.resolve(bytes));
}

/**
 * Fetches ranges into a file at their own places; resolves to what was written, each piece with its checksum. Nothing
 * is being written any more when it rejects.
 */
export async function fetchToFile(
  source: ExtentSource,
  extent: ExtentSummary,
  ranges: readonly ByteRange[],
  file: FileHandle,
): Promise<(ByteRange & { checksum: string })[]> {
  source.charge(ranges.reduce((total, range) => total + range.sizeBytes, 0));
  const failures: unknown[] = [];
  const bring = async (piece: ByteRange): Promise<ByteRange & { checksum: string }> => {
    try {
      return await fetchPiece(source, extent, piece, async (bytes) => {
        if (failures.length > 0) throw failures[0];
        await writeAt(file, bytes, piece.offset);
        return { ...piece, checksum: checksumOf(bytes) };
      });
    } catch (error) {
      failures.push(error);
      throw error;
    }
  };
  const outcomes = await Promise.allSettled(ranges.flatMap(piecesOf).map(bring));
  if (failures.length > 0) throw failures[0];
  return outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
}

/** Fetches a whole extent into a new file, checked by length and checksum. Throws like `fetchBytes`. */
export async function fetchWhole(source: ExtentSource, extent: ExtentSummary, path: string): Promise<void> {
  const whole = { offset: 0, sizeBytes: extent.sizeBytes };
  const file = await open(path, "wx+", 0o600);
  try {
    const pieces = await fetchToFile(source, extent, [whole], file);
    const checksum = pieces.length === 1 ? pieces[0]?.checksum : await checksumAt(file, whole);
    if (checksum !== extent.checksum) throw new FetchFailed("its checksum does not match");
  } finally {
    await file.close();
  }
}

/** Whether the file is the extent. Rejects only when it cannot be read. */
export async function isExtent(path: string, extent: ExtentSummary): Promise<boolean> {
  const file = await open(path, "r");
  try {
    if ((await file.stat()).size !== extent.sizeBytes) return false;
    return (await checksumAt(file, { offset: 0, sizeBytes: extent.sizeBytes })) === extent.checksum;
  } finally {
    await file.close();
  }
}

/** `checksumOf` a range of the file; something else when the file is shorter. */
export async function checksumAt(file: FileHandle, { offset, sizeBytes }: ByteRange): Promise<string> {
  const checksum = new RunningChecksum();
  const buffer = new Uint8Array(Math.min(PIECE_BYTES, sizeBytes));
  for (let done = 0; done < sizeBytes;) {
    const { bytesRead } = await file.read(buffer, 0, Math.min(buffer.length, sizeBytes - done), offset + done);
    if (bytesRead === 0) return "short";
    checksum.add(buffer.subarray(0, bytesRead));
    done += bytesRead;
  }
  return checksum.toString();
}

export async function writeAt(file: FileHandle, bytes: Uint8Array, offset: number): Promise<void> {
  for (let written = 0; written < bytes.length;) {
    const { bytesWritten } = await file.write(bytes, written, bytes.length - written, offset + written);
    written += bytesWritten;
  }
}

function piecesOf({ offset, sizeBytes }: ByteRange): ByteRange[] {
  return Array.from({ length: Math.ceil(sizeBytes / PIECE_BYTES) }, (_, i) => ({
    offset: offset + i * PIECE_BYTES,
    sizeBytes: Math.min(PIECE_BYTES, sizeBytes - i * PIECE_BYTES),
  }));
}
