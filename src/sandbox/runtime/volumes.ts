import { createHash } from "node:crypto";
import { link, mkdir, mkdtemp, rm, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { systemCodeOf } from "../../core/errors.ts";
import { createDisk } from "./disks.ts";
import { changeMounts, makeMountsPrivate } from "./mounts.ts";
import { AGENT_UID, ID_COUNT, type VolumeStore } from "./runtime.ts";

/**
 * Volumes in a folder: of each a folder with its disk, where that is mounted, and where it is mounted once more with
 * the ids of machines, which is what machines get. A volume has the size with which it was first opened. It stays
 * mounted until it is removed: it is mounted once however many machines use it, and a machine that goes takes only its
 * own mount of it along.
 */
export async function openVolumes(options: { folder: string; firstHostId: number }): Promise<VolumeStore> {
  await mkdir(options.folder, { recursive: true, mode: 0o700 });
  await makeMountsPrivate(options.folder);
  return new FolderVolumes(options.folder, options.firstHostId);
}

type Place = { folder: string; file: string; disk: string; mapped: string };

class FolderVolumes implements VolumeStore {
  readonly #folder: string;
  readonly #firstHostId: number;

  constructor(folder: string, firstHostId: number) {
    this.#folder = folder;
    this.#firstHostId = firstHostId;
  }

  async open(key: string, sizeMb: number): Promise<string> {
    const place = this.#placeOf(key);
    await Promise.all([place.disk, place.mapped].map((folder) => mkdir(folder, { recursive: true })));
    await this.#makeDisk(place, sizeMb);
    await changeMounts([
      ["disk", place.file, place.disk],
      ["mapped", place.disk, place.mapped, String(this.#firstHostId), String(ID_COUNT), "rw"],
    ]);
    return place.mapped;
  }

  /** A machine that still uses it keeps it until it ends; the room is free from then on. */
  async remove(key: string): Promise<void> {
    const { folder } = this.#placeOf(key);
    await changeMounts([["unmount", folder]]);
    await rm(folder, { recursive: true, force: true });
  }

  /** Keys become names of folders, whatever is in them. */
  #placeOf(key: string): Place {
    const folder = join(this.#folder, createHash("sha256").update(key).digest("hex").slice(0, 40));
    return { folder, file: join(folder, "disk.ext4"), disk: join(folder, "disk"), mapped: join(folder, "mapped") };
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
      await mkdir(at);
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
