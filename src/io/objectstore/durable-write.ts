import { constants } from "node:fs";
import { copyFile, link, open, realpath, rm } from "node:fs/promises";
import { isPageAligned } from "../../core/buffer-pool.ts";
import { systemCodeOf } from "../../core/errors.ts";

/**
 * New files, complete and synced.
 *
 * A large one whose bytes start on a page goes past the page cache (`O_DIRECT`): the file is synced before it counts
 * anyway, so the cache would only copy it. For an extent of 700 KB that is 0.1 ms of CPU instead of 0.2, and instead of
 * 1.9 where the kernel has to fetch pages for the cache first. The price is that the first reader goes to the disk.
 * Where the file system has no direct writes (tmpfs, some network ones) or the system none (macOS), files are written
 * as usual.
 */

/** One read or write call carries at most this much, so that an abort is noticed between calls. */
export const IO_CALL_BYTES = 16 * 1024 * 1024;
/** Below this the two ways cost the same. */
const MIN_DIRECT_BYTES = 128 * 1024;
/** Direct writes end on a multiple of the device's block; no device in use has larger ones. */
const BLOCK_BYTES = 4096;

export class DurableWriter {
  /** The flag where direct writes are to be had, else 0. */
  #direct: number;

  /** `directFlag` is the system's `O_DIRECT`, 0 for none. */
  constructor(directFlag: number = constants.O_DIRECT ?? 0) {
    this.#direct = directFlag;
  }

  /** Creates the file with these bytes and syncs it. The rest of the bytes' last page may be read. */
  async write(path: string, bytes: Uint8Array, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    const fits = this.#direct !== 0 && bytes.byteLength >= MIN_DIRECT_BYTES && isPageAligned(bytes);
    if (fits && (await this.#writeDirect(path, bytes, signal))) return;
    await writeAll(path, { flags: CREATE, bytes, sizeBytes: bytes.byteLength, signal });
  }

  /**
   * Creates the file with the bytes of another one and syncs it: as a further name of that one where there can be one,
   * else as a copy, a piece at a time.
   */
  async adopt(path: string, from: string, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    const source = await realpath(from);
    if (await linked(source, path)) await secureAndSync(path);
    else await copyAll(source, path, signal);
  }

  /** Creates the file as a copy of another one and syncs it: a clone, where the file system has those. */
  async copy(path: string, from: string, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    await copyFile(from, path, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
    signal?.throwIfAborted();
    await secureAndSync(path);
  }

  /** False when the file system takes no direct writes; there is no such file then. */
  async #writeDirect(path: string, bytes: Uint8Array, signal: AbortSignal | undefined): Promise<boolean> {
    const blocks = Math.ceil(bytes.byteLength / BLOCK_BYTES);
    const padded = new Uint8Array(bytes.buffer, bytes.byteOffset, blocks * BLOCK_BYTES);
    try {
      await writeAll(path, { flags: CREATE | this.#direct, bytes: padded, sizeBytes: bytes.byteLength, signal });
      return true;
    } catch (error) {
      if (systemCodeOf(error) !== "EINVAL") throw error;
      this.#direct = 0;
      await rm(path, { force: true });
      return false;
    }
  }
}

/** What is said where the two cannot be one: another file system, none with such links, too many, or not allowed. */
const NO_LINK: ReadonlySet<string> = new Set(["EXDEV", "EPERM", "EMLINK", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EACCES"]);

/** Whether the file could be given the further name. */
async function linked(source: string, path: string): Promise<boolean> {
  try {
    await link(source, path);
    return true;
  } catch (error) {
    if (NO_LINK.has(systemCodeOf(error) ?? "")) return false;
    throw error;
  }
}

/** The file may have been written by a library, with a mode of its own. */
async function secureAndSync(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.chmod(FILE_MODE);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

const COPY_BYTES = 1024 * 1024;

async function copyAll(source: string, path: string, signal: AbortSignal | undefined): Promise<void> {
  const input = await open(source, "r");
  try {
    const output = await open(path, CREATE, FILE_MODE);
    try {
      const piece = Buffer.allocUnsafeSlow(COPY_BYTES);
      for (let got = 1; got > 0;) {
        signal?.throwIfAborted();
        got = (await input.read(piece, 0, piece.length)).bytesRead;
        for (let written = 0; written < got;) {
          written += (await output.write(piece, written, got - written)).bytesWritten;
        }
      }
      await output.sync();
    } finally {
      await output.close();
    }
  } finally {
    await input.close();
  }
}

/** Whatever the umask: extents hold the rows of every caller. */
const FILE_MODE = 0o600;

const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL;

type Write = { flags: number; bytes: Uint8Array; sizeBytes: number; signal: AbortSignal | undefined };

/** Writes all bytes, leaves the first `sizeBytes` of them, and syncs. */
async function writeAll(path: string, { flags, bytes, sizeBytes, signal }: Write): Promise<void> {
  const handle = await open(path, flags, FILE_MODE);
  try {
    for (let written = 0; written < bytes.length;) {
      signal?.throwIfAborted();
      const size = Math.min(IO_CALL_BYTES, bytes.length - written);
      written += (await handle.write(bytes, written, size)).bytesWritten;
    }
    if (sizeBytes < bytes.length) await handle.truncate(sizeBytes);
    await handle.sync();
  } finally {
    await handle.close();
  }
}
