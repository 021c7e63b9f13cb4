import { constants } from "node:fs";
import {
  chmod,
  chown,
  lchown,
  link,
  lstat,
  lutimes,
  mkdir,
  open,
  readdir,
  rm,
  symlink,
  utimes,
} from "node:fs/promises";
import { join } from "node:path";
import { systemCodeOf } from "../../../core/errors.ts";
import { ID_COUNT } from "../runtime.ts";
import { ArchiveError } from "../../../io/tar/archive-error.ts";
import { ByteReader } from "../../../io/tar/byte-reader.ts";
import { BLOCK_BYTES, parseExtended, parseHeader, type ParsedHeader } from "../../../io/tar/tar-format.ts";
import { MAX_ENTRIES } from "../../contract/images/image.ts";
import { OPAQUE_NAME, WHITEOUT_PREFIX } from "./layer-pack.ts";

const MAX_PATH_BYTES = 4_096;
const MAX_NAME_BYTES = 255;
const MAX_EXTENDED_BYTES = 16 * 1024;

/**
 * Applies a layer to a folder that has the layers below it already, file by file: nothing is ever written through a
 * link, and a file that was there is replaced, never changed, for others may have it under another name. Archives are
 * not trusted: every path must stay inside, and there are no devices.
 *
 * Rejects with `ArchiveError`; then the folder is to be thrown away.
 *
 * @param tar the bytes of the archive, decompressed
 * @param maxBytes of all that it unpacks to
 */
export async function unpackLayer(tar: AsyncIterable<Uint8Array>, root: string, maxBytes: number): Promise<void> {
  const reader = new ByteReader(tar);
  const unpacker = new Unpacker(root, maxBytes, reader);
  while (await unpacker.next());
  await unpacker.finish();
  await reader.expectEnd();
}

class Unpacker {
  readonly #root: string;
  readonly #maxBytes: number;
  readonly #reader: ByteReader;
  /** Folders of which it is known that no link leads there. */
  readonly #folders = new Set<string>([""]);
  /** What this layer has made, by its path: whether it is a file. */
  readonly #made = new Map<string, boolean>();
  readonly #times: { path: string; secs: number }[] = [];
  #bytes = 0;

  constructor(root: string, maxBytes: number, reader: ByteReader) {
    this.#root = root;
    this.#maxBytes = maxBytes;
    this.#reader = reader;
  }

