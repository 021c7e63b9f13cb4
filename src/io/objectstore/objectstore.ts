/**
 * The object store: named, immutable byte strings.
 *
 * Keys are `/`-separated segments (`checkObjectKey` has the alphabet); no key is a prefix folder of another. An object
 * is written once, whole, and never changed: a second `put` under one key is a mistake of the caller, and replaces the
 * object whole. `put` resolves only when the bytes would survive a power cut; a `put` that failed may or may not have
 * left an object behind, and is followed by a new key, never by a retry that assumes nothing happened. `delete` of a
 * missing key is no error.
 *
 * Drivers: `filesystem.ts`. `faulty.ts` wraps any driver for tests: it fails, delays, tears and forgets.
 * `contract.ts` is the test suite that every driver passes.
 */
export interface ObjectStore {
  /** Writes an object durably. A full or read-only store is an `EngineError` `insufficient_storage`. */
  put(key: string, bytes: Uint8Array, options?: PutOptions): Promise<void>;
  /**
   * Writes the bytes of a local file as an object, in every other way like `put`, with a bounded part of them in memory
   * whatever its size. Nobody may change the file from now on; it may be deleted once this has settled.
   */
  putFile(key: string, path: string, options?: PutOptions): Promise<void>;
  /**
   * Reads an object, or `length` bytes of it from `offset`; throws `ObjectNotFound`. A range that reaches past the end
   * is cut short there, and one that starts past it is empty. The bytes have a buffer of their own (transferable).
   * Throws `ObjectChanged` when `identity` is given and the object is another one by now.
   */
  get(key: string, options?: GetOptions): Promise<Uint8Array<ArrayBuffer>>;
  /** Size and identity of an object; undefined when there is none. */
  head(key: string): Promise<ObjectInfo | undefined>;
  /** Objects whose keys start with `prefix`, in the order of their keys (bytewise), strictly after `startAfter`. */
  list(prefix: string, options?: ListOptions): AsyncIterable<ObjectInfo>;
  /** Deletes objects durably; missing ones are ignored. All are tried before a failure is thrown. */
  delete(keys: readonly string[], options?: DeleteOptions): Promise<void>;
  /**
   * Copies an object of another store, in every other way like `put`, without its bytes coming through this program: as a
   * clone of a file, or within one S3 server. False, and nothing is done, where these two stores cannot. Throws
   * `ObjectNotFound` when it is not there.
   */
  copyFrom?(source: ObjectStore, sourceKey: string, key: string, options: CopyOptions): Promise<boolean>;
  /** Where the object can be opened as a local file, for drivers that have such a place. */
  localPath?(key: string): string;
}

export type PutOptions = {
  signal?: AbortSignal;
  /**
   * For objects beside those that others write: the folder must be where its key says, without a symbolic link on the
   * way. Throws `ObjectChanged` otherwise, and where there is no such folder.
   */
  isBesideOthers?: boolean;
};

/** The object's size is what the caller knows of it. */
export type CopyOptions = Pick<PutOptions, "signal"> & { sizeBytes: number };

/** `isBesideOthers`: as with `put`; what is behind a link is not there. */
export type DeleteOptions = Pick<PutOptions, "isBesideOthers">;

export type ListOptions = {
  startAfter?: string;
  /**
   * Is told of a folder that this process may not read, by its key with a slash at its end, before a key comes that
   * sorts behind it. What is in it is left out. Without this, such a folder fails the listing.
   */
  onUnreadable?: (folder: string, error: Error) => void;
};

export type GetOptions = {
  offset?: number;
  length?: number;
  /**
   * What the object was when it was listed. Of a file that others wrote this also refuses to follow symbolic links: the
   * bytes are those of the listed file or there is an error.
   */
  identity?: string;
  signal?: AbortSignal;
};

export type ObjectInfo = {
  key: string;
  sizeBytes: number;
  modifiedAtMs: number;
  /**
   * Changes when somebody writes other bytes under the key: the ETag of an S3 store, size, time of change (in
   * nanoseconds) and inode of a local file. Only objects that others write ever change.
   */
  identity: string;
};

export class ObjectNotFound extends Error {
  readonly key: string;
  constructor(key: string) {
    super(`no object ${key}`);
    this.name = "ObjectNotFound";
    this.key = key;
  }
}

/** The object is not the one that was listed: somebody wrote it anew, or put a link in its place. */
export class ObjectChanged extends Error {
  readonly key: string;
  constructor(key: string) {
    super(`the object ${key} has changed since it was listed`);
    this.name = "ObjectChanged";
    this.key = key;
  }
}

