import { constants, type BigIntStats } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { access, lstat, open, readdir, realpath, rename, unlink } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { Semaphore } from "../../core/concurrency.ts";
import { EngineError, StartupError, messageOf, systemCodeOf } from "../../core/errors.ts";
import type { Log } from "../../core/log.ts";
import type { Random } from "../../core/random.ts";
import { DurableWriter, IO_CALL_BYTES } from "./durable-write.ts";
import { DurableFolders, exists, makeFolderChain } from "./folders.ts";
import { ObjectChanged, ObjectNotFound, checkObjectKey, rangeOf } from "./objectstore.ts";
import type {
  CopyOptions,
  DeleteOptions,
  GetOptions,
  ListOptions,
  ObjectInfo,
  ObjectStore,
  PutOptions,
} from "./objectstore.ts";
import { identityOf, infoOf, isAbsence, walkObjects } from "./walk.ts";

/**
 * Objects as files of one local file system, key `a/b` at `<root>/a/b`.
 *
 *     put       open <root>/.tmp/<pid>-<random>.tmp, write, fsync, rename to its place, fsync the folder
 *     putFile   the same with a second name for the file (a hard link) instead of a new one, where they share a file
 *               system that has them, else with a copy
 *     delete    unlink, fsync the folder
 *
 * Large objects go past the page cache where they can (`durable-write.ts`).
 *
 * Temporary files have a folder of their own, so that what a crash left is found at the next start without walking the
 * whole store. That folder is also the mark of a data folder that is really there: it is made at open and never
 * again. When it is gone, the data folder was deleted, moved or unmounted under the running program, and every
 * operation says so (`unavailable`) instead of filling an empty folder or the mount point underneath; all goes on by
 * itself when it is back. A folder further down that is gone (somebody cleaned up by hand) is made again, with a
 * warning.
 *
 * Empty folders stay: there is one per table and day at most.
 */
export type FilesystemStoreOptions = {
  /** The data folder; made with its ancestors when missing. One program at a time should use it. */
  root: string;
  random: Random;
  log: Log;
  /** Nothing is made or changed, and the folder must be there. */
  readOnly?: true;
};

/** Opens the store. Throws `StartupError` when the folder can't be made or written. */
export async function openFilesystemStore(options: FilesystemStoreOptions): Promise<ObjectStore> {
  const root = resolve(options.root);
  const temporaries = join(root, TEMPORARIES);
  try {
    if (options.readOnly === true) {
      await access(temporaries, constants.R_OK);
      return new FilesystemStore(root, options.random, options.log);
    }
    await makeFolderChain(root);
    await makeFolderChain(temporaries);
    await access(temporaries, constants.R_OK | constants.W_OK | constants.X_OK);
    await sweepTemporaries(temporaries, options.log);
  } catch (error) {
    throw new StartupError(`the data folder ${root} cannot be used: ${messageOf(error)}`, 1, error);
  }
  return new FilesystemStore(root, options.random, options.log);
}

/** No object has such a name: key segments don't start with a dot. */
const TEMPORARIES = ".tmp";
const TEMPORARY_NAME = /^(\d+)-[0-9a-f]{16}\.tmp$/;

/** File operations run on a pool of four threads by default; a few more in waiting keep it busy. */
const CONCURRENT_WRITES = 8;
const CONCURRENT_READS = 8;
const CONCURRENT_DELETES = 8;

class FilesystemStore implements ObjectStore {
  readonly #root: string;
  readonly #temporaries: string;
  readonly #random: Random;
  readonly #log: Log;
  readonly #folders: DurableFolders;
  readonly #writer = new DurableWriter();
  readonly #writes = new Semaphore(CONCURRENT_WRITES);
  readonly #reads = new Semaphore(CONCURRENT_READS);
  readonly #deletes = new Semaphore(CONCURRENT_DELETES);
  #realRoot: string | undefined;

  constructor(root: string, random: Random, log: Log) {
    this.#root = root;
    this.#temporaries = join(root, TEMPORARIES);
    this.#random = random;
    this.#log = log;
    this.#folders = new DurableFolders(root);
  }

