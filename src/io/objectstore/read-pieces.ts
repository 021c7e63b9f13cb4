import type { ObjectInfo, ObjectStore } from "./objectstore.ts";

const PIECE_BYTES = 4 * 1024 * 1024;

export type ReadPiecesOptions = { pieceBytes?: number; signal?: AbortSignal };

/**
 * The bytes of an object in pieces, in order; the next one is read while the last one is used, so two are in memory.
 * Each is read, and where need be tried again, on its own: no connection stays open while a slow reader is at it.
 * Throws `ObjectChanged` when the object is no longer the listed one, `ObjectNotFound` when it is gone.
 */
export async function* readPieces(
  store: Pick<ObjectStore, "get">,
  { key, sizeBytes, identity }: Pick<ObjectInfo, "key" | "sizeBytes" | "identity">,
  { pieceBytes = PIECE_BYTES, signal }: ReadPiecesOptions = {},
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const stop = new AbortController();
  const either = signal === undefined ? stop.signal : AbortSignal.any([stop.signal, signal]);
  const read = (offset: number): Promise<Uint8Array<ArrayBuffer>> => {
    const reading = store.get(key, { offset, length: pieceBytes, identity, signal: either });
    // Who stops early does not wait for the piece that is on its way.
    reading.catch(() => undefined);
    return reading;
  };
  try {
    let next = sizeBytes > 0 ? read(0) : undefined;
    for (let offset = pieceBytes; next !== undefined; offset += pieceBytes) {
      const piece: Uint8Array<ArrayBuffer> = await next;
      next = offset < sizeBytes ? read(offset) : undefined;
      yield piece;
    }
  } finally {
    stop.abort();
  }
}
