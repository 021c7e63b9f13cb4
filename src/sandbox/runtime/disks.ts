import { mkdir, mkdtemp, rename, rm, statfs, truncate, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { ImagePlace } from "./images/images.ts";
import { isThere } from "./images/images-files.ts";
import { type MountOperation, changeMounts, runProgram } from "./mounts.ts";
import { ID_COUNT } from "./runtime.ts";

/**
 * Disks: a sized ext4 file system in a file of the host that takes only the room that is used. A disk that is full is
 * full for its machine alone, in bytes and in inodes.
 */
export type DiskRequest = {
  /** Its file; must not be there. */
  path: string;
  sizeMb: number;
  /** With a journal, so that it is whole after a crash of the host. Costs some of its room and some speed. */
  isDurable?: boolean;
  /** A folder for empty disks to copy, which is faster than formatting; made when needed. */
  templates?: string;
};

/** Below this a file system with a journal does not fit. */
export const MIN_DISK_MB = 16;
/** One inode for so many bytes. */
const BYTES_PER_INODE = 16 * 1024;
/** Only sizes that are multiples of this have templates: so many there can be at most. */
const TEMPLATE_STEP_MB = 256;

/**
 * Whole folders of the image can be renamed; the disk does not insist on the very image with which it was first
 * mounted.
 */
const OVERLAY = "redirect_dir=on,index=off,metacopy=off";

/** Makes a disk. Rejects with `RuntimeError` `no_space` or `failed`; then its file is not there. */
export async function createDisk(request: DiskRequest): Promise<void> {
  await asNewFile(request.path, async () => {
    const operations = await diskOperations(request);
    if (operations.length > 0) await changeMounts(operations);
  });
}

/** Mounts a disk at a folder, which is made when it is not there. */
export async function mountDisk(path: string, at: string): Promise<void> {
  await mkdir(at, { recursive: true, mode: 0o755 });
  await changeMounts([["disk", path, at]]);
}

/**
 * Unmounts what is at a folder and below it. The loop device is free as soon as nobody has anything open there.
 * Repeatable.
 */
export async function unmountDisk(at: string): Promise<void> {
  await changeMounts([["unmount", at]]);
}

export type DiskUsage = { usedBytes: number; limitBytes: number; usedInodes: number; limitInodes: number };

/** Of the file system that a folder is on. */
export async function diskUsage(at: string): Promise<DiskUsage> {
  const { bsize, blocks, bfree, files, ffree } = await statfs(at);
  return {
    usedBytes: (blocks - bfree) * bsize,
    limitBytes: blocks * bsize,
    usedInodes: files - ffree,
    limitInodes: files,
  };
}

export type RootRequest = {
  image: ImagePlace;
  /** The host's id of the machine's id 0. */
  firstHostId: number;
  /** Where the disk is mounted. */
  disk: string;
  /** Where the machine's root file system goes; the folder is made when it is not there. */
  at: string;
  /**
   * Nothing is ever flushed, which makes it faster, and the disk useless for another start: for machines whose disk goes
   * when they stop.
   */
  isVolatile: boolean;
};

/**
 * Mounts a machine's root file system: the image with the machine's ids, and all that is changed on the disk. For an
 * image that uses the host's `/usr`, that is mounted on it, read-only.
 */
export async function mountRoot(request: RootRequest): Promise<void> {
  await mkdir(request.at, { recursive: true, mode: 0o755 });
  await changeMounts(rootOperations(request));
}

/** Unmounts a machine's root file system. Repeatable. */
export async function unmountRoot(at: string): Promise<void> {
  await changeMounts([["unmount", at]]);
}

export type OpenRootRequest = RootRequest & {
  /** What to mount as the disk, or to make. */
  diskFile: string | DiskRequest;
  /** Volumes that are mounted with the machine's ids, each from where its disk is mounted; folders are made. */
  volumes?: readonly { from: string; at: string; readOnly: boolean }[];
};

/**
 * Disk, root file system and volumes in one step, several times faster than one after the other: `disk` is where the disk
 * is to be mounted. When it fails, nothing is left that was not there.
 */
export async function openRoot(request: OpenRootRequest): Promise<void> {
  const { diskFile, disk, at, firstHostId, volumes = [] } = request;
  const folders = [disk, at, ...volumes.map((volume) => volume.at)];
  await Promise.all(folders.map((folder) => mkdir(folder, { recursive: true, mode: 0o755 })));
  const operations = [
    ...rootOperations(request),
    ...volumes.map((volume): MountOperation => {
      return ["mapped", volume.from, volume.at, String(firstHostId), String(ID_COUNT), volume.readOnly ? "ro" : "rw"];
    }),
  ];
  if (typeof diskFile === "string") {
    await changeMounts([["disk", diskFile, disk], ...operations]);
    return;
  }
  await asNewFile(diskFile.path, async () => {
    const made = await diskOperations(diskFile);
    await changeMounts([...made, ["disk", diskFile.path, disk], ...operations]);
  });
}

/** Takes apart what `openRoot` made; the disk's file stays. Repeatable. */
export async function closeRoot({ disk, at }: Pick<RootRequest, "disk" | "at">): Promise<void> {
  await changeMounts([
    ["unmount", at],
    ["unmount", disk],
  ]);
}

/** Where on a mounted disk all is that differs from the image. */
export function changesOn(disk: string): string {
  return join(disk, "upper");
}

function rootOperations({ image, firstHostId, disk, at, isVolatile }: RootRequest): MountOperation[] {
  const [upper, work] = [changesOn(disk), join(disk, "work")];
  const ids = [String(firstHostId), String(ID_COUNT)] as const;
  const options = isVolatile ? `${OVERLAY},volatile` : OVERLAY;
  return [
    ["folder", upper, String(firstHostId)],
    ["folder", work, "0"],
    ["root", image.path, ...ids, upper, work, at, options, image.usesHostUsr ? "/usr" : ""],
  ];
}

/** Makes the file, or says how it is to be made. */
async function diskOperations(request: DiskRequest): Promise<MountOperation[]> {
  const { path, sizeMb, templates, isDurable = false } = request;
  if (templates === undefined || sizeMb % TEMPLATE_STEP_MB !== 0) {
    await format(path, sizeMb, isDurable);
    return [];
  }
  const template = join(templates, `${sizeMb}mb${isDurable ? "-journal" : ""}.ext4`);
  if (!(await isThere(template))) await makeTemplate(template, sizeMb, isDurable);
  return [["copy", template, path]];
}

/** Another process may make the same one: the last that is done stays, and all are alike. */
async function makeTemplate(template: string, sizeMb: number, isDurable: boolean): Promise<void> {
  await mkdir(dirname(template), { recursive: true, mode: 0o755 });
  const folder = await mkdtemp(`${template}.`);
  try {
    const file = join(folder, "disk");
    await format(file, sizeMb, isDurable);
    await rename(file, template);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function format(path: string, sizeMb: number, isDurable: boolean): Promise<void> {
  await writeFile(path, "", { flag: "wx", mode: 0o600 });
  await truncate(path, sizeMb * 1024 * 1024);
  const journalMb = Math.min(64, Math.max(4, Math.floor(sizeMb / 32)));
  const journal = isDurable
    ? ["-O", "has_journal,^resize_inode", "-J", `size=${journalMb}`]
    : ["-O", "^has_journal,^resize_inode"];
  const inodes = ["-i", String(BYTES_PER_INODE), "-m", "0", "-b", "4096"];
  // The file is all holes: there is nothing to write zeroes over, and nothing to discard.
  const lazy = ["-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard"];
  await runProgram("mkfs.ext4", ["-q", "-F", ...journal, ...inodes, ...lazy, path]);
}

async function asNewFile(path: string, make: () => Promise<void>): Promise<void> {
  if (await isThere(path)) throw new Error(`${path} is there already`);
  try {
    await make();
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  }
}
