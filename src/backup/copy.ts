import { createWriteStream } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { EngineError } from "../core/errors.ts";
import type { IdSource } from "../core/ids.ts";
import { checksumOf, RunningChecksum } from "../format/checksum.ts";
import { ObjectNotFound, type ObjectInfo, type ObjectStore } from "../io/objectstore/objectstore.ts";
import { readPieces } from "../io/objectstore/read-pieces.ts";

/** Up to this an object passes through memory, past it through a file. */
const IN_MEMORY_BYTES = 32 * 1024 * 1024;
/** Copies at once: some files, or requests to one server, keep it busy. */
export const CONCURRENT_COPIES = 8;

export type Copy = {
  from: ObjectStore;
  fromKey: string;
  to: ObjectStore;
  toKey: string;
  sizeBytes: number;
  checksum: string;
  /** A folder for this alone. */
  tempDir: string;
  newId: IdSource;
  signal?: AbortSignal;
};

/** An object that is not as it was written; nothing was made of it. */
export class DamagedObject extends EngineError {
  constructor(key: string) {
    super("conflict", `the object ${key} is not as it was written: its size or checksum is another one`);
    this.name = "DamagedObject";
  }
}

/**
 * Copies an object: within its server or file system where that can be, else through this program, which compares its
 * checksum. Resolves to whether it did. Throws `DamagedObject` and `ObjectNotFound`.
 */
export async function copyObject(copy: Copy): Promise<"compared" | "unseen"> {
  const { from, fromKey, to, toKey, sizeBytes, checksum, signal } = copy;
  const options = signal === undefined ? {} : { signal };
  if ((await to.copyFrom?.(from, fromKey, toKey, { sizeBytes, ...options })) === true) return "unseen";
  if (sizeBytes > IN_MEMORY_BYTES) await copyByFile(copy);
  else {
    const bytes = await from.get(fromKey, options);
    if (bytes.length !== sizeBytes || checksumOf(bytes) !== checksum) throw new DamagedObject(fromKey);
    await to.put(toKey, bytes, options);
  }
  return "compared";
}

async function copyByFile({
  from,
  fromKey,
  to,
  toKey,
  sizeBytes,
  checksum,
  tempDir,
  newId,
  signal,
}: Copy): Promise<void> {
  const options = signal === undefined ? {} : { signal };
  const info = await from.head(fromKey);
  if (info === undefined) throw new ObjectNotFound(fromKey);
  const path = join(tempDir, `${newId()}.object`);
  const sum = new RunningChecksum();
  const pieces = async function* (): AsyncGenerator<Uint8Array> {
    for await (const piece of readPieces(from, info, options)) {
      sum.add(piece);
      yield piece;
    }
  };
  try {
    await pipeline(Readable.from(pieces()), createWriteStream(path, { mode: 0o600 }));
    if (info.sizeBytes !== sizeBytes || sum.toString() !== checksum) throw new DamagedObject(fromKey);
    await to.putFile(toKey, path, options);
  } finally {
    await rm(path, { force: true });
  }
}

/** The checksum of an object's bytes as they are. */
export async function checksumIn(store: ObjectStore, info: ObjectInfo, signal?: AbortSignal): Promise<string> {
  const sum = new RunningChecksum();
  const identity = info.identity;
  for await (const piece of readPieces(store, { ...info, identity }, signal === undefined ? {} : { signal }))
    sum.add(piece);
  return sum.toString();
}

/** Runs a task for each item, so many at once; the first failure ends it once those that run have ended. */
export async function forEachAtOnce<T>(
  items: Iterable<T>,
  atOnce: number,
  task: (item: T) => Promise<void>,
): Promise<void> {
  const iterator = items[Symbol.iterator]();
  let hasFailed = false;
  const work = async (): Promise<void> => {
    for (let next = iterator.next(); next.done !== true && !hasFailed; next = iterator.next()) {
      try {
        await task(next.value);
      } catch (error) {
        hasFailed = true;
        throw error;
      }
    }
  };
  const outcomes = await Promise.allSettled(Array.from({ length: atOnce }, work));
  for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
}
