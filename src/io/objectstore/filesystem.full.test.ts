import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { lacks } from "../../core/gates.test-kit.ts";
import { silentLog } from "../../core/log.ts";
import { systemRandom } from "../../core/random.ts";
import { openFilesystemStore } from "./filesystem.ts";
import type { ObjectStore } from "./objectstore.ts";
import { mountTmpfs, unmount } from "./tmpfs.test-kit.ts";

const KIB = 1024;
const open = (root: string) => openFilesystemStore({ root, random: systemRandom, log: silentLog });
const keysOf = async (store: ObjectStore) => (await Array.fromAsync(store.list(""))).map((info) => info.key);

describe.skipIf(lacks("mounts", "mount"))("filesystem store on a small file system", () => {
  let root: string;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "engine-full-"));
  });
  afterEach(async () => {
    unmount(root);
    await rm(root, { recursive: true });
  });

  it("says that the disk is full and where, keeps what it has, and goes on when there is room", async () => {
    mountTmpfs(root, "size=1m");
    const store = await open(root);
    await store.put("p/1", Buffer.alloc(600 * KIB, 1));
    await expect(store.put("p/2", Buffer.alloc(600 * KIB, 2))).rejects.toMatchObject({
      code: "insufficient_storage",
      message: `${join(root, "p/2")} cannot be written: no space left on the device (ENOSPC)`,
    });
    expect(await readdir(join(root, ".tmp"))).toEqual([]);
    expect(await keysOf(store)).toEqual(["p/1"]);
    expect((await store.get("p/1")).every((byte) => byte === 1)).toBe(true);
    await store.put("p/3", Buffer.alloc(200 * KIB, 3));
    await store.delete(["p/1"]);
    await store.put("p/4", Buffer.alloc(600 * KIB, 4));
    expect(await keysOf(store)).toEqual(["p/3", "p/4"]);
  });

  it("copies a file of another file system, as far as there is room", async () => {
    mountTmpfs(root, "size=1m");
    const store = await open(root);
    const folder = await mkdtemp(join(tmpdir(), "engine-other-"));
    const path = join(folder, "file");
    await writeFile(path, Buffer.alloc(600 * KIB, 7));
    await store.putFile("p/1", path);
    await expect(store.putFile("p/2", path)).rejects.toMatchObject({ code: "insufficient_storage" });
    await rm(folder, { recursive: true });
    expect(await readdir(join(root, ".tmp"))).toEqual([]);
    expect(await keysOf(store)).toEqual(["p/1"]);
    expect((await store.get("p/1")).every((byte) => byte === 7)).toBe(true);
  });

  it("says so when there is no room for one more file or folder", async () => {
    mountTmpfs(root, "size=1m,nr_inodes=6");
    const store = await open(root);
    const outcomes = await Promise.allSettled(
      Array.from({ length: 6 }, (_, i) => store.put(`p/${i}/x`, Buffer.from("x"))),
    );
    const failures = outcomes.filter((outcome) => outcome.status === "rejected");
    expect(failures.length).toBeGreaterThan(0);
    for (const { reason } of failures) expect(reason).toMatchObject({ code: "insufficient_storage" });
    expect(await readdir(join(root, ".tmp"))).toEqual([]);
  });

  it("says that the file system became read-only, still reads, and does not start on it", async () => {
    mountTmpfs(root, "size=1m");
    const store = await open(root);
    await store.put("p/1", Buffer.from("x"));
    mountTmpfs(root, "remount,ro");
    await expect(store.put("p/2", Buffer.from("x"))).rejects.toMatchObject({
      code: "insufficient_storage",
      message: expect.stringContaining("the file system is read-only (EROFS)"),
    });
    expect(Buffer.from(await store.get("p/1")).toString()).toBe("x");
    await expect(open(root)).rejects.toMatchObject({ name: "StartupError" });
  });

  it("does not write into the mount point when the disk was unmounted", async () => {
    mountTmpfs(root, "size=1m");
    const store = await open(root);
    await store.put("p/1", Buffer.from("x"));
    unmount(root);
    await expect(store.put("p/2", Buffer.from("x"))).rejects.toMatchObject({ code: "unavailable" });
    await expect(store.get("p/1")).rejects.toMatchObject({ code: "unavailable" });
    expect(await readdir(root)).toEqual([]);
  });
});

const WRITER = `
const { openFilesystemStore } = await import(${JSON.stringify(new URL("filesystem.ts", import.meta.url).href)});
const log = { info() {}, warn() {} };
const store = await openFilesystemStore({ root: process.argv[1], random: { fill: (t) => t }, log });
await store.put("p/small", Buffer.alloc(400 * 1024));
const failure = await store.put("p/large", Buffer.alloc(600 * 1024)).catch((error) => error);
const { readdirSync, writeSync } = await import("node:fs");
const left = readdirSync(process.argv[1] + "/.tmp");
writeSync(1, JSON.stringify({ code: failure?.code, message: failure?.message, left }));
`;

describe.skipIf(process.platform === "win32")("filesystem store under a file-size limit", () => {
  it("says which file would be too large, and leaves nothing of it", async () => {
    const root = await mkdtemp(join(tmpdir(), "engine-limit-"));
    const node = [process.execPath, "--disable-warning=ExperimentalWarning", "--input-type=module", "-e", WRITER];
    // bash counts in units of 1 KiB.
    const limited = spawnSync("bash", ["-c", 'ulimit -f 512 && exec "$@"', "bash", ...node, "--", root], {
      encoding: "utf8",
    });
    expect(limited.stderr).toBe("");
    expect(JSON.parse(limited.stdout)).toEqual({
      code: "insufficient_storage",
      message: `${join(root, "p/large")} cannot be written: the file would be larger than is allowed here (EFBIG)`,
      left: [],
    });
    await rm(root, { recursive: true });
  });
});
