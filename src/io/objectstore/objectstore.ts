/**
 * The object store: named, immutable byte strings.
 *
 * Keys are `/`-separated segments of at most 255 bytes without `.` and `..`; no key is a prefix folder of another.
 * An object is written once, whole, and never changed. `put` resolves only when the bytes would survive a power cut;
 * a `put` that failed may or may not have left an object behind, and is followed by a new key, never by a retry that
 * assumes nothing happened. `delete` of a missing key is no error.
 *
 * Drivers: `filesystem.ts`. `faulty.ts` wraps any driver for tests: it fails, delays, tears and forgets.
 * `contract.ts` is the test suite that every driver passes.
 */
export interface ObjectStore {
  /** Writes an object durably. */
  put(key: string, bytes: Uint8Array, options?: { signal?: AbortSignal }): Promise<void>;
  /** Reads an object, or `length` bytes of it from `offset`; throws `ObjectNotFound`. */
  get(key: string, options?: { offset?: number; length?: number; signal?: AbortSignal }): Promise<Uint8Array>;
  /** Size of an object; undefined when there is none. */
  head(key: string): Promise<ObjectInfo | undefined>;
  /** Objects below a prefix in the order of their keys (bytewise), strictly after `startAfter`. */
  list(prefix: string, options?: { startAfter?: string }): AsyncIterable<ObjectInfo>;
  /** Deletes objects durably; missing ones are ignored. */
  delete(keys: readonly string[]): Promise<void>;
  /** Where the object can be opened as a local file, for drivers that have such a place. */
  localPath?(key: string): string;
}

export type ObjectInfo = { key: string; sizeBytes: number; modifiedAtMs: number };

export class ObjectNotFound extends Error {
  readonly key: string;
  constructor(key: string) {
    super(`no object ${key}`);
    this.name = "ObjectNotFound";
    this.key = key;
  }
}

/** Every object key that the engine writes. */
export const objectKeys = {
  extent(e: { prefix: string; database: string; table: string; day: string; id: string; format: string }): string {
    return `${e.prefix}/${e.database}/${e.table}/${e.day}/${e.id}.${e.format}`;
  },
};
