import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, readdir, rename, rm, stat, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { silentLog } from "../../core/log.ts";
import { systemRandom } from "../../core/random.ts";
import { describeObjectStore } from "./contract.test-kit.ts";
import { openFilesystemStore } from "./filesystem.ts";

const open = (root: string) => openFilesystemStore({ root, random: systemRandom, log: silentLog });

describeObjectStore("filesystem", async () => {
  const folder = await mkdtemp(join(tmpdir(), "engine-store-"));
  return { store: await open(join(folder, "data")), dispose: () => rm(folder, { recursive: true }) };
});

describe("filesystem store", () => {
  let folder: string;
  let root: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "engine-store-"));
    root = join(folder, "data");
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  it("makes its folder with all ancestors, and keeps objects over a reopening", async () => {
    root = join(folder, "x/y/z");
    await (await open(root)).put("a/b", Buffer.from("kept"));
    expect(Buffer.from(await (await open(root)).get("a/b")).toString()).toBe("kept");
  });

  it("gives the file's place", async () => {
    const store = await open(root);
    await store.put("a/b", Buffer.from("x"));
    expect(store.localPath?.("a/b")).toBe(join(root, "a/b"));
    expect(await readFile(join(root, "a/b"), "utf8")).toBe("x");
    expect(() => store.localPath?.("../b")).toThrow("starts with a dot");
  });

  it("leaves no temporary file behind, whether a put succeeds, fails or is aborted", async () => {
    const store = await open(root);
    await store.put("a/b", Buffer.from("x"));
    await expect(store.put("a/b/c", Buffer.from("x"))).rejects.toThrow("ENOTDIR");
    await expect(store.put("a", Buffer.from("x"))).rejects.toThrow("EISDIR");
    const controller = new AbortController();
    const aborted = store.put("a/d", Buffer.alloc(40_000_000), { signal: controller.signal });
    controller.abort(new Error("client left"));
    await expect(aborted).rejects.toThrow("client left");
    expect(await readdir(join(root, ".tmp"))).toEqual([]);
    expect(await readdir(join(root, "a"))).toEqual(["b"]);
  });

  it("reads no other file than the listed one, whatever is put in its place: a link, a folder of links, a pipe", async () => {
    const store = await open(root);
    const put = async () => {
      await rm(join(root, "drop"), { recursive: true, force: true });
      await store.put("drop/t/a.json", Buffer.from("good"));
      return (await store.head("drop/t/a.json"))?.identity ?? "";
    };
    await mkdir(join(folder, "elsewhere"));
    await writeFile(join(folder, "elsewhere", "a.json"), "secret");
    const swaps: (() => Promise<unknown>)[] = [
      async () => {
        await rm(join(root, "drop/t/a.json"));
        await symlink(join(folder, "elsewhere", "a.json"), join(root, "drop/t/a.json"));
      },
      async () => {
        await rename(join(root, "drop/t"), join(root, "drop/u"));
        await symlink(join(folder, "elsewhere"), join(root, "drop/t"));
      },
      // The very file, but not where its key says.
      async () => {
        await rename(join(root, "drop/t"), join(folder, "moved"));
        await symlink(join(folder, "moved"), join(root, "drop/t"));
      },
      async () => {
        await rm(join(root, "drop/t/a.json"));
        await once(spawn("mkfifo", [join(root, "drop/t/a.json")]), "close");
      },
    ];
    for (const swap of swaps) {
      const identity = await put();
      expect(Buffer.from(await store.get("drop/t/a.json", { identity })).toString()).toBe("good");
      await swap();
      await expect(store.get("drop/t/a.json", { identity })).rejects.toThrow(
        /has changed since it was listed|no object/,
      );
    }
  });

  it("writes and deletes nothing behind a link beside files of others, and makes no folder there", async () => {
    const store = await open(root);
    const beside = { isBesideOthers: true };
    await store.put("drop/t/a", Buffer.from("a"));
    await store.put("drop/t/b", Buffer.from("b"), beside);
    expect(Buffer.from(await store.get("drop/t/b")).toString()).toBe("b");
    await store.delete(["drop/t/b", "drop/t/none", "drop/none/c"], beside);
    expect(await readdir(join(root, "drop/t"))).toEqual(["a"]);
    // A folder, and one on the way to it.
    for (const swapped of ["drop/t", "drop"]) {
      const elsewhere = join(folder, `elsewhere-${swapped.replace("/", "-")}`);
      await rename(join(root, swapped), elsewhere);
      await symlink(elsewhere, join(root, swapped));
      await expect(store.put("drop/t/b", Buffer.from("b"), beside)).rejects.toThrow("has changed since it was listed");
      await store.delete(["drop/t/a"], beside);
      await rm(join(root, swapped));
      await rename(elsewhere, join(root, swapped));
      expect(await readdir(join(root, "drop/t"))).toEqual(["a"]);
    }
    await expect(store.put("drop/u/b", Buffer.from("b"), beside)).rejects.toThrow("has changed since it was listed");
    expect(await readdir(join(root, "drop"))).toEqual(["t"]);
    expect(await readdir(join(root, ".tmp"))).toEqual([]);
  });

  it("takes a file of its own file system without a copy, and leaves no temporary name behind", async () => {
    const store = await open(root);
    const path = join(folder, "file");
    await writeFile(path, "here");
    for (const key of ["a", "a", "b"]) await store.putFile(key, path);
    expect((await stat(join(root, "a"))).ino).toBe((await stat(path)).ino);
    await symlink(path, join(folder, "symlink"));
    await store.putFile("c", join(folder, "symlink"));
    await rm(path);
    expect(await readFile(join(root, "c"), "utf8")).toBe("here");
    await expect(store.putFile("a", join(folder, "symlink"))).rejects.toThrow("ENOENT");
    expect(await readdir(join(root, ".tmp"))).toEqual([]);
    expect(await readFile(join(root, "a"), "utf8")).toBe("here");
  });

  it("sweeps temporary files of dead processes and its own earlier ones, and nothing else", async () => {
    await open(root);
    const living = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"]);
    try {
      const dead = await pidOfDeadProcess();
      const foreign = ["keep.tmp", "0123456789abcdef.tmp", `${dead}-0123.tmp`, temporaryName(living.pid)];
      for (const file of [temporaryName(dead), temporaryName(process.pid), ...foreign])
        await writeFile(join(root, ".tmp", file), "x");
      await open(root);
      expect((await readdir(join(root, ".tmp"))).sort()).toEqual([...foreign].sort());
    } finally {
      living.kill("SIGKILL");
    }
  });

  it("does not list what is no object", async () => {
    const store = await open(root);
    await store.put("a/b", Buffer.from("x"));
    await writeFile(join(root, "a/.DS_Store"), "x");
    await writeFile(join(root, ".tmp/1-0123456789abcdef.tmp"), "x");
    await symlink("/etc", join(root, "link"));
    await mkdir(join(root, "empty"));
    expect((await Array.fromAsync(store.list(""))).map((info) => info.key)).toEqual(["a/b"]);
    await expect(Array.fromAsync(store.list("../"))).rejects.toThrow("starts with a dot");
    await expect(Array.fromAsync(store.list("../../etc/pass"))).rejects.toThrow("starts with a dot");
  });

  it("says so when the data folder has vanished, does not make it again, and recovers when it is back", async () => {
    const store = await open(root);
    await store.put("a/b", Buffer.from("x"));
    await rename(root, `${root}.away`);
    const vanished = { code: "unavailable", message: expect.stringContaining(`${root} has vanished`) };
    await expect(store.put("a/c", Buffer.from("x"))).rejects.toMatchObject(vanished);
    await expect(store.put("fresh/c", Buffer.from("x"))).rejects.toMatchObject(vanished);
    await expect(store.get("a/b")).rejects.toMatchObject(vanished);
    await expect(store.head("a/b")).rejects.toMatchObject(vanished);
    await expect(store.delete(["a/b"])).rejects.toMatchObject(vanished);
    await expect(Array.fromAsync(store.list(""))).rejects.toMatchObject(vanished);
    expect(await readdir(folder)).toEqual(["data.away"]);

    // An empty folder in its place is what an unmounted disk leaves.
    await mkdir(root);
    await expect(store.put("a/c", Buffer.from("x"))).rejects.toMatchObject(vanished);
    expect(await readdir(root)).toEqual([]);

    await rm(root, { recursive: true });
    await rename(`${root}.away`, root);
    await store.put("a/c", Buffer.from("x"));
    expect((await Array.fromAsync(store.list(""))).map((info) => info.key)).toEqual(["a/b", "a/c"]);
  });

  it("dates an object by when it came to its place, not by when its bytes were written", async () => {
    const store = await open(root);
    const source = join(folder, "source");
    await writeFile(source, "x");
    await utimes(source, 0, 0);
    const beforeMs = (await stat(source)).ctimeMs;
    await mkdir(join(root, "a"));
    await rename(source, join(root, "a/b"));
    const [info] = await Array.fromAsync(store.list("a/"));
    expect(info).toEqual(await store.head("a/b"));
    expect(info?.modifiedAtMs).toBeGreaterThanOrEqual(Math.floor(beforeMs));
  });

  it("makes a folder inside again when somebody removed it", async () => {
    const store = await open(root);
    await store.put("a/b/c/1", Buffer.from("x"));
    await rm(join(root, "a"), { recursive: true });
    await Promise.all([store.put("a/b/c/2", Buffer.from("x")), store.put("a/b/d/2", Buffer.from("x"))]);
    expect((await Array.fromAsync(store.list(""))).map((info) => info.key)).toEqual(["a/b/c/2", "a/b/d/2"]);
  });

  it("refuses to start where it cannot store anything", async () => {
    await writeFile(join(folder, "file"), "x");
    for (const bad of [join(folder, "file"), join(folder, "file/below"), "/proc/nowhere"]) {
      await expect(open(bad)).rejects.toMatchObject({
        name: "StartupError",
        message: expect.stringMatching(`the data folder ${bad} cannot be used: E`),
      });
    }
  });
});

function temporaryName(pid: number | undefined): string {
  return `${pid}-0123456789abcdef.tmp`;
}

async function pidOfDeadProcess(): Promise<number> {
  const child = spawn(process.execPath, ["-e", ""]);
  await new Promise((resolve) => child.on("exit", resolve));
  if (child.pid === undefined) throw new Error("could not start a process");
  return child.pid;
}
