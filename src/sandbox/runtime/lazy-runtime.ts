import { join } from "node:path";
import { systemCodeOf } from "../../core/errors.ts";
import { foldersIn } from "./folder.ts";
import { BUILT_IMAGES_FOLDER } from "./images/built-images.ts";
import { isImageId, type BuiltImage, HOST_IMAGE } from "../contract/images/image.ts";
import type { Machine, MachineSpec, Runtime, RuntimeAbilities, StoppedRoot, VolumeStore } from "./runtime.ts";

export type LazyRuntimeOptions = {
  name: Runtime["name"];
  /** Folder of the node. */
  home: string;
  /** Called when there is something to do, again after it has failed. */
  open: () => Promise<Runtime>;
};

/**
 * A runtime that is opened for its first machine. A node that never gets a sandbox mounts nothing, makes no cgroup and
 * copies no image, and its folder may be removed like any other.
 */
export class LazyRuntime implements Runtime {
  readonly name: Runtime["name"];
  readonly volumes: VolumeStore;
  readonly #options: LazyRuntimeOptions;
  #opening: Promise<Runtime> | undefined;
  #opened: Runtime | undefined;
  #imageNames: readonly string[];
  #isWarm = false;

  private constructor(options: LazyRuntimeOptions, imageNames: readonly string[]) {
    this.#options = options;
    this.#imageNames = imageNames;
    this.name = options.name;
    this.volumes = {
      open: async (key, sizeMb) => (await this.#runtime()).volumes.open(key, sizeMb),
      touch: async (key) => (await this.#runtime()).volumes.touch(key),
      // Nothing is opened to find out: they are looked at when there was a machine.
      unusedSince: async (atMs) => (await this.#opened?.volumes.unusedSince(atMs)) ?? [],
      remove: async (key) => (await this.#runtime()).volumes.remove(key),
    };
  }

  static async prepare(options: LazyRuntimeOptions): Promise<LazyRuntime> {
    const folder = join(options.home, "images");
    const [names, built] = await Promise.all([entriesOf(folder), entriesOf(join(folder, BUILT_IMAGES_FOLDER))]);
    const own = [HOST_IMAGE, ...names.filter((name) => name !== BUILT_IMAGES_FOLDER)];
    return new LazyRuntime(options, [...new Set(own)].toSorted().concat(built.filter(isImageId)));
  }

  get abilities(): RuntimeAbilities {
    if (this.#opened === undefined) throw new Error("what a runtime can do is not known before it is opened");
    return this.#opened.abilities;
  }

  images(): readonly string[] {
    if (this.#opened !== undefined) this.#imageNames = this.#opened.images();
    return this.#imageNames;
  }

  async prepareImage(name: string): Promise<void> {
    await (await this.#runtime()).prepareImage(name);
  }

  async loadImage(image: BuiltImage): Promise<() => void> {
    return await (await this.#runtime()).loadImage(image);
  }

  async create(spec: MachineSpec): Promise<Machine> {
    return await (await this.#runtime()).create(spec);
  }

  async restart(spec: MachineSpec): Promise<Machine> {
    return await (await this.#runtime()).restart(spec);
  }

  async adopt(id: string): Promise<Machine | undefined> {
    return (await this.#has(id)) ? await (await this.#runtime()).adopt(id) : undefined;
  }

  async remove(id: string): Promise<void> {
    if (await this.#has(id)) await (await this.#runtime()).remove(id);
  }

  async openStopped(id: string): Promise<StoppedRoot | undefined> {
    return (await this.#has(id)) ? await (await this.#runtime()).openStopped(id) : undefined;
  }

  async openHelperLimits(id: string): Promise<readonly string[]> {
    return await (await this.#runtime()).openHelperLimits(id);
  }

  async closeHelperLimits(id: string): Promise<void> {
    await this.#opened?.closeHelperLimits(id);
  }

  async list(): Promise<string[]> {
    if (this.#opened !== undefined) return await this.#opened.list();
    const names = await entriesOf(join(this.#options.home, "machines"));
    return names.length === 0 ? [] : await (await this.#runtime()).list();
  }

  warm(): void {
    this.#isWarm = true;
    this.#opened?.warm();
  }

  async close(): Promise<void> {
    await this.#opened?.close();
  }

  async #has(id: string): Promise<boolean> {
    if (this.#opened !== undefined) return true;
    return (await entriesOf(join(this.#options.home, "machines"))).includes(id);
  }

  #runtime(): Promise<Runtime> {
    this.#opening ??= this.#open();
    return this.#opening;
  }

  async #open(): Promise<Runtime> {
    try {
      const runtime = await this.#options.open();
      this.#opened = runtime;
      if (this.#isWarm) runtime.warm();
      return runtime;
    } catch (error) {
      this.#opening = undefined;
      throw error;
    }
  }
}

/** Names of the folders in a folder; none where it is not there. */
async function entriesOf(path: string): Promise<string[]> {
  try {
    return await foldersIn(path);
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT") return [];
    throw error;
  }
}
