import { DEBIAN_IMAGE, HOST_IMAGE } from "../../contract/images/image.ts";
import { mkdir, readdir, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { systemCodeOf } from "../../../core/errors.ts";
import { type DebianSource, buildDebian } from "./images-debian.ts";
import { buildHost } from "./images-host.ts";
import { makeMountsPrivate } from "../mounts.ts";
import { RuntimeError } from "../runtime.ts";

/** Where an image is on this computer. */
export type ImagePlace = {
  name: string;
  /** Its files, with the ids that they have inside. Each machine has them with its own ids, and changes none. */
  path: string;
  /** Whether the host's `/usr` is mounted over its own, which is empty. */
  usesHostUsr: boolean;
};

/** What machines are made from. */
export interface Images {
  /**
   * The image; without a name, the default one. Rejects with `RuntimeError` `unknown_image` where there is none
   * of that name, or it is not made yet (`prepare`).
   */
  get(name: string | undefined): Promise<ImagePlace>;
  /** Those that are complete, as of the last call of any method. */
  names(): readonly string[];
  /**
   * Makes an image that can be made here (`host`, `debian`), where it is not complete. That takes half a minute for
   * `debian`, and its packages come over the network. Several may call it at once, also in several processes.
   */
  prepare(name: string): Promise<void>;
}

export type ImageOptions = {
  /** A folder for each image, of that name: its files are in `rootfs`, or where that links to. Any put there is one. */
  folder: string;
  /** Default: `host`. */
  defaultImage?: string;
  debian?: DebianSource;
};

/**
 * Images in a folder. `host` is the host's own `/usr`, and nothing else of it but what its programs need. `debian` is
 * Debian, made by debootstrap.
 */
export async function openImages(options: ImageOptions): Promise<Images> {
  await mkdir(options.folder, { recursive: true, mode: 0o755 });
  await makeMountsPrivate(options.folder);
  const images = new FolderImages(options);
  await images.prepare(HOST_IMAGE);
  return images;
}

class FolderImages implements Images {
  readonly #options: ImageOptions;
  #names: readonly string[] = [];
  readonly #found = new Map<string, Promise<ImagePlace>>();
  readonly #building = new Map<string, Promise<void>>();

  constructor(options: ImageOptions) {
    this.#options = options;
  }

  async get(name: string | undefined): Promise<ImagePlace> {
    const wanted = name ?? this.#options.defaultImage ?? HOST_IMAGE;
    if (!this.#names.includes(wanted)) await this.#look();
    if (!this.#names.includes(wanted)) {
      throw new RuntimeError("unknown_image", `there is no image ${wanted} here; there are: ${this.#names.join(", ")}`);
    }
    const known = this.#found.get(wanted);
    if (known !== undefined) return known;
    const found = this.#find(wanted);
    this.#found.set(wanted, found);
    // What has failed is tried again by the next who asks.
    found.catch(() => this.#found.delete(wanted));
    return found;
  }

  names(): readonly string[] {
    return this.#names;
  }

  async prepare(name: string): Promise<void> {
    const building = this.#building.get(name) ?? this.#build(name);
    this.#building.set(name, building);
    try {
      await building;
    } finally {
      this.#building.delete(name);
    }
    await this.#look();
  }

  async #build(name: string): Promise<void> {
    const folder = join(this.#options.folder, name);
    if (name === HOST_IMAGE) await buildHost(folder);
    else if (name === DEBIAN_IMAGE) await buildDebian(folder, this.#options.debian ?? {});
    else throw new RuntimeError("unknown_image", `the image ${name} cannot be made here`);
  }

  async #look(): Promise<void> {
    const entries = await readdir(this.#options.folder);
    const complete = await Promise.all(entries.map((name) => isFolder(join(this.#options.folder, name, "rootfs"))));
    this.#names = entries.filter((_name, index) => complete[index]).sort();
  }

  async #find(name: string): Promise<ImagePlace> {
    // It may be a link to one of several builds; machines go on with the one they began with.
    const path = await realpath(join(this.#options.folder, name, "rootfs"));
    return { name, path, usesHostUsr: name === HOST_IMAGE };
  }
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT" || systemCodeOf(error) === "ENOTDIR") return false;
    throw error;
  }
}