  localPath(key: string): string {
    return join(this.#root, checkObjectKey(key));
  }

  async put(key: string, bytes: Uint8Array, options?: PutOptions): Promise<void> {
    await this.#put(key, options, (temporary) => this.#writer.write(temporary, bytes, options?.signal));
  }

  async putFile(key: string, path: string, options?: PutOptions): Promise<void> {
    const write = (temporary: string): Promise<void> => this.#writer.adopt(temporary, path, options?.signal);
    const temporary = await this.#put(key, options, write);
    // To rename one name of a file to another of its names does nothing, and says that all is well.
    await this.#discard(temporary);
  }

  async copyFrom(source: ObjectStore, sourceKey: string, key: string, { signal }: CopyOptions): Promise<boolean> {
    const from = source.localPath?.(sourceKey);
    if (from === undefined) return false;
    if ((await source.head(sourceKey)) === undefined) throw new ObjectNotFound(sourceKey);
    await this.#put(key, undefined, (temporary) => this.#writer.copy(temporary, from, signal));
    return true;
  }

  /** Publishes the file that `write` makes, complete and synced, at the path it is given. Resolves to that path. */
  async #put(
    key: string,
    options: PutOptions | undefined,
    write: (temporary: string) => Promise<void>,
  ): Promise<string> {
    const target = this.localPath(key);
    return this.#writes.run(async () => {
      const temporary = join(this.#temporaries, this.#temporaryName());
      try {
        await write(temporary);
        options?.signal?.throwIfAborted();
        if (options?.isBesideOthers === true) await this.#publishBesideOthers(temporary, key);
        else await this.#publish(temporary, target);
        return temporary;
      } catch (error) {
        await this.#discard(temporary);
        throw await this.#explain(error, target);
      }
    });
  }

  async get(key: string, options?: GetOptions): Promise<Uint8Array<ArrayBuffer>> {
    const path = this.localPath(key);
    return this.#reads.run(async () => {
      options?.signal?.throwIfAborted();
      const identity = options?.identity;
      const handle = await this.#openObject(key, path, identity !== undefined);
      try {
        const stats = await handle.stat({ bigint: true });
        if (!stats.isFile()) throw new ObjectNotFound(key);
        if (identity !== undefined) await this.#assertSame(key, identity, stats);
        return await readRange(handle, rangeOf(Number(stats.size), options), options?.signal);
      } finally {
        await handle.close();
      }
    });
  }

  async head(key: string): Promise<ObjectInfo | undefined> {
    checkObjectKey(key);
    const info = await infoOf(this.#root, key);
    if (info === undefined) await this.#assertPresent();
    return info;
  }

  async *list(prefix: string, options?: ListOptions): AsyncGenerator<ObjectInfo> {
    const folderKey = prefix.slice(0, Math.max(0, prefix.lastIndexOf("/")));
    if (folderKey !== "") checkObjectKey(folderKey);
    await this.#assertPresent();
    const { startAfter = "", onUnreadable } = options ?? {};
    const unreadable = onUnreadable && { onUnreadable };
    yield* walkObjects(this.#root, folderKey, { prefix, startAfter: Buffer.from(startAfter), ...unreadable });
  }

  async delete(keys: readonly string[], options?: DeleteOptions): Promise<void> {
    if (options?.isBesideOthers === true) {
      for (const key of keys) await this.#deleteBesideOthers(key);
      return this.#assertPresent();
    }
    const byFolder = Map.groupBy(
      keys.map((key) => this.localPath(key)),
      (path) => dirname(path),
    );
    const tasks = [...byFolder].map(([folder, paths]) =>
      this.#deletes.run(() => this.#folders.change(folder, () => unlinkAll(paths))),
    );
    for (const outcome of await Promise.allSettled(tasks)) {
      // A folder that does not exist holds none of the keys, provided that the store itself is there.
      if (outcome.status === "rejected" && !isAbsence(outcome.reason)) throw outcome.reason;
    }
    await this.#assertPresent();
  }

  /** Renames a durable file to its place, and makes that durable. */
  async #publish(temporary: string, target: string): Promise<void> {
    const folder = dirname(target);
    try {
      await this.#folders.ensure(folder);
      await this.#rename(temporary, target);
    } catch (error) {
      if (systemCodeOf(error) !== "ENOENT") throw error;
      await this.#assertPresent();
      this.#log.warn({ folder }, "a folder of the object store was removed while in use; making it again");
      this.#folders.forget(folder);
      await this.#folders.ensure(folder);
      await this.#rename(temporary, target);
    }
  }

  async #publishBesideOthers(temporary: string, key: string): Promise<void> {
    const done = await this.#inOthersFolder(key, (path) => rename(temporary, path));
    if (!done) throw new ObjectChanged(key);
  }

  async #deleteBesideOthers(key: string): Promise<void> {
    await this.#inOthersFolder(key, (path) => unlinkAll([path]));
  }

  /**
   * Changes the entry of a key in a folder that others may replace at any time, and makes that durable. False when the
   * folder is not there without a link on the way. The folder is held open, and its entry named through that, so that a
   * link that is put in its place later is not followed; systems without `/proc` have the check alone.
   */
  async #inOthersFolder(key: string, change: (path: string) => Promise<void>): Promise<boolean> {
    checkObjectKey(key);
    const path = join(await this.#foundRealRoot(), key);
    try {
      const folder = await open(dirname(path), OPEN_FOREIGN | constants.O_DIRECTORY);
      try {
        const held = process.platform === "linux" ? `/proc/self/fd/${folder.fd}` : dirname(path);
        if ((await realpath(held)) !== dirname(path)) return false;
        await change(join(held, basename(path)));
        await folder.sync();
        return true;
      } finally {
        await folder.close();
      }
    } catch (error) {
      if (isAbsence(error) || systemCodeOf(error) === "ELOOP") return false;
      throw error;
    }
  }

  async #foundRealRoot(): Promise<string> {
    return (this.#realRoot ??= await realpath(this.#root));
  }

  async #rename(temporary: string, target: string): Promise<void> {
    let renamed = false;
    try {
      await this.#folders.change(dirname(target), async () => {
        await rename(temporary, target);
        renamed = true;
      });
    } catch (error) {
      // Not acknowledged, so nobody will ask for it.
      if (renamed) await this.#discard(target);
      throw error;
    }
  }

  async #openObject(key: string, path: string, isForeign: boolean): Promise<FileHandle> {
    try {
      return await open(path, isForeign ? OPEN_FOREIGN : constants.O_RDONLY);
    } catch (error) {
      if (systemCodeOf(error) === "ELOOP") throw new ObjectChanged(key);
      if (!isAbsence(error)) throw error;
      await this.#assertPresent();
      throw new ObjectNotFound(key);
    }
  }

  /** Throws unless the open file is the listed one, and is where its key says without a link on the way. */
  async #assertSame(key: string, identity: string, opened: BigIntStats): Promise<void> {
    if (identityOf(opened) !== identity) throw new ObjectChanged(key);
    const expected = join(await this.#foundRealRoot(), key);
    try {
      const real = await realpath(expected);
      const { dev, ino } = await lstat(real, { bigint: true });
      if (real === expected && dev === opened.dev && ino === opened.ino) return;
    } catch (error) {
      if (!isAbsence(error)) throw error;
    }
    throw new ObjectChanged(key);
  }

  async #assertPresent(): Promise<void> {
    if (await exists(this.#temporaries)) return;
    throw new EngineError(
      "unavailable",
      `the data folder ${this.#root} has vanished: it was deleted, moved or unmounted while in use ` +
        `(its ${TEMPORARIES} folder is missing); bring it back, or restart to begin with an empty one`,
    );
  }

  /** Removes a file that nobody will ask for; at worst it takes up space. */
  async #discard(path: string): Promise<void> {
    try {
      await unlink(path);
    } catch (error) {
      if (!isAbsence(error)) this.#log.warn({ path, err: error }, "a leftover file could not be removed");
    }
  }

  async #explain(error: unknown, target: string): Promise<unknown> {
    const code = systemCodeOf(error);
    const reason = code === undefined ? undefined : REFUSALS[code];
    if (reason !== undefined) {
      return new EngineError("insufficient_storage", `${target} cannot be written: ${reason} (${code})`, {
        cause: error,
      });
    }
    if (code === "ENOENT") await this.#assertPresent();
    return error;
  }

  #temporaryName(): string {
    const suffix = Buffer.from(this.#random.fill(new Uint8Array(8))).toString("hex");
    return `${process.pid}-${suffix}.tmp`;
  }
}

