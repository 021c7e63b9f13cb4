import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { lstat, readdir, readlink, rename } from "node:fs/promises";
import { join, posix } from "node:path";
import { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { tarOf, type Entry } from "../tar.ts";

/**
 * Layers of an image: tar archives, compressed with gzip, which every runtime reads. Names come in order, owners are
 * numbers, modes are 0755 or 0644, and all times are one, so that the same files make the same bytes wherever, whenever
 * and under whatever umask they were unpacked.
 */

/** A blob as manifests name it. */
export type Blob = { digest: string; size: number };
export type Layer = Blob & { diffId: string };

/** Writes a layer with these entries among the blobs. */
export async function writeLayer(entries: readonly Entry[], timeSecs: number, blobs: string): Promise<Layer> {
  return writeBlob(Readable.from(tarOf(entries, timeSecs)), blobs);
}

/** Writes a layer whose archive there is: that of a base. Its bytes stay as they are. */
export async function writeBaseLayer(tar: string, blobs: string): Promise<Layer> {
  return writeBlob(createReadStream(tar), blobs);
}

async function writeBlob(tar: Readable, blobs: string): Promise<Layer> {
  const plain = hashing();
  const packed = hashing();
  const unnamed = join(blobs, "layer.part");
  await pipeline(tar, plain.stream, createGzip({ level: 9 }), packed.stream, createWriteStream(unnamed));
  const [diffId, digest] = [plain.hex(), packed.hex()];
  await rename(unnamed, join(blobs, digest));
  return { digest: `sha256:${digest}`, size: packed.sizeBytes(), diffId: `sha256:${diffId}` };
}

/** Passes bytes on, and knows their number and hash afterwards. */
function hashing() {
  const hash = createHash("sha256");
  let total = 0;
  const stream = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      total += chunk.length;
      done(undefined, chunk);
    },
  });
  return { stream, hex: () => hash.digest("hex"), sizeBytes: () => total };
}

const EXECUTABLE = 0o100;

/**
 * A folder of this machine as entries below `at`, in the order of their names. Owners are root, whatever they are here.
 * @throws Error for a link that leads out of the folder, and for what is neither file, link nor folder.
 */
export async function entriesOf(folder: string, at: string): Promise<Entry[]> {
  const found: Entry[] = [];
  const walk = async (inner: string): Promise<void> => {
    const path = posix.join(at, inner);
    found.push({ path, type: "folder", mode: 0o755, uid: 0 });
    const names = (await readdir(join(folder, inner))).sort((a, b) => (a < b ? -1 : 1));
    for (const name of names) {
      const source = join(folder, inner, name);
      const status = await lstat(source);
      const below = posix.join(inner, name);
      if (status.isDirectory()) await walk(below);
      else if (status.isSymbolicLink()) found.push(linkOf(below, at, await readlink(source)));
      else if (status.isFile()) {
        const mode = (status.mode & EXECUTABLE) === 0 ? 0o644 : 0o755;
        found.push({ path: posix.join(at, below), type: "file", mode, sizeBytes: status.size, source });
      } else throw new Error(`${source} is neither a file nor a folder nor a link`);
    }
  };
  await walk("");
  return found;
}

function linkOf(inner: string, at: string, target: string): Entry {
  const leadsTo = posix.join(posix.dirname(inner), target);
  if (posix.isAbsolute(target) || leadsTo === ".." || leadsTo.startsWith("../")) {
    throw new Error(`the link ${inner} leads to ${target}, out of the folder`);
  }
  return { path: posix.join(at, inner), type: "symlink", target };
}
