import { createHash } from "node:crypto";
import { link, mkdir, mkdtemp, readFile, rm, rmdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { systemCodeOf } from "../../core/errors.ts";
import { createDisk } from "./disks.ts";
import { foldersIn } from "./folder.ts";
import { changeMounts, makeMountsPrivate } from "./mounts.ts";
import { AGENT_UID, type VolumeStore } from "./runtime.ts";

/**
 * Volumes in a folder: of each a folder with its disk, and where that is mounted, with the ids that its files have
 * inside: each machine has a mount of it with its own ids. A volume has the size with which it was first opened. It stays
 * mounted until it is removed: it is mounted once however many machines use it, and a machine that goes takes only its
 * own mount of it along. A file `used` has its key, and as its time of change when it was last used. Earlier versions of
 * this program had a mount `mapped` there for all machines, which those have that still run.
 */
export async function openVolumes(options: { folder: string }): Promise<VolumeStore> {
  await mkdir(options.folder, { recursive: true, mode: 0o700 });
  await makeMountsPrivate(options.folder);
  return new FolderVolumes(options.folder);
}

type Place = { folder: string; file: string; disk: string; used: string };

class FolderVolumes implements VolumeStore {
  readonly #folder: string;
  /** What is under way for a volume: the next for the same waits for it. */
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  open(key: string, sizeMb: number): Promise<string> {
    return this.#inTurn(key, async () => {
      const place = this.#placeOf(key);
      await mkdir(place.disk, { recursive: true, mode: 0o755 });
      await this.#makeDisk(place, sizeMb);
      await changeMounts([["disk", place.file, place.disk]]);
      await writeFile(place.used, key, { mode: 0o600 });
      return place.disk;
    });
  }

  async touch(key: string): Promise<void> {
    try {
      await writeFile(this.#placeOf(key).used, key, { flag: "r+" });
    } catch (error) {
      if (systemCodeOf(error) !== "ENOENT") throw error;
    }
  }

  async unusedSince(atMs: number): Promise<string[]> {
    const places = (await foldersIn(this.#folder)).map((name) => join(this.#folder, name, "used"));
    const found = await Promise.all(places.map((used) => keyUnusedSince(used, atMs)));
    return found.filter((key) => key !== undefined);
  }

  /** A machine that still uses it keeps it until it ends; the room is free from then on. */
  remove(key: string): Promise<void> {
    return this.#inTurn(key, async () => {
      const { folder } = this.#placeOf(key);
      await changeMounts([["unmount", folder]]);
      await rm(folder, { recursive: true, force: true });
    });
  }

  /** Keys become names of folders, whatever is in them. */
  #placeOf(key: string): Place {
    const folder = join(this.#folder, createHash("sha256").update(key).digest("hex").slice(0, 40));
    const at = (name: string): string => join(folder, name);
    return { folder, file: at("disk.ext4"), disk: at("disk"), used: at("used") };
  }

  async #inTurn<T>(key: string, task: () => Promise<T>): Promise<T> {
    const turn = (this.#turns.get(key) ?? Promise.resolve()).catch(() => undefined).then(task);
    this.#turns.set(key, turn);
    try {
      return await turn;
    } finally {
      if (this.#turns.get(key) === turn) this.#turns.delete(key);
    }
  }

  /** It appears complete, and once, also when two processes make it; the agent owns it. */
  async #makeDisk({ folder, file }: Place, sizeMb: number): Promise<void> {
    const fresh = await mkdtemp(join(folder, "new-"));
    const [disk, at] = [join(fresh, "disk.ext4"), join(fresh, "at")];
    try {
      await link(file, disk);
    } catch (error) {
      if (systemCodeOf(error) !== "ENOENT") throw error;
      await createDisk({ path: disk, sizeMb, isDurable: true });
      await mkdir(at, { mode: 0o755 });
      await changeMounts([
        ["disk", disk, at],
        ["folder", at, String(AGENT_UID)],
      ]);
      await rmdir(join(at, "lost+found"));
      await changeMounts([["unmount", at]]);
      await link(disk, file).catch((error: unknown) => {
        if (systemCodeOf(error) !== "EEXIST") throw error;
      });
    } finally {
      await changeMounts([["unmount", fresh]]);
      await rm(fresh, { recursive: true, force: true });
    }
  }
}

/** Undefined for one that was used later, or was never ready. */
async function keyUnusedSince(used: string, atMs: number): Promise<string | undefined> {
  try {
    return (await stat(used)).mtimeMs < atMs ? await readFile(used, "utf8") : undefined;
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}
