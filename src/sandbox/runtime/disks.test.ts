import { spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import {
  MIN_DISK_MB,
  closeRoot,
  createDisk,
  diskUsage,
  mountDisk,
  mountRoot,
  openRoot,
  unmountDisk,
  unmountRoot,
} from "./disks.ts";
import type { ImagePlace } from "./images/images.ts";
import { listMounts, sweepMounts } from "./mounts.ts";
import { loopFiles } from "./loop-files.test-kit.ts";
import { describeAsRoot, rootFolder, runAs } from "./root.test-kit.ts";

const FIRST_ID = 400_000;
const MB = 1024 * 1024;

describeAsRoot("disks", () => {
  const folder = rootFolder("disks");
  let made = 0;
  /** A fresh folder with a disk of that size, mounted. */
  async function disk(sizeMb: number, isDurable = false): Promise<{ file: string; at: string }> {
    const place = { file: join(folder, `disk-${made}.ext4`), at: join(folder, `disk-${made++}`) };
    await createDisk({ path: place.file, sizeMb, isDurable });
    await mountDisk(place.file, place.at);
    return place;
  }

  it.each([
    ["without a journal", false],
    ["with a journal", true],
  ])("takes only the room that is used, and keeps what is written: %s", async (_which, isDurable) => {
    const { file, at } = await disk(1024, isDurable);
    expect(statSync(file).size).toBe(1024 * MB);
    expect(statSync(file).blocks * 512).toBeLessThan(4 * MB);
    writeFileSync(join(at, "kept"), "text");
    await unmountDisk(at);
    expect(readdirSync(at)).toEqual([]);
    await expect.poll(() => loopFiles(folder)).toEqual([]);
    await mountDisk(file, at);
    expect(readFileSync(join(at, "kept"), "utf8")).toBe("text");
    await unmountDisk(at);
    await unmountDisk(at);
  });

  it("is full at its size, and says how full it is", async () => {
    const { at } = await disk(32);
    const before = await diskUsage(at);
    expect(before.limitBytes).toBeGreaterThan(29 * MB);
    expect(before.limitBytes).toBeLessThan(32 * MB);
    expect(() => writeFileSync(join(at, "big"), Buffer.alloc(33 * MB))).toThrow("ENOSPC");
    const after = await diskUsage(at);
    expect(after.usedBytes).toBeGreaterThan(0.97 * after.limitBytes);
    rmSync(join(at, "big"));
    expect((await diskUsage(at)).usedBytes).toBe(before.usedBytes);
    await unmountDisk(at);
  });

  it("has an end to its inodes", async () => {
    const { at } = await disk(MIN_DISK_MB);
    const { limitInodes } = await diskUsage(at);
    expect(limitInodes).toBe((MIN_DISK_MB * MB) / (16 * 1024));
    expect(() => {
      for (let index = 0; index <= limitInodes; index++) writeFileSync(join(at, String(index)), "");
    }).toThrow("ENOSPC");
    expect((await diskUsage(at)).usedInodes).toBe(limitInodes);
    await unmountDisk(at);
  });

  it("lets nobody use set-user-id bits and devices", async () => {
    const { at } = await disk(MIN_DISK_MB);
    const mount = readFileSync("/proc/self/mounts", "utf8")
      .split("\n")
      .find((line) => line.includes(` ${at} `));
    expect(mount).toMatch(/ rw,nosuid,nodev,noatime/);
    await unmountDisk(at);
  });

  it("copies a disk that was formatted before, byte for byte", async () => {
    const templates = join(folder, "templates");
    // Two that need the same template at once.
    await Promise.all(["a", "b"].map((name) => createDisk({ path: join(folder, name), sizeMb: 256, templates })));
    expect(readdirSync(templates)).toEqual(["256mb.ext4"]);
    const path = join(folder, "c");
    await createDisk({ path, sizeMb: 256, templates });
    expect(readFileSync(path).equals(readFileSync(join(templates, "256mb.ext4")))).toBe(true);
    expect(statSync(path).blocks * 512).toBeLessThan(MB);
  });

  it("refuses a file that is there, and leaves it alone", async () => {
    const path = join(folder, "mine");
    writeFileSync(path, "mine");
    await expect(createDisk({ path, sizeMb: 16 })).rejects.toThrow("is there already");
    expect(readFileSync(path, "utf8")).toBe("mine");
  });

  it("says that the host's disk is full, and leaves nothing", async () => {
    const { at } = await disk(16);
    const templates = join(folder, "templates");
    await createDisk({ path: join(folder, "warm"), sizeMb: 2048, templates });
    try {
      writeFileSync(join(at, "filler"), Buffer.alloc((await diskUsage(at)).limitBytes));
    } catch {
      // Full is what it shall be.
    }
    const failed = { code: "no_space" };
    await expect(createDisk({ path: join(at, "x"), sizeMb: 2048, templates })).rejects.toMatchObject(failed);
    expect(existsSync(join(at, "x"))).toBe(false);
    await unmountDisk(at);
  });

  it("uses one loop device for a file, whoever mounts it", async () => {
    const { file, at } = await disk(16);
    const again = `${at}-again`;
    await mountDisk(file, again);
    writeFileSync(join(at, "seen"), "by both");
    expect(readFileSync(join(again, "seen"), "utf8")).toBe("by both");
    expect(loopFiles(folder)).toEqual([file]);
    await mountDisk(file, at);
    expect(await listMounts(at)).toHaveLength(1);
    await unmountDisk(again);
    await unmountDisk(at);
    await expect.poll(() => loopFiles(folder)).toEqual([]);
  });
});

describeAsRoot("root file systems", () => {
  const folder = rootFolder("roots");
  const rootfs = join(folder, "rootfs");
  const image: ImagePlace = {
    name: "test",
    path: rootfs,
    usesHostUsr: false,
  };
  let made = 0;
  const place = () => {
    const machine = join(folder, `machine-${made++}`);
    mkdirSync(machine);
    return { file: join(machine, "disk.ext4"), disk: join(machine, "disk"), at: join(machine, "root") };
  };
  const request = ({ file, disk, at }: ReturnType<typeof place>, isVolatile = true) => ({
    image,
    firstHostId: FIRST_ID,
    disk,
    at,
    isVolatile,
    diskFile: { path: file, sizeMb: 64 },
  });

  beforeAll(() => {
    mkdirSync(join(rootfs, "usr"), { recursive: true });
    mkdirSync(join(rootfs, "folder"));
    writeFileSync(join(rootfs, "folder/file"), "of the image");
  });

  it("is the image, changed for one machine alone", async () => {
    const [one, two] = [place(), place()];
    await openRoot(request(one));
    await openRoot(request(two));
    // As the root of a machine: on the host that is nobody in particular.
    runAs(FIRST_ID, "sh", "-c", `cd ${one.at}; echo changed > folder/file; mv folder moved; echo new > new`);
    expect(readFileSync(join(one.at, "moved/file"), "utf8")).toBe("changed\n");
    expect(readFileSync(join(two.at, "folder/file"), "utf8")).toBe("of the image");
    expect(readFileSync(join(rootfs, "folder/file"), "utf8")).toBe("of the image");
    expect(statSync(join(one.at, "new")).uid).toBe(FIRST_ID);
    expect(statSync(join(two.at, "folder/file")).uid).toBe(FIRST_ID);
    expect(() => runAs(FIRST_ID + 1000, "sh", "-c", `echo x > ${two.at}/folder/file`)).toThrow("Permission denied");
    await closeRoot(one);
    await closeRoot(two);
    await closeRoot(two);
    await expect.poll(() => loopFiles(folder)).toEqual([]);
  });

  it("goes on from its disk", async () => {
    const machine = place();
    await openRoot(request(machine, false));
    runAs(FIRST_ID, "sh", "-c", `cd ${machine.at}; rm folder/file; echo kept > kept`);
    await unmountRoot(machine.at);
    await unmountDisk(machine.disk);
    await mountDisk(machine.file, machine.disk);
    await mountRoot({ image, firstHostId: FIRST_ID, disk: machine.disk, at: machine.at, isVolatile: false });
    expect(readdirSync(join(machine.at, "folder"))).toEqual([]);
    expect(readFileSync(join(machine.at, "kept"), "utf8")).toBe("kept\n");
    await closeRoot(machine);
    await openRoot({ ...request(machine, false), diskFile: machine.file });
    expect(existsSync(join(machine.at, "kept"))).toBe(true);
    await closeRoot(machine);
  });

  it("has the host's /usr when the image says so, and cannot change it", async () => {
    const machine = place();
    await openRoot({ ...request(machine), image: { ...image, usesHostUsr: true } });
    expect(existsSync(join(machine.at, "usr/bin/env"))).toBe(true);
    expect(() => writeFileSync(join(machine.at, "usr/x"), "")).toThrow("EROFS");
    await closeRoot(machine);
  });

  it("has the ids of its machine, whichever these are, and volumes with them, too", async () => {
    const [one, two] = [place(), place()];
    const other = FIRST_ID + 100_000;
    const volume = join(folder, "volume");
    mkdirSync(volume);
    chownSync(volume, 1000, 1000);
    const volumeOf = ({ at }: ReturnType<typeof place>, readOnly: boolean) => {
      return { from: volume, at: join(at, "../volume-0"), readOnly };
    };
    await openRoot({ ...request(one), volumes: [volumeOf(one, false)] });
    await openRoot({ ...request(two), firstHostId: other, volumes: [volumeOf(two, true)] });
    const [first, second] = [volumeOf(one, false).at, volumeOf(two, true).at];
    runAs(FIRST_ID + 1000, "sh", "-c", `echo mine > ${first}/file`);
    expect(statSync(join(second, "file")).uid).toBe(other + 1000);
    expect(statSync(join(volume, "file")).uid).toBe(1000);
    expect(statSync(join(two.at, "folder/file")).uid).toBe(other);
    expect(() => runAs(other + 1000, "touch", join(second, "x"))).toThrow("Read-only file system");
    // What is one machine's is nobody's in the other.
    expect(() => runAs(other, "sh", "-c", `echo x > ${one.at}/folder/file`)).toThrow("Permission denied");
    for (const machine of [one, two]) await sweepMounts(join(machine.at, ".."));
    await expect.poll(() => loopFiles(folder)).toEqual([]);
  });

  it("tells nobody inside where on the host it is", async () => {
    const machine = place();
    await openRoot({ ...request(machine), image: { ...image, usesHostUsr: true } });
    const mounts = await listMounts(machine.at);
    expect(mounts.map(({ fsType, source, root }) => ({ fsType, source, root }))).toEqual([
      { fsType: "overlay", source: "overlay", root: "/" },
      { fsType: "overlay", source: "overlay", root: "/" },
    ]);
    expect(mounts.map(({ options }) => options).join()).not.toContain(folder);
    await closeRoot(machine);
  });

  it.each([
    ["the image", { image: { ...image, path: join(folder, "missing") } }],
    ["a volume", { volumes: [{ from: join(folder, "missing"), at: join(folder, "volume-at"), readOnly: false }] }],
  ])("leaves nothing when a step of it fails: %s", async (_step, wanted) => {
    const machine = place();
    await expect(openRoot({ ...request(machine), ...wanted })).rejects.toMatchObject({ code: "failed" });
    expect(await listMounts(join(machine.at, ".."))).toEqual([]);
    await expect.poll(() => loopFiles(folder)).toEqual([]);
    expect(existsSync(machine.file)).toBe(false);
  });

  it("is taken apart while a process is in it; the loop device goes with that", async () => {
    const machine = place();
    await openRoot(request(machine));
    const child = spawn("sleep", ["1000"], { cwd: machine.at, stdio: "ignore" });
    await once(child, "spawn");
    try {
      await closeRoot(machine);
      expect(await listMounts(machine.at)).toEqual([]);
      expect(loopFiles(folder)).toEqual([machine.file]);
    } finally {
      child.kill("SIGKILL");
      await once(child, "exit");
    }
    await expect.poll(() => loopFiles(folder)).toEqual([]);
  });

  it("is swept away with all others below a folder", async () => {
    const machines = [place(), place()];
    for (const machine of machines) await openRoot(request(machine));
    for (const { at } of machines) await sweepMounts(join(at, ".."));
    await expect.poll(() => loopFiles(folder)).toEqual([]);
    expect(await listMounts(folder)).toEqual([]);
  });
});
