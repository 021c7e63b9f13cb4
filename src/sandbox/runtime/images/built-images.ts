import {
  chmod,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  realpath,
  rename,
  rm,
  stat,
  utimes,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { Clock } from "../../../core/clock.ts";
import { Semaphore } from "../../../core/concurrency.ts";
import { messageOf, systemCodeOf } from "../../../core/errors.ts";
import type { ImagePlace, Images } from "./images.ts";
import { HOST_IMAGE, isImageId, type BuiltImage, type ImageLayer } from "../../contract/images/image.ts";
import { changeMounts, runProgram } from "../mounts.ts";
import { RuntimeError } from "../runtime.ts";
import { readLayer } from "./layer-archive.ts";

/** Below the folder of images: on the same mount, so that files of a base are shared by links. */
export const BUILT_IMAGES_FOLDER = ".built";

export type BuiltImagesOptions = {
  /** Of a node's images. */
  folder: string;
  /** Bases. */
  images: Images;
  /** A part of a layer, from the object store. */
  read: (layer: ImageLayer, part: number) => Promise<Uint8Array>;
  /** Of the files of all that are kept; those that machines use stay, and count. */
  cacheBytes: number;
  clock: Clock;
};

const MAX_TOLD = 500;

const LAYER = z.object({
  buildId: z.string(),
  fence: z.number(),
  parts: z.number(),
  sha256: z.string(),
  sizeBytes: z.number(),
  unpackedBytes: z.number(),
});
const KEPT = z.object({ base: z.string(), layers: z.array(LAYER) });
type Kept = Pick<BuiltImage, "base" | "layers">;

/**
 * Built images of a node, each in a folder of its id: its files are in `rootfs`, those of all layers in one folder, in
 * which what a layer leaves as it was is the very file of the base, under another name. So an image costs the room of
 * what was changed, machines have one lower folder however many layers there are, and nothing is marked in it. What no
 * machine uses makes room for others, the longest unused first.
 */
export class BuiltImages {
  readonly #options: BuiltImagesOptions;
  readonly #folder: string;
  readonly #known = new Map<string, Kept>();
  readonly #loading = new Map<string, Promise<void>>();
  /** How many wait for an image, or are about to make a machine of it. */
  readonly #holds = new Map<string, number>();
  /** Bytes that those under way will take. */
  readonly #arriving = new Map<string, number>();
  /** Room is made by one at a time. */
  readonly #making = new Semaphore(1);

  private constructor(options: BuiltImagesOptions) {
    this.#options = options;
    this.#folder = join(options.folder, BUILT_IMAGES_FOLDER);
  }

  /** Removes what an earlier process has left of images that it did not complete. */
  static async open(options: BuiltImagesOptions): Promise<BuiltImages> {
    const images = new BuiltImages(options);
    await mkdir(images.#folder, { recursive: true, mode: 0o711 });
    for (const name of await readdir(images.#folder)) {
      const kept = isImageId(name) ? await images.#read(name) : undefined;
      if (kept === undefined) await images.#discard(name);
      else images.#known.set(name, kept);
    }
    return images;
  }

  /** As many as are worth telling: whoever places a sandbox prefers a node that has its image. */
  ids(): readonly string[] {
    return [...this.#known.keys()].slice(-MAX_TOLD);
  }

  /** Throws `RuntimeError` `unknown_image` where it was not loaded. */
  get(id: string): ImagePlace {
    const kept = this.#known.get(id);
    if (kept === undefined) throw new RuntimeError("unknown_image", `the image ${id} is not on this node`);
    return { name: id, path: join(this.#folder, id, "rootfs"), usesHostUsr: kept.base === HOST_IMAGE };
  }

  /**
   * Brings an image here where it is not; it stays until what this resolves to is called, and for as long as `inUse` has
   * it. Rejects with `RuntimeError`.
   */
  async load(image: BuiltImage, inUse: () => Promise<ReadonlySet<string>>): Promise<() => void> {
    const { id } = image;
    const release = this.#hold(id);
    try {
      const loading = this.#loading.get(id) ?? this.#load(image, inUse).finally(() => this.#loading.delete(id));
      this.#loading.set(id, loading);
      await loading;
      return release;
    } catch (error) {
      release();
      if (error instanceof RuntimeError) throw error;
      const code = systemCodeOf(error) === "ENOSPC" ? "no_space" : "failed";
      throw new RuntimeError(code, `the image ${id} could not be loaded: ${messageOf(error)}`, { cause: error });
    }
  }

  #hold(id: string): () => void {
    this.#holds.set(id, (this.#holds.get(id) ?? 0) + 1);
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      const left = (this.#holds.get(id) ?? 1) - 1;
      if (left === 0) this.#holds.delete(id);
      else this.#holds.set(id, left);
    };
  }

  async #load(image: BuiltImage, inUse: () => Promise<ReadonlySet<string>>): Promise<void> {
    await this.#making.run(async () => {
      if (this.#known.has(image.id)) return;
      await this.#makeRoom(bytesOf(image), inUse);
      this.#arriving.set(image.id, bytesOf(image));
    });
    try {
      if (!this.#known.has(image.id)) await this.#fetch(image);
    } finally {
      this.#arriving.delete(image.id);
    }
    const now = this.#options.clock.nowMs() / 1_000;
    await utimes(join(this.#folder, image.id, "image.json"), now, now);
  }

  async #fetch({ id, base, layers }: BuiltImage): Promise<void> {
    const fresh = await mkdtemp(join(this.#folder, "new-"));
    try {
      const root = join(fresh, "rootfs");
      const below = await this.#copyBelow({ base, layers }, root);
      for (const layer of layers.slice(below)) {
        await readLayer(layer, root, (part) => this.#options.read(layer, part));
      }
      const kept: Kept = { base, layers };
      await writeFile(join(fresh, "image.json"), JSON.stringify(kept), { mode: 0o600 });
      await chmod(fresh, 0o755);
      // Whoever finds its name finds all of it, also after a power cut: nobody checks its files again.
      await runProgram("sync", ["-f", fresh]);
      await rename(fresh, join(this.#folder, id));
      this.#known.set(id, kept);
    } catch (error) {
      await rm(fresh, { recursive: true, force: true });
      throw error;
    }
  }

  /** The files of the base, and of as many layers as another image that is here has. Returns how many. */
  async #copyBelow(wanted: Kept, root: string): Promise<number> {
    const best = [...this.#known]
      .filter(([, kept]) => isBelow(kept, wanted))
      .toSorted(([, a], [, b]) => b.layers.length - a.layers.length)[0];
    if (best === undefined) {
      await this.#options.images.get(wanted.base);
      await copyFiles(await realpath(join(this.#options.folder, wanted.base, "rootfs")), root);
      return 0;
    }
    const [id, { layers }] = best;
    const release = this.#hold(id);
    try {
      await copyFiles(join(this.#folder, id, "rootfs"), root);
    } finally {
      release();
    }
    return layers.length;
  }

  /** Rejects with `no_space` when what is in use leaves none. */
  async #makeRoom(bytes: number, inUse: () => Promise<ReadonlySet<string>>): Promise<void> {
    const { cacheBytes } = this.#options;
    const arriving = [...this.#arriving.values()].reduce((sum, one) => sum + one, 0);
    let used = [...this.#known.values()].reduce((sum, kept) => sum + bytesOf(kept), arriving);
    if (used + bytes <= cacheBytes) return;
    const busy = await inUse();
    for (const id of await this.#oldestFirst()) {
      if (used + bytes <= cacheBytes) return;
      const kept = this.#known.get(id);
      if (kept === undefined || busy.has(id) || (this.#holds.get(id) ?? 0) > 0) continue;
      used -= bytesOf(kept);
      this.#known.delete(id);
      await this.#discard(id);
    }
    if (used + bytes <= cacheBytes) return;
    throw new RuntimeError("no_space", `the images that sandboxes use leave no room for ${bytes} bytes here`);
  }

  async #oldestFirst(): Promise<string[]> {
    const used = await Promise.all(
      [...this.#known.keys()].map(async (id) => ({
        id,
        atMs: (await stat(join(this.#folder, id, "image.json"))).mtimeMs,
      })),
    );
    return used.toSorted((a, b) => a.atMs - b.atMs).map(({ id }) => id);
  }

  async #discard(name: string): Promise<void> {
    const folder = join(this.#folder, name);
    // An earlier version of this program mounted images there.
    await changeMounts([["unmount", folder]]);
    await rm(folder, { recursive: true, force: true });
  }

  /** Undefined for what is not complete. */
  async #read(id: string): Promise<Kept | undefined> {
    try {
      return KEPT.parse(JSON.parse(await readFile(join(this.#folder, id, "image.json"), "utf8")));
    } catch (error) {
      if (systemCodeOf(error) === "ENOENT" || error instanceof SyntaxError || error instanceof z.ZodError)
        return undefined;
      throw error;
    }
  }
}

function bytesOf({ layers }: Pick<BuiltImage, "layers">): number {
  return layers.reduce((sum, { unpackedBytes }) => sum + unpackedBytes, 0);
}

/** Whether an image is a lower part of another one. */
function isBelow(lower: Kept, upper: Kept): boolean {
  return lower.base === upper.base && lower.layers.every(({ sha256 }, i) => upper.layers[i]?.sha256 === sha256);
}

/** The same files under other names where that can be, copies otherwise. */
async function copyFiles(from: string, to: string): Promise<void> {
  try {
    await runProgram("cp", ["-a", "--link", "-T", from, to]);
  } catch (error) {
    if (!(error instanceof RuntimeError) || error.code !== "failed") throw error;
    // The base lies on another file system, or one of its files has as many names as it can.
    await rm(to, { recursive: true, force: true });
    await runProgram("cp", ["-a", "--reflink=auto", "-T", from, to]);
  }
}
