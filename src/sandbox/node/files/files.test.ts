import { readdirSync, readFileSync } from "node:fs";
import { Readable } from "node:stream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  bodyOf,
  bytesOf,
  codeOf,
  HOME,
  namesIn,
  NEVER,
  openLab,
  put,
  textOf,
  type FilesLab,
} from "./files.test-kit.ts";
import { whyNoMachine } from "./machine.test-kit.ts";

const reason = whyNoMachine();

describe.skipIf(reason !== "")(`the files of a machine${reason === "" ? "" : `: skipped, ${reason}`}`, () => {
  let lab: FilesLab;
  beforeAll(async () => void (lab = await openLab()));
  afterAll(async () => lab.remove());

  test("what is put is what a command reads, and the other way round", async () => {
    const { files, machine } = lab;
    const entry = await files.put({ path: `${HOME}/new/deep/a b.txt` }, bodyOf("one ", "two"), NEVER);
    expect(entry).toMatchObject({
      path: `${HOME}/new/deep/a b.txt`,
      size: 7,
      is_dir: false,
      mode: 0o644,
      created: true,
    });
    expect(await machine.sh(`cat '${HOME}/new/deep/a b.txt'; stat -c '%u:%g %a' ${HOME}/new/deep/* ${HOME}/new`)).toBe(
      "one two1000:1000 644\n1000:1000 755\n",
    );
    await machine.sh(`printf inside > ${HOME}/made; chmod 751 ${HOME}/made`);
    expect(await textOf(files, `${HOME}/made`)).toBe("inside");
    expect(await files.stat(`${HOME}/made`, NEVER)).toMatchObject({ size: 6, mode: 0o751 });
    expect(await files.stat(`/tmp`, NEVER)).toMatchObject({ is_dir: true, mode: 0o1777, size: 0 });
  });

  test("a file that is replaced keeps its mode, and its readers keep the old bytes", async () => {
    const { files, machine } = lab;
    await put(files, `${HOME}/tool`, "old old old");
    await machine.sh(`chmod 4750 ${HOME}/tool; ln ${HOME}/tool ${HOME}/other-name`);
    const reading = await files.get({ path: `${HOME}/tool` }, NEVER);
    const entry = await files.put({ path: `${HOME}/tool` }, bodyOf("new"), NEVER);
    expect(entry).toMatchObject({ mode: 0o750, created: false, size: 3 });
    expect(String(await bytesOf(reading.body))).toBe("old old old");
    expect(await machine.sh(`cat ${HOME}/tool ${HOME}/other-name`)).toBe("newold old old");
    const said = await files.put({ path: `${HOME}/tool`, mode: 0o600 }, bodyOf("x"), NEVER);
    expect(said.mode).toBe(0o600);
  });

  test("a file of the image is replaced, and its tag stays the same until it is", async () => {
    const { files, machine } = lab;
    const path = `${HOME}/of-the-image`;
    const { etag } = await files.stat(path, NEVER);
    expect((await files.get({ path }, NEVER)).etag).toBe(etag);
    const replaced = await files.put({ path, if_match: etag }, bodyOf("mine"), NEVER);
    expect(await files.stat(path, NEVER)).toMatchObject({ etag: replaced.etag, size: 4 });
    expect(await machine.sh(`cat ${path}`)).toBe("mine");
    expect(readFileSync(`${machine.folder}/image${path}`, "utf8")).toBe("image");
    await files.delete({ path, recursive: false, if_match: replaced.etag }, NEVER);
    expect(await machine.sh(`ls ${path} 2>&1 || true`)).toContain("No such file");
  });

  test("ranges are counted from both ends", async () => {
    const { files } = lab;
    await put(files, `${HOME}/digits`, "0123456789");
    const part = async (start?: number, end?: number) => {
      const got = await files.get({ path: `${HOME}/digits`, start, end }, NEVER);
      return [got.start, got.end, String(await bytesOf(got.body))];
    };
    expect(await part(2, 4)).toEqual([2, 4, "234"]);
    expect(await part(7)).toEqual([7, 9, "789"]);
    expect(await part(7, 99)).toEqual([7, 9, "789"]);
    expect(await part(-3)).toEqual([7, 9, "789"]);
    expect(await part(-99)).toEqual([0, 9, "0123456789"]);
    expect(await part(undefined, 1)).toEqual([0, 1, "01"]);
    await expect(part(10)).rejects.toMatchObject({
      code: "range_not_satisfiable",
      details: { headers: { "Content-Range": "bytes */10" } },
    });
    await put(files, `${HOME}/empty`, "");
    const empty = await files.get({ path: `${HOME}/empty` }, NEVER);
    expect([empty.start, empty.end, String(await bytesOf(empty.body))]).toEqual([0, -1, ""]);
    expect(await codeOf(files.get({ path: `${HOME}/empty`, start: 0 }, NEVER))).toBe("range_not_satisfiable");
  });

  test("of writers with the same condition one succeeds, and the others change nothing", async () => {
    const { files } = lab;
    const path = `${HOME}/counted`;
    const made = await Promise.all(
      [1, 2, 3, 4].map((i) => codeOf(files.put({ path, if_none_match: "*" }, bodyOf(`first ${i}`), NEVER))),
    );
    expect(made.toSorted()).toEqual(["nothing", "precondition_failed", "precondition_failed", "precondition_failed"]);
    const { etag } = await files.stat(path, NEVER);
    const changed = await Promise.all(
      [1, 2, 3, 4].map((i) => codeOf(files.put({ path, if_match: `"x", ${etag}` }, bodyOf(`second ${i}`), NEVER))),
    );
    expect(changed.filter((code) => code === "nothing")).toHaveLength(1);
    expect(await textOf(files, path)).toBe(`second ${changed.indexOf("nothing") + 1}`);
    expect(await codeOf(files.delete({ path, recursive: false, if_match: etag }, NEVER))).toBe("precondition_failed");
    expect(await codeOf(files.delete({ path, recursive: false, if_match: 'W/"weak"' }, NEVER))).toBe(
      "precondition_failed",
    );
    await files.delete({ path, recursive: false, if_match: "*" }, NEVER);
    expect(await codeOf(files.put({ path, if_match: "*" }, bodyOf("x"), NEVER))).toBe("precondition_failed");
    expect(await codeOf(files.stat(path, NEVER))).toBe("file_not_found");
  });

  test("every change gives another entity tag", async () => {
    const { files, machine } = lab;
    const path = `${HOME}/tagged`;
    const tags = new Set<string>();
    const note = async (): Promise<void> => void tags.add((await files.stat(path, NEVER)).etag);
    await put(files, path, "aaaa");
    await note();
    await note();
    expect(tags.size).toBe(1);
    await put(files, path, "bbbb");
    await note();
    // Same size, and the time set back.
    await machine.sh(`touch -r ${path} ${HOME}/then; printf cccc > ${path}; touch -r ${HOME}/then ${path}`);
    await note();
    await machine.sh(`chmod 600 ${path}`);
    await note();
    expect(tags.size).toBe(4);
  });

  test("a listing is sorted, pages, and shows names that are no text", async () => {
    const { files, machine } = lab;
    await machine.sh(
      `mkdir ${HOME}/many; cd ${HOME}/many; seq -f n%05.0f 1 12345 | xargs touch; touch "$(printf 'z\\377')"`,
    );
    const first = await files.list({ path: `${HOME}/many` }, NEVER);
    expect(first.entries).toHaveLength(10_000);
    expect(first.more).toBe(true);
    expect(first.entries[9_999]?.path).toBe(`${HOME}/many/n10000`);
    const rest = await files.list({ path: `${HOME}/many`, after: "n10000" }, NEVER);
    expect(rest.entries).toHaveLength(2_346);
    expect(rest.more).toBe(false);
    const odd = rest.entries.at(-1)?.path ?? "";
    expect(odd).toBe(`${HOME}/many/z\udcff`);
    await put(files, odd, "found");
    expect(await machine.sh(`cat ${HOME}/many/z*`)).toBe("found");
    await files.delete({ path: `${HOME}/many`, recursive: true }, NEVER);
    expect(await codeOf(files.list({ path: `${HOME}/many` }, NEVER))).toBe("file_not_found");
  });

  test("links are followed by get and put, shown by what they lead to, and deleted themselves", async () => {
    const { files, machine } = lab;
    await machine.sh(`mkdir -p ${HOME}/l/dir; cd ${HOME}/l; printf t > target; ln -s target link; ln -s dir to-dir;
      ln -s ${HOME}/l/later dangling; ln -s loop loop; ln -s link second`);
    const { entries } = await files.list({ path: `${HOME}/l` }, NEVER);
    expect(entries.map(({ path, size, is_dir }) => [path.split("/").at(-1), is_dir, is_dir ? 0 : size])).toEqual([
      ["dangling", false, `${HOME}/l/later`.length],
      ["dir", true, 0],
      ["link", false, 1],
      ["loop", false, 4],
      ["second", false, 1],
      ["target", false, 1],
      ["to-dir", true, 0],
    ]);
    await put(files, `${HOME}/l/second`, "through two");
    await put(files, `${HOME}/l/dangling`, "made");
    await put(files, `${HOME}/l/to-dir/file`, "in");
    expect(await machine.sh(`cd ${HOME}/l; cat target later dir/file; readlink second dangling`)).toBe(
      `through twomadeinlink\n${HOME}/l/later\n`,
    );
    expect(await codeOf(files.get({ path: `${HOME}/l/loop` }, NEVER))).toBe("conflict");
    expect(await codeOf(files.put({ path: `${HOME}/l/loop` }, bodyOf("x"), NEVER))).toBe("conflict");
    await files.delete({ path: `${HOME}/l/link`, recursive: false }, NEVER);
    await files.delete({ path: `${HOME}/l/to-dir`, recursive: true }, NEVER);
    expect(await machine.sh(`cat ${HOME}/l/target ${HOME}/l/dir/file`)).toBe("through twoin");
  });

  test("what can't be done is refused by its own code", async () => {
    const { files, machine } = lab;
    await machine.sh(`printf s > /etc/secret; chmod 600 /etc/secret; printf p > /etc/public`, "root");
    await machine.sh(`mkdir ${HOME}/d; printf f > ${HOME}/f; printf r > ${HOME}/ro; chmod 444 ${HOME}/ro`);
    const refused = async (task: Promise<unknown>): Promise<string> => await codeOf(task);
    expect({
      missing: await refused(files.get({ path: `${HOME}/none` }, NEVER)),
      below: await refused(files.get({ path: `${HOME}/f/x` }, NEVER)),
      folder: await refused(files.get({ path: `${HOME}/d` }, NEVER)),
      secret: await refused(files.get({ path: "/etc/secret" }, NEVER)),
      rootsFolder: await refused(files.put({ path: "/etc/mine" }, bodyOf("x"), NEVER)),
      rootsFile: await refused(files.delete({ path: "/etc/public", recursive: false }, NEVER)),
      readOnlyFile: await refused(files.put({ path: `${HOME}/ro` }, bodyOf("x"), NEVER)),
      readOnlyDisk: await refused(files.put({ path: "/usr/x" }, bodyOf("x"), NEVER)),
      inMemory: await refused(files.put({ path: "/tmp/x" }, bodyOf("x"), NEVER)),
      overFolder: await refused(files.put({ path: `${HOME}/d` }, bodyOf("x"), NEVER)),
      overRoot: await refused(files.put({ path: "/" }, bodyOf("x"), NEVER)),
      dots: await refused(files.put({ path: `${HOME}/d/..` }, bodyOf("x"), NEVER)),
      belowFile: await refused(files.put({ path: `${HOME}/f/x` }, bodyOf("x"), NEVER)),
      upFromNothing: await refused(files.put({ path: `${HOME}/no/../x` }, bodyOf("x"), NEVER)),
      deleteFolder: await refused(files.delete({ path: `${HOME}/d`, recursive: false }, NEVER)),
      deleteRoot: await refused(files.delete({ path: "/", recursive: true }, NEVER)),
      listFile: await refused(files.list({ path: `${HOME}/f` }, NEVER)),
      longName: await refused(files.put({ path: `${HOME}/${"n".repeat(256)}` }, bodyOf("x"), NEVER)),
      longPath: await refused(files.stat(`/${"n/".repeat(2_100)}`, NEVER)),
      nul: await refused(files.stat("/a\0b", NEVER)),
      relative: await refused(files.stat("a", NEVER)),
    }).toEqual({
      missing: "file_not_found",
      below: "conflict",
      folder: "conflict",
      secret: "forbidden",
      rootsFolder: "forbidden",
      rootsFile: "forbidden",
      readOnlyFile: "forbidden",
      readOnlyDisk: "forbidden",
      inMemory: "forbidden",
      overFolder: "conflict",
      overRoot: "conflict",
      dots: "conflict",
      belowFile: "conflict",
      upFromNothing: "file_not_found",
      deleteFolder: "conflict",
      deleteRoot: "conflict",
      listFile: "conflict",
      longName: "invalid_parameter",
      longPath: "invalid_parameter",
      nul: "invalid_parameter",
      relative: "invalid_parameter",
    });
    expect(await textOf(files, "/etc/public")).toBe("p");
    expect(await machine.sh(`cat ${HOME}/ro ${HOME}/f`)).toBe("rf");
  });

  test("an upload that is cut off leaves nothing, and the old file stays", async () => {
    const { files, machine } = lab;
    await machine.sh(`mkdir ${HOME}/cut; printf old > ${HOME}/cut/file`);
    async function* broken(): AsyncGenerator<Buffer> {
      yield Buffer.alloc(3_000_000);
      throw new Error("the client left");
    }
    const brokenPut = files.put({ path: `${HOME}/cut/file` }, Readable.from(broken()), NEVER);
    await expect(brokenPut).rejects.toThrow("the client left");
    const short = files.put({ path: `${HOME}/cut/a/b/new`, size: 10 }, bodyOf("short"), NEVER);
    expect(await codeOf(short)).toBe("bad_request");
    const gone = new AbortController();
    const endless = new Readable({ read: () => undefined });
    endless.push(Buffer.alloc(1_000_000));
    const aborted = files.put({ path: `${HOME}/cut/aborted` }, endless, gone.signal);
    setTimeout(() => gone.abort(new Error("no longer wanted")), 100);
    await expect(aborted).rejects.toThrow("no longer wanted");
    expect(await machine.sh(`cd ${HOME}/cut; find . | sort; cat file`)).toBe(".\n./file\nold");
  });

  test("a full disk is said before or while bytes are sent, and leaves nothing", async () => {
    const { files, machine } = lab;
    const piece = Buffer.alloc(1 << 20, 1);
    let sent = 0;
    function* pieces(): Generator<Buffer> {
      for (; sent < 200; sent++) yield piece;
    }
    const path = `${HOME}/full`;
    const announced = files.put({ path, size: 200 << 20 }, Readable.from(pieces(), { highWaterMark: 1 }), NEVER);
    expect(await codeOf(announced)).toBe("insufficient_storage");
    expect(sent).toBeLessThan(3);
    sent = 0;
    expect(await codeOf(files.put({ path }, Readable.from(pieces()), NEVER))).toBe("insufficient_storage");
    expect(sent).toBeGreaterThan(10);
    expect(sent).toBeLessThan(200);
    await put(files, path, "there is room again");
    expect(await machine.sh(`cat ${path}; ls -A ${HOME} | grep -c '^\\.put' || true`)).toBe("there is room again0\n");
  });

  test("a file that grows keeps the length that was said; one that shrinks ends in an error", async () => {
    const { files, machine } = lab;
    await machine.sh(`head -c 8000000 /dev/zero > ${HOME}/moving`);
    const growing = await files.get({ path: `${HOME}/moving` }, NEVER);
    await machine.sh(`printf more >> ${HOME}/moving`);
    expect((await bytesOf(growing.body)).length).toBe(8_000_000);
    const shrinking = await files.get({ path: `${HOME}/moving` }, NEVER);
    await machine.sh(`truncate -s 1000 ${HOME}/moving`);
    expect(await codeOf(bytesOf(shrinking.body))).toBe("unavailable");
    expect((await bytesOf((await files.get({ path: `${HOME}/moving` }, NEVER)).body)).length).toBe(1000);
  });

  test("a reader that leaves frees the helper", async () => {
    const { files, machine } = lab;
    await machine.sh(`truncate -s 900M ${HOME}/sparse`);
    for (let i = 0; i < 12; i++) {
      const { body } = await files.get({ path: `${HOME}/sparse` }, NEVER);
      await body[Symbol.asyncIterator]().next();
      body.destroy();
    }
    const gone = new AbortController();
    const { body } = await files.get({ path: `${HOME}/sparse` }, gone.signal);
    gone.abort(new Error("left"));
    await expect(bytesOf(body)).rejects.toThrow("left");
    expect((await files.stat(`${HOME}/sparse`, NEVER)).size).toBe(900 << 20);
  });

  test("all goes on while the machine stands still", async () => {
    const { files, machine } = lab;
    await machine.pause();
    try {
      await put(files, `${HOME}/paused/file`, "still");
      expect(await textOf(files, `${HOME}/paused/file`)).toBe("still");
      expect(await namesIn(files, `${HOME}/paused`)).toEqual(["file"]);
    } finally {
      await machine.resume();
    }
    expect(await machine.sh(`cat ${HOME}/paused/file`)).toBe("still");
  });

  test("a helper is the agent and nobody else: no capability, no privilege, no descriptor of the host", async () => {
    const { files, machine } = lab;
    await machine.sh(`truncate -s 100M ${HOME}/long`);
    const { body } = await files.get({ path: `${HOME}/long` }, NEVER);
    const helper = helpersOf(process.pid)[0] ?? "none";
    const status = readFileSync(`/proc/${helper}/status`, "utf8");
    const field = (name: string): string => new RegExp(`^${name}:[ \\t]*(.*)$`, "m").exec(status)?.[1] ?? "";
    expect(["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"].map((name) => Number(`0x${field(name)}`))).toEqual([
      0, 0, 0, 0, 0,
    ]);
    expect([field("NoNewPrivs"), field("Seccomp"), field("Groups").trim()]).toEqual(["1", "2", ""]);
    expect(new Set(field("Uid").split("\t"))).toEqual(new Set([String(1_610_612_736 + 1_000)]));
    const descriptors = readdirSync(`/proc/${helper}/fd`).map(Number);
    // Its three pipes, the machine's end, and the file.
    expect(descriptors.length).toBeLessThanOrEqual(5);
    expect(readFileSync(`/proc/${helper}/environ`, "utf8")).toBe("");
    body.destroy();
  });

  test("stopped, its disk is read and written in namespaces of its own, and then let go", async () => {
    const { files, machine } = lab;
    await machine.sh("printf s > /etc/secret; chmod 600 /etc/secret", "root");
    await machine.sh(
      `printf kept > ${HOME}/kept; printf gone > /tmp/gone; printf s > ${HOME}/own; chmod 600 ${HOME}/own`,
    );
    await files.end();
    await machine.stop();
    expect(await textOf(files, `${HOME}/kept`)).toBe("kept");
    expect(await textOf(files, `${HOME}/own`)).toBe("s");
    expect(await codeOf(files.get({ path: "/etc/secret" }, NEVER))).toBe("forbidden");
    await put(files, `${HOME}/while/stopped`, "written");
    expect(await namesIn(files, "/tmp")).toEqual([]);
    expect(await codeOf(files.put({ path: "/tmp/x" }, bodyOf("x"), NEVER))).toBe("forbidden");
    expect(machine.held).toBe(1);
    expect(readFileSync(`${machine.root}${HOME}/while/stopped`, "utf8")).toBe("written");
    await files.end();
    expect(machine.held).toBe(0);
    expect(helpersOf(process.pid)).toEqual([]);
  });
});

/** Pids of children that run the helper. */
function helpersOf(pid: number): string[] {
  return readdirSync("/proc").filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      const isOurs = readFileSync(`/proc/${name}/stat`, "utf8").split(") ")[1]?.split(" ")[1] === String(pid);
      return isOurs && readFileSync(`/proc/${name}/cmdline`, "utf8").includes("helper.pl");
    } catch {
      return false;
    }
  });
}