/** A key outside the accepted alphabet: always a mistake of the calling code, never of a client. */
export class InvalidObjectKey extends Error {
  constructor(key: string, problem: string) {
    super(`object key ${JSON.stringify(key.length > 80 ? `${key.slice(0, 80)}…` : key)} ${problem}`);
    this.name = "InvalidObjectKey";
  }
}

const KEY_BYTES = 1_024;
const SEGMENT_BYTES = 255;
// oxlint-disable-next-line no-control-regex -- control characters are what it is about
const CONTROL = /[\u0000-\u001f\u007f]/;

/**
 * Returns `key` when it is acceptable: at most 1,024 bytes of UTF-8 without control characters, in segments of 1 to
 * 255 bytes, none of which starts with a dot (that excludes `.` and `..`, and leaves dotted names to the drivers).
 * These are S3's limits met with those of file systems. Throws `InvalidObjectKey`.
 */
export function checkObjectKey(key: string): string {
  if (Buffer.byteLength(key) > KEY_BYTES) throw new InvalidObjectKey(key, `is longer than ${KEY_BYTES} bytes`);
  if (CONTROL.test(key)) throw new InvalidObjectKey(key, "holds a control character");
  if (!key.isWellFormed()) throw new InvalidObjectKey(key, "is not well-formed Unicode");
  for (const segment of key.split("/")) {
    if (segment === "") throw new InvalidObjectKey(key, "has an empty segment");
    if (segment.startsWith(".")) throw new InvalidObjectKey(key, "has a segment that starts with a dot");
    if (Buffer.byteLength(segment) > SEGMENT_BYTES) {
      throw new InvalidObjectKey(key, `has a segment longer than ${SEGMENT_BYTES} bytes`);
    }
  }
  return key;
}

/** The part `[start, end)` of an object of `sizeBytes` that the options ask for. Throws RangeError on nonsense. */
export function rangeOf(sizeBytes: number, options: GetOptions | undefined): { start: number; end: number } {
  const { offset = 0, length = Number.MAX_SAFE_INTEGER } = options ?? {};
  for (const value of [offset, length]) {
    if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`not a byte count: ${value}`);
  }
  const start = Math.min(offset, sizeBytes);
  return { start, end: start + Math.min(length, sizeBytes - start) };
}

const RESTORED_FOLDER = /^(.+)@(\d{13})$/;

/** What `objectKeys.restored` put into the folder of a staged write; undefined for one that was not restored. */
export function restoredFolder(folder: string): { node: string; reachedAtMs: number } | undefined {
  const [, node, ms] = RESTORED_FOLDER.exec(folder) ?? [];
  return node === undefined ? undefined : { node, reachedAtMs: Number(ms) };
}

/** Every object key that the engine writes. */
export const objectKeys = {
  extent(e: { prefix: string; database: string; table: string; day: string; id: string; format: string }): string {
    return `${e.prefix}/${e.database}/${e.table}/${e.day}/${e.id}.${e.format}`;
  },
  /** A staged write of an ingest node. No database's name starts with `_`. */
  staged(s: { prefix: string; node: string; id: string }): string {
    return `${objectKeys.allStaged(s.prefix)}${s.node}/${s.id}`;
  },
  /**
   * A staged write that came back from a backup. Whether a write was late for its keys is judged by when it reached the
   * store; the store that it was restored to knows another time, so the folder's name keeps the first.
   */
  restored(key: string, reachedAtMs: number): string {
    const [id, folder, ...rest] = key.split("/").toReversed();
    const known =
      restoredFolder(folder ?? "") === undefined ? `${folder}@${String(reachedAtMs).padStart(13, "0")}` : folder;
    return [id, known, ...rest].toReversed().join("/");
  },
  /** What the keys of all staged writes start with. */
  allStaged: (prefix: string): string => `${prefix}/_staged/`,
  /** The result of an export, written under that fence of its job. */
  exported(e: { prefix: string; database: string; jobId: string; fence: number }): string {
    return `${objectKeys.allExports(e.prefix)}${e.database}/${e.jobId}/${e.fence}.parquet`;
  },
  /** What the keys of the results of all exports start with. */
  allExports: (prefix: string): string => `${prefix}/_exports/`,
  /** A part of what an image build wrote, under that fence of its job. */
  imagePart(i: { prefix: string; buildId: string; fence: number; part: number }): string {
    return `${objectKeys.imageParts(i)}${i.fence}/${i.part}`;
  },
  /** What the keys of all that an image build wrote start with. */
  imageParts: (i: { prefix: string; buildId: string }): string => `${i.prefix}/_images/${i.buildId}/`,
  /** What the keys of all damaged staged writes start with: they were set aside, each with its `.reason`. */
  allDamaged: (prefix: string): string => `${prefix}/_damaged/`,
  /** What the keys of all that image builds wrote start with. */
  allImages: (prefix: string): string => `${prefix}/_images/`,
};
