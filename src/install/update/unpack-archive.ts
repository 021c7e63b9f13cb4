import { createReadStream } from "node:fs";
import { mkdir, open } from "node:fs/promises";
import { join } from "node:path";
import { createGunzip } from "node:zlib";
import { pipeline } from "node:stream/promises";
import { ArchiveError } from "../../io/tar/archive-error.ts";
import { ByteReader } from "../../io/tar/byte-reader.ts";
import { BLOCK_BYTES, parseExtended, parseHeader, type ParsedHeader } from "../../io/tar/tar-format.ts";
import { syncFile, syncFolder } from "../../core/durable-file.ts";

const MAX_UNPACKED_BYTES = 4 * 2 ** 30;
const MAX_ENTRIES = 100_000;
const MAX_EXTENDED_BYTES = 16 * 1024;
const MAX_PATH_BYTES = 1_024;
/** Programs that make archives write records of 10 KiB, and some larger ones. */
const MAX_FILLING_BYTES = 1024 * 1024;

/**
 * Unpacks an archive of a release (tar, gzip) into a folder that is empty. There are files and folders in it, and
 * nothing else: no link can lead out, and no path has a step that could. Everything is durable once it resolves.
 *
 * @throws ArchiveError; then the folder is to be thrown away
 */
export async function unpackArchive(file: string, folder: string): Promise<void> {
  const gunzip = createGunzip();
  const fed = pipeline(createReadStream(file), gunzip).catch((error: unknown) => error);
  const made = new Made(folder);
  try {
    await unpack(new ByteReader(gunzip), made);
  } catch (error) {
    gunzip.destroy();
    // What broke the stream says more than that it broke; which of the two tells it first is chance.
    const broken = [error, await fed].find(isDamage);
    throw broken === undefined
      ? error
      : new ArchiveError(`the archive is damaged: ${broken.message}`, { cause: broken });
  }
  await made.sync();
}

/** What zlib says of bytes that it cannot read. */
function isDamage(error: unknown): error is Error {
  return error instanceof Error && "code" in error && String(error.code).startsWith("Z_");
}

async function unpack(reader: ByteReader, made: Made): Promise<void> {
  let unpackedBytes = 0;
  for (let entries = 0; ; entries++) {
    const header = await nextHeader(reader);
    // The checksum of the whole comes last.
    if (header === undefined) return reader.expectFilling(MAX_FILLING_BYTES);
    unpackedBytes += header.sizeBytes;
    if (entries >= MAX_ENTRIES) throw new ArchiveError(`the archive has more than ${MAX_ENTRIES} entries`);
    if (!(unpackedBytes <= MAX_UNPACKED_BYTES)) {
      throw new ArchiveError(`the archive unpacks to more than ${MAX_UNPACKED_BYTES} bytes`);
    }
    const path = checkedPath(header.path.replace(/\/$/, ""));
    if (header.type === "folder") await made.folder(path);
    else if (header.type === "file") {
      await made.file(path, (header.mode & 0o111) === 0 ? 0o644 : 0o755, reader.pieces(header.sizeBytes));
      await reader.skipPadding(header.sizeBytes);
    } else throw new ArchiveError(`${path} is neither a file nor a folder`);
  }
}

async function nextHeader(reader: ByteReader): Promise<ParsedHeader | undefined> {
  const header = parseHeader(await reader.take(BLOCK_BYTES));
  if (header?.type !== "extended") return header;
  if (header.sizeBytes > MAX_EXTENDED_BYTES) throw new ArchiveError("an extended header of the archive is too long");
  const more = parseExtended(await reader.take(header.sizeBytes));
  await reader.skipPadding(header.sizeBytes);
  const next = parseHeader(await reader.take(BLOCK_BYTES));
  if (next === undefined || next.type === "extended") {
    throw new ArchiveError("an extended header is followed by none");
  }
  return { ...next, ...more };
}

/** Names of files and folders one below the other, and nothing else. */
function checkedPath(path: string): string {
  const names = path.replace(/^\.\//, "").split("/");
  const isAccepted = Buffer.byteLength(path) <= MAX_PATH_BYTES && names.every(isName);
  if (isAccepted) return names.join("/");
  throw new ArchiveError(`the archive has the path ${JSON.stringify(path.slice(0, 200))}`);
}

function isName(name: string): boolean {
  return name !== "" && name !== "." && name !== ".." && !/[\0\\]/.test(name);
}

/** What was made below a folder: each file once, so that nothing is written over or through anything. */
class Made {
  readonly #root: string;
  readonly #folders = new Set<string>([""]);
  readonly #files: string[] = [];

  constructor(root: string) {
    this.#root = root;
  }

  async folder(path: string): Promise<void> {
    if (this.#folders.has(path)) return;
    await this.folder(path.slice(0, Math.max(0, path.lastIndexOf("/"))));
    await mkdir(join(this.#root, path), { mode: 0o755 });
    this.#folders.add(path);
  }

  async file(path: string, mode: number, pieces: AsyncIterable<Uint8Array>): Promise<void> {
    await this.folder(path.slice(0, Math.max(0, path.lastIndexOf("/"))));
    const handle = await open(join(this.#root, path), "wx", mode);
    try {
      for await (const piece of pieces) await handle.writeFile(piece);
      // Whatever the umask is.
      await handle.chmod(mode);
    } finally {
      await handle.close();
    }
    this.#files.push(path);
  }

  /** After everything is written: the first sync then writes most of it. */
  async sync(): Promise<void> {
    for (const path of this.#files) await syncFile(join(this.#root, path));
    for (const path of this.#folders) await syncFolder(join(this.#root, path));
  }
}
