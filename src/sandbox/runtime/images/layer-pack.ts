import { isUtf8 } from "node:buffer";
import type { BigIntStats } from "node:fs";
import { constants } from "node:fs";
import { lstat, open, readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { runProgram } from "../mounts.ts";
import { ID_COUNT } from "../runtime.ts";
import { ArchiveError } from "../../../io/tar/archive-error.ts";
import { headerBlocks, padding, TAR_END, type TarHeader } from "../../../io/tar/tar-format.ts";
import { MAX_ENTRIES } from "../../contract/images/image.ts";

/**
 * A layer as an archive: tar in which, as in OCI image layers, an empty file `.wh.NAME` says that NAME of the layers
 * below is gone, and one called `.wh..wh..opq` that nothing below its folder shows. The same files make the same bytes:
 * entries are sorted, ids are those of the machine, times are whole seconds. Left out are sockets, pipes and extended
 * attributes.
 */
export const WHITEOUT_PREFIX = ".wh.";
export const OPAQUE_NAME = ".wh..wh..opq";

export type PackOptions = {
  /** The upper folder of the machine's overlay. */
  changes: string;
  /** What the machine sees: for folders that were moved there from below. */
  merged: string;
  /** The host's id of a machine's id 0. */
  firstHostId: number;
  /** Of all files together. */
  maxBytes: number;
  /** Paths, relative to the root, that are not the image's. */
  leaveOut: readonly string[];
};

/** The bytes of the archive, not compressed. Throws `ArchiveError` for what it cannot hold. */
export async function* packLayer(options: PackOptions): AsyncGenerator<Buffer, { unpackedBytes: number }> {
  const packer = new Packer(options, await marksIn(options.changes));
  yield* packer.folder("", "changes");
  yield TAR_END;
  return { unpackedBytes: packer.unpackedBytes };
}

const PROGRAM = fileURLToPath(new URL("./overlay-marks.pl", import.meta.url));

type Marks = { opaque: ReadonlySet<string>; moved: ReadonlySet<string> };

async function marksIn(changes: string): Promise<Marks> {
  const text = await runProgram("perl", [PROGRAM, process.arch, changes]);
  const marks = { opaque: new Set<string>(), moved: new Set<string>() };
  for (const line of text.split("\0")) {
    if (line.startsWith("opaque ")) marks.opaque.add(line.slice("opaque ".length));
    else if (line.startsWith("moved ")) marks.moved.add(line.slice("moved ".length));
  }
  return marks;
}

const CHUNK_BYTES = 256 * 1024;
/** What an entry takes beside its content, about. */
const ENTRY_BYTES = 512;

class Packer {
  unpackedBytes = 0;
  readonly #options: PackOptions;
  readonly #marks: Marks;
  readonly #leaveOut: ReadonlySet<string>;
  /** Where a file with several names is in the archive. */
  readonly #linked = new Map<string, string>();
  #entries = 0;

  constructor(options: PackOptions, marks: Marks) {
    this.#options = options;
    this.#marks = marks;
    this.#leaveOut = new Set(options.leaveOut);
  }

  /** What is in a folder, from the changes alone, or with all that shows there. */
  async *folder(path: string, side: "changes" | "merged"): AsyncGenerator<Buffer> {
    for (const name of await namesIn(join(this.#options[side], path))) {
      const below = path === "" ? name : `${path}/${name}`;
      if (!this.#leaveOut.has(below)) yield* this.#entry(below, name, side);
    }
  }

  async *#entry(path: string, name: string, side: "changes" | "merged"): AsyncGenerator<Buffer> {
    const full = join(this.#options[side], path);
    const stats = await lstat(full, { bigint: true });
    if (stats.isCharacterDevice() && stats.rdev === 0n) {
      const gone = join(path, "..", `${WHITEOUT_PREFIX}${name}`);
      yield this.#header({ ...PLAIN, path: gone });
      return;
    }
    if (name.startsWith(WHITEOUT_PREFIX))
      throw new ArchiveError(`${path}: an image has no names with ${WHITEOUT_PREFIX}`);
    const header = { ...this.#common(path, stats), path, target: "", sizeBytes: 0 };
    if (stats.isDirectory()) {
      yield this.#header({ ...header, type: "folder" });
      yield* this.#below(path, side);
    } else if (stats.isSymbolicLink()) {
      yield this.#header({ ...header, type: "symlink", target: await targetOf(full) });
    } else if (stats.isFile()) {
      yield* this.#file(full, { ...header, type: "file", sizeBytes: Number(stats.size) }, stats);
    }
  }

  async *#below(path: string, side: "changes" | "merged"): AsyncGenerator<Buffer> {
    const isMoved = side === "changes" && this.#marks.moved.has(path);
    if (isMoved || (side === "changes" && this.#marks.opaque.has(path))) {
      yield this.#header({ ...PLAIN, path: `${path}/${OPAQUE_NAME}` });
    }
    yield* this.folder(path, isMoved ? "merged" : side);
  }

  async *#file(full: string, header: TarHeader, stats: BigIntStats): AsyncGenerator<Buffer> {
    if (stats.nlink > 1n) {
      const key = `${stats.dev}:${stats.ino}`;
      const first = this.#linked.get(key);
      if (first !== undefined) {
        yield this.#header({ ...header, type: "link", target: first, sizeBytes: 0 });
        return;
      }
      this.#linked.set(key, header.path);
    }
    yield this.#header(header);
    yield* contentOf(full, header.sizeBytes);
    yield padding(header.sizeBytes);
  }

  #header(header: TarHeader): Buffer {
    this.#entries++;
    this.unpackedBytes += header.sizeBytes + ENTRY_BYTES;
    const { maxBytes } = this.#options;
    if (this.unpackedBytes > maxBytes) throw new ArchiveError(`the image's files are larger than ${maxBytes} bytes`);
    if (this.#entries > MAX_ENTRIES) throw new ArchiveError(`the image has more than ${MAX_ENTRIES} files`);
    return headerBlocks(header);
  }

  #common(
    path: string,
    { mode, uid, gid, mtimeNs }: BigIntStats,
  ): Omit<TarHeader, "path" | "type" | "target" | "sizeBytes"> {
    const { firstHostId } = this.#options;
    const [inUid, inGid] = [Number(uid) - firstHostId, Number(gid) - firstHostId];
    if (![inUid, inGid].every((id) => id >= 0 && id < ID_COUNT)) {
      throw new ArchiveError(`${path} belongs to somebody whom machines do not have`);
    }
    const modifiedSecs = Math.max(0, Number(mtimeNs / 1_000_000_000n));
    return { mode: Number(mode) & 0o7777, uid: inUid, gid: inGid, modifiedSecs };
  }
}

const PLAIN = { type: "file", mode: 0o644, uid: 0, gid: 0, sizeBytes: 0, modifiedSecs: 0, target: "" } as const;

/** Bytewise sorted. */
async function namesIn(folder: string): Promise<string[]> {
  const names = await readdir(folder, { encoding: "buffer" });
  return names.toSorted((a, b) => Buffer.compare(a, b)).map((name) => textOf(name, folder));
}

async function targetOf(path: string): Promise<string> {
  return textOf(await readlink(path, { encoding: "buffer" }), path);
}

function textOf(name: Buffer, where: string): string {
  if (!isUtf8(name)) throw new ArchiveError(`${where}: a name is not UTF-8`);
  return name.toString("utf8");
}

async function* contentOf(path: string, sizeBytes: number): AsyncGenerator<Buffer> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    for (let at = 0; at < sizeBytes;) {
      const length = Math.min(CHUNK_BYTES, sizeBytes - at);
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(length), 0, length, at);
      if (bytesRead === 0) throw new ArchiveError(`${path} became shorter while it was read`);
      at += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}