  /** Takes an entry; false at the end of the archive. */
  async next(): Promise<boolean> {
    const header = await this.#header();
    if (header === undefined) {
      if ((await this.#header()) !== undefined) throw new ArchiveError("the archive goes on after its end");
      return false;
    }
    this.#bytes += header.sizeBytes + BLOCK_BYTES;
    if (!Number.isSafeInteger(header.sizeBytes) || header.sizeBytes < 0 || this.#bytes > this.#maxBytes) {
      throw new ArchiveError(`the archive unpacks to more than ${this.#maxBytes} bytes`);
    }
    if (this.#made.size >= MAX_ENTRIES) throw new ArchiveError(`the archive has more than ${MAX_ENTRIES} entries`);
    await this.#apply(header);
    return true;
  }

  /** Folders get their times when nothing more is put into them. */
  async finish(): Promise<void> {
    for (const { path, secs } of this.#times.reverse()) {
      if (this.#made.has(path)) await utimes(join(this.#root, path), secs, secs);
    }
  }

  async #header(): Promise<ParsedHeader | undefined> {
    const header = parseHeader(await this.#reader.take(BLOCK_BYTES));
    if (header?.type !== "extended") return header;
    if (header.sizeBytes > MAX_EXTENDED_BYTES) throw new ArchiveError("an extended header of the archive is too long");
    const more = parseExtended(await this.#reader.take(header.sizeBytes));
    await this.#reader.skipPadding(header.sizeBytes);
    const next = parseHeader(await this.#reader.take(BLOCK_BYTES));
    if (next === undefined || next.type === "extended")
      throw new ArchiveError("an extended header is followed by none");
    return { ...next, ...more };
  }

  async #apply(header: ParsedHeader): Promise<void> {
    const path = checkedPath(header.type === "folder" ? header.path.replace(/\/$/, "") : header.path);
    const [parent, name] = partsOf(path);
    await this.#checkFolder(parent);
    if (header.type !== "file" && header.sizeBytes !== 0) throw new ArchiveError(`${path} has content and is no file`);
    if (name.startsWith(WHITEOUT_PREFIX)) {
      if (header.type !== "file" || header.sizeBytes !== 0) throw new ArchiveError(`${path} is not an empty file`);
      await (name === OPAQUE_NAME ? this.#clear(parent) : this.#remove(parent, name.slice(WHITEOUT_PREFIX.length)));
      return;
    }
    if (this.#made.has(path)) throw new ArchiveError(`${path} is there twice`);
    if (![header.uid, header.gid].every((id) => id < ID_COUNT))
      throw new ArchiveError(`${path} has an owner out of range`);
    if (header.mode > 0o7777) throw new ArchiveError(`${path} has a mode out of range`);
    if (header.type === "folder") await this.#makeFolder(path, header);
    else await this.#makeOther(path, header);
    this.#made.set(path, header.type === "file" || header.type === "link");
  }

  async #makeFolder(path: string, { mode, uid, gid, modifiedSecs }: ParsedHeader): Promise<void> {
    const full = join(this.#root, path);
    if (!(await isFolder(full))) {
      await this.#replace(path);
      await mkdir(full);
    }
    await chown(full, uid, gid);
    await chmod(full, mode);
    this.#folders.add(path);
    this.#times.push({ path, secs: modifiedSecs });
  }

  async #makeOther(path: string, header: ParsedHeader): Promise<void> {
    await this.#replace(path);
    const full = join(this.#root, path);
    const { type, uid, gid, modifiedSecs, target } = header;
    if (type === "file") await this.#writeFile(full, header);
    else if (type === "symlink") {
      if (target === "" || target.includes("\0")) throw new ArchiveError(`${path} leads nowhere`);
      await symlink(target, full);
      await lchown(full, uid, gid);
      await lutimes(full, modifiedSecs, modifiedSecs);
    } else {
      // Only to what this layer has made: a file of the layers below may belong to other images as well.
      const other = checkedPath(target);
      if (this.#made.get(other) !== true) throw new ArchiveError(`${path} is a link to what is not in the archive`);
      await link(join(this.#root, other), full);
    }
  }

  async #writeFile(full: string, { mode, uid, gid, sizeBytes, modifiedSecs }: ParsedHeader): Promise<void> {
    const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
    const file = await open(full, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
    try {
      for await (const piece of this.#reader.pieces(sizeBytes)) await file.writeFile(piece);
      await file.chown(uid, gid);
      // After the owner: a change of that takes bits away.
      await file.chmod(mode);
      await file.utimes(modifiedSecs, modifiedSecs);
    } finally {
      await file.close();
    }
    await this.#reader.skipPadding(sizeBytes);
  }

  /** Makes room for something else of this name. */
  async #replace(path: string): Promise<void> {
    this.#forgetFolder(path);
    await rm(join(this.#root, path), { recursive: true, force: true });
  }

  async #remove(parent: string, name: string): Promise<void> {
    const path = checkedPath(parent === "" ? name : `${parent}/${name}`);
    if (this.#made.has(path)) throw new ArchiveError(`${path} is there and gone`);
    await this.#replace(path);
  }

  async #clear(folder: string): Promise<void> {
    const inside = `${folder}/`;
    if ([...this.#made.keys()].some((path) => folder === "" || path.startsWith(inside))) {
      throw new ArchiveError(`${folder} is cleared after something was put into it`);
    }
    for (const name of await readdir(join(this.#root, folder)))
      await this.#replace(folder === "" ? name : inside + name);
  }

  #forgetFolder(path: string): void {
    // Those below a folder are known only where it is.
    if (!this.#folders.has(path)) return;
    for (const folder of this.#folders)
      if (folder === path || folder.startsWith(`${path}/`)) this.#folders.delete(folder);
  }

  /** Throws unless every step to it is a folder, and no link. */
  async #checkFolder(path: string): Promise<void> {
    if (this.#folders.has(path)) return;
    const [parent] = partsOf(path);
    await this.#checkFolder(parent);
    if (!(await isFolder(join(this.#root, path)))) throw new ArchiveError(`${path} is not a folder`);
    this.#folders.add(path);
  }
}

/** Throws `ArchiveError` for a path that is absolute, has steps that lead up, or is too long. */
function checkedPath(path: string): string {
  const isAccepted =
    Buffer.byteLength(path) <= MAX_PATH_BYTES &&
    !path.includes("\0") &&
    path
      .split("/")
      .every((name) => name !== "" && name !== "." && name !== ".." && Buffer.byteLength(name) <= MAX_NAME_BYTES);
  if (isAccepted) return path;
  throw new ArchiveError(`the archive has the path ${JSON.stringify(path.slice(0, 200))}`);
}

function partsOf(path: string): [parent: string, name: string] {
  const slash = path.lastIndexOf("/");
  return slash === -1 ? ["", path] : [path.slice(0, slash), path.slice(slash + 1)];
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isDirectory();
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT" || systemCodeOf(error) === "ENOTDIR") return false;
    throw error;
  }
}