/** For files that others wrote: a link is not followed, and a pipe not waited for. */
const OPEN_FOREIGN = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** System errors that say: this place takes no more bytes. */
const REFUSALS: Readonly<Record<string, string>> = {
  ENOSPC: "no space left on the device",
  EDQUOT: "the disk quota is used up",
  EROFS: "the file system is read-only",
  EFBIG: "the file would be larger than is allowed here",
};

async function readRange(
  handle: FileHandle,
  range: { start: number; end: number },
  signal: AbortSignal | undefined,
): Promise<Uint8Array<ArrayBuffer>> {
  const sizeBytes = range.end - range.start;
  // Not zero-filled: every byte is read below, or the call fails.
  const { buffer } = Buffer.allocUnsafeSlow(sizeBytes);
  const bytes = new Uint8Array(buffer);
  for (let filled = 0; filled < sizeBytes;) {
    signal?.throwIfAborted();
    const size = Math.min(IO_CALL_BYTES, sizeBytes - filled);
    const { bytesRead } = await handle.read(bytes, filled, size, range.start + filled);
    if (bytesRead === 0) throw new Error("the object became shorter while it was read");
    filled += bytesRead;
  }
  return bytes;
}

/** Unlinks all that can be, then throws the first failure. A folder of that name is no object. */
async function unlinkAll(paths: readonly string[]): Promise<void> {
  const failures: unknown[] = [];
  for (const path of paths) {
    try {
      await unlink(path);
    } catch (error) {
      if (!isAbsence(error) && systemCodeOf(error) !== "EISDIR") failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}

/**
 * Removes temporary files of processes that are gone. Another live process (on the same folder against the rule above)
 * keeps its own; from inside another container it looks dead, and then its `put` fails, which loses nothing.
 */
async function sweepTemporaries(folder: string, log: Log): Promise<void> {
  let swept = 0;
  for (const name of await readdir(folder)) {
    const pid = TEMPORARY_NAME.exec(name)?.[1];
    if (pid === undefined || (Number(pid) !== process.pid && isAlive(Number(pid)))) continue;
    await unlink(join(folder, name));
    swept++;
  }
  if (swept > 0) log.info({ folder, swept }, "removed temporary files of an earlier run");
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return systemCodeOf(error) === "EPERM";
  }
}
