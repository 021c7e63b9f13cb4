import {
  chmodSync,
  chownSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { execFileSync } from "node:child_process";
import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { changeMounts } from "../mounts.ts";
import { describeAsRoot, rootFolder } from "../root.test-kit.ts";
import { PART_BYTES } from "../../contract/images/image.ts";
import { readLayer, writeLayer, type PackedLayer } from "./layer-archive.ts";
import { unpackLayer } from "./layer-unpack.ts";
import { headerBlocks, padding, TAR_END, type TarHeader } from "../../../io/tar/tar-format.ts";

const FIRST_HOST_ID = 0x7000_0000;
const MIB = 1024 * 1024;

type Stored = { layer: PackedLayer; parts: Buffer[] };

async function packed(
  changes: string,
  merged = changes,
  more: { maxBytes?: number; leaveOut?: string[] } = {},
): Promise<Stored> {
  const parts: Buffer[] = [];
  const options = { changes, merged, firstHostId: FIRST_HOST_ID, maxBytes: 64 * MIB, leaveOut: [], ...more };
  const layer = await writeLayer(options, async (part, bytes) => void (parts[part] = Buffer.from(bytes)));
  return { layer, parts };
}

const unpacked = ({ layer, parts }: Stored, root: string): Promise<void> =>
  readLayer(layer, root, async (part) => parts[part] ?? Buffer.alloc(0));

/** All that is to be seen of a tree, but for its root. */
function seen(root: string, shift: number, path = ""): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  for (const name of readdirSync(join(root, path)).sort()) {
    const [below, full] = [path === "" ? name : `${path}/${name}`, join(root, path, name)];
    const stats = lstatSync(full);
    const owner = [stats.uid - shift, stats.gid - shift, stats.mode & 0o7777];
    const time = Math.floor(stats.mtimeMs / 1000);
    if (stats.isDirectory()) Object.assign(found, { [below]: ["folder", ...owner, time] }, seen(root, shift, below));
    else if (stats.isSymbolicLink()) found[below] = ["link", ...owner.slice(0, 2), time, readlinkSync(full)];
    else found[below] = ["file", ...owner, time, readFileSync(full).toString("hex"), stats.nlink];
  }
  return found;
}

const name = fc.oneof(
  fc.stringMatching(/^[a-z]{1,3}$/),
  fc.constantFrom("ünï 😀", "x".repeat(200), "a b\nc", "-rf", ".hidden"),
);
type Tree = { [name: string]: Node };
type Node =
  | { kind: "file"; file: Uint8Array; mode: number; id: number }
  | { kind: "link"; to: string }
  | { kind: "folder"; tree: Tree };
const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.dictionary(
    name,
    fc.oneof(
      { maxDepth: 3, depthIdentifier: "tree" },
      fc.record({
        kind: fc.constant("file" as const),
        file: fc.uint8Array({ maxLength: 2_000 }),
        mode: fc.constantFrom(0o644, 0o755, 0o4755, 0o600, 0o000),
        id: fc.constantFrom(0, 1000, 65_534),
      }),
      fc.record({
        kind: fc.constant("link" as const),
        to: fc.constantFrom("/etc/passwd", "../../../..", "x".repeat(300), "a"),
      }),
      fc.record({ kind: fc.constant("folder" as const), tree: tie("tree") }),
    ),
    { maxKeys: 4, noNullPrototype: true },
  ),
}));

function write(root: string, entries: Tree): void {
  for (const [entry, what] of Object.entries(entries)) {
    const path = join(root, entry);
    if (what.kind === "file") {
      writeFileSync(path, what.file);
      chownSync(path, FIRST_HOST_ID + what.id, FIRST_HOST_ID + what.id);
      chmodSync(path, what.mode);
    } else if (what.kind === "link") {
      symlinkSync(what.to, path);
      lchownSync(path, FIRST_HOST_ID, FIRST_HOST_ID);
    } else {
      mkdirSync(path);
      chownSync(path, FIRST_HOST_ID, FIRST_HOST_ID);
      write(path, what.tree);
    }
  }
}

describeAsRoot("layers", () => {
  const folder = rootFolder("layers");
  const fresh = (): Promise<string> => mkdtemp(join(folder, "t-"));

  it("bring back any tree, and the same bytes of the same tree", async () => {
    await fc.assert(
      fc.asyncProperty(tree, async (entries) => {
        const [from, to] = [await fresh(), await fresh()];
        write(from, entries);
        const first = await packed(from);
        await unpacked(first, to);
        expect(seen(to, 0)).toEqual(seen(from, FIRST_HOST_ID));
        expect((await packed(from)).layer).toEqual(first.layer);
      }),
      { numRuns: 40 },
    );
  });

  it("keep files with several names, and content larger than a part", async () => {
    const [from, to] = [await fresh(), await fresh()];
    const noise = Buffer.alloc(2 * PART_BYTES + 7);
    for (let i = 0, x = 1; i < noise.length; i++) noise[i] = (x = (x * 48_271) % 2_147_483_647) & 0xff;
    writeFileSync(join(from, "a"), noise);
    execFileSync("ln", [join(from, "a"), join(from, "b")]);
    execFileSync("chown", ["-R", `${FIRST_HOST_ID}:${FIRST_HOST_ID}`, from]);
    const stored = await packed(from);
    expect(stored.parts.length).toBe(3);
    expect(stored.parts[0]?.length).toBe(PART_BYTES);
    await unpacked(stored, to);
    expect(readFileSync(join(to, "b")).equals(noise)).toBe(true);
    expect(lstatSync(join(to, "a")).ino).toBe(lstatSync(join(to, "b")).ino);
  });

  it("hold what an overlay hides, replaces and moves", async () => {
    const base = await fresh();
    const [lower, upper, work, merged, to] = ["lower", "upper", "work", "merged", "to"].map((one) => join(base, one));
    if (lower === undefined || upper === undefined || work === undefined || merged === undefined || to === undefined)
      throw new Error();
    for (const one of [lower, upper, work, merged]) mkdirSync(one);
    execFileSync(
      "sh",
      [
        "-ec",
        "mkdir -p gone kept moved/deep emptied; echo 1 > gone/a; echo 1 > kept/a; echo 1 > kept/b; echo 1 > moved/deep/a; echo 1 > emptied/a; echo 1 > f; echo 1 > d",
      ],
      { cwd: lower },
    );
    const options = "redirect_dir=on,index=off,metacopy=off";
    await changeMounts([["root", lower, String(FIRST_HOST_ID), "65536", upper, work, merged, options, ""]]);
    try {
      execFileSync(
        "sh",
        [
          "-ec",
          "rm -r gone; rm kept/a; echo 2 > kept/b; rm -r emptied; mkdir emptied; echo 2 > emptied/b; mv moved elsewhere; echo 2 > elsewhere/deep/b; rm f; mkdir f; rm d; ln -s f d",
        ],
        { cwd: merged },
      );
      execFileSync("chown", ["-Rh", `${FIRST_HOST_ID}:${FIRST_HOST_ID}`, merged]);
      const stored = await packed(upper, merged);
      execFileSync("cp", ["-a", "--link", lower, to]);
      await unpacked(stored, to);
      expect(seen(to, 0)).toEqual(seen(merged, FIRST_HOST_ID));
      // Nothing of the files below was changed.
      expect(readFileSync(join(lower, "kept/b"), "utf8")).toBe("1\n");
    } finally {
      await changeMounts([["unmount", merged]]);
    }
  });

  it("leave out what is not the image's, and refuse what is too large, or has the name of a mark", async () => {
    const from = await fresh();
    execFileSync(
      "sh",
      ["-ec", "mkdir etc; echo x > etc/hostname; echo y > etc/other; truncate -s 65M big; mkfifo pipe"],
      { cwd: from },
    );
    execFileSync("chown", ["-R", `${FIRST_HOST_ID}:${FIRST_HOST_ID}`, from]);
    await expect(packed(from)).rejects.toThrow("larger than 67108864 bytes");
    const to = await fresh();
    await unpacked(await packed(from, from, { maxBytes: 66 * MIB, leaveOut: ["etc/hostname", "big"] }), to);
    expect(Object.keys(seen(to, 0))).toEqual(["etc", "etc/other"]);
    execFileSync("rm", [join(from, "big")]);
    chownSync(join(from, "etc/other"), 0, 0);
    await expect(packed(from)).rejects.toThrow("belongs to somebody whom machines do not have");
    execFileSync("sh", ["-ec", "rm -r *; touch .wh.x"], { cwd: from });
    await expect(packed(from)).rejects.toThrow("no names with .wh.");
  });

  it("are refused when a byte is another, the end is missing, or they grow", async () => {
    const from = await fresh();
    writeFileSync(join(from, "a"), "hello".repeat(10_000));
    chownSync(join(from, "a"), FIRST_HOST_ID, FIRST_HOST_ID);
    const { layer, parts } = await packed(from);
    const [whole] = parts;
    if (whole === undefined) throw new Error("no part");
    for (const at of [5, 20, whole.length - 1]) {
      const bad = Buffer.from(whole);
      bad[at] = (bad[at] ?? 0) ^ 1;
      await expect(unpacked({ layer, parts: [bad] }, await fresh())).rejects.toThrow(/archive|Unknown frame/i);
    }
    await expect(unpacked({ layer, parts: [whole.subarray(0, -9)] }, await fresh())).rejects.toThrow(/archive|end/);
    const longer = { ...layer, parts: 2 };
    await expect(unpacked({ layer: longer, parts: [whole, whole] }, await fresh())).rejects.toThrow(
      "longer than it was",
    );
    const other = { ...layer, sha256: "0".repeat(64) };
    await expect(unpacked({ layer: other, parts }, await fresh())).rejects.toThrow("its hash is another");
    const smaller = { ...layer, unpackedBytes: 10_000 };
    await expect(unpacked({ layer: smaller, parts }, await fresh())).rejects.toThrow("more than 10000 bytes");
  });

  describe("that somebody else wrote", () => {
    const entry = (more: Partial<TarHeader>, content = ""): Buffer => {
      const sizeBytes = Buffer.byteLength(content);
      const header: TarHeader = {
        path: "a",
        type: "file",
        mode: 0o644,
        uid: 0,
        gid: 0,
        sizeBytes,
        modifiedSecs: 0,
        target: "",
        ...more,
      };
      return Buffer.concat([headerBlocks(header), Buffer.from(content), padding(sizeBytes)]);
    };
    const link = (path: string, target: string) => entry({ path, target, type: "symlink" });
    const device = Buffer.from(entry({}));
    device.write("3", 156, "latin1");
    const resum = (block: Buffer): Buffer => {
      block.write(" ".repeat(8), 148, "latin1");
      block.write(
        `${block
          .reduce((sum, byte) => sum + byte, 0)
          .toString(8)
          .padStart(6, "0")}\0 `,
        148,
        "latin1",
      );
      return block;
    };
    const cases: Record<string, [RegExp, ...Buffer[]]> = {
      "an absolute name": [/has the path/, entry({ path: "/etc/x" })],
      "a name that leads up": [/has the path/, entry({ path: "a/../../x" })],
      "a name with an empty step": [/has the path/, entry({ path: "a//x" })],
      "a file through a link": [/is not a folder/, link("a", "/tmp"), entry({ path: "a/x" })],
      "a file through a link further up": [/is not a folder/, link("a", ".."), entry({ path: "a/b/x" })],
      "a folder where a link is": [/there twice/, link("a", "/tmp"), entry({ path: "a", type: "folder" })],
      "a hard link to outside": [/not in the archive/, entry({ type: "link", target: "below" })],
      "a hard link that leads up": [/has the path/, entry({ type: "link", target: "../x" })],
      "a hard link to a link": [/not in the archive/, link("b", "/etc/passwd"), entry({ type: "link", target: "b" })],
      "a device": [/is of the kind "3"/, resum(device)],
      "an owner out of range": [/owner out of range/, entry({ uid: 65_536 })],
      "a whiteout that leads up": [/has the path/, entry({ path: ".wh..." })],
      "a whiteout of a step up": [/has the path/, entry({ path: ".wh..." }), entry({ path: ".wh...." })],
      "a folder that is cleared too late": [/after something was put/, entry({}), entry({ path: ".wh..wh..opq" })],
      "a file that is larger than all may be": [
        /unpacks to more/,
        headerBlocks({
          path: "a",
          type: "file",
          mode: 0,
          uid: 0,
          gid: 0,
          sizeBytes: 2 ** 40,
          modifiedSecs: 0,
          target: "",
        }),
      ],
      "a link with content": [/has content/, entry({ type: "symlink", target: "x" }, "abc")],
      "a damaged header": [/damaged/, resum(Buffer.from(entry({}))).fill(1, 0, 4)],
    };
    it.each(Object.entries(cases))("with %s is refused", async (_what, [problem, ...blocks]) => {
      const root = await fresh();
      writeFileSync(join(root, "below"), "x");
      const tar = async function* () {
        yield* [...blocks, TAR_END];
      };
      await expect(unpackLayer(tar(), root, MIB)).rejects.toThrow(problem);
    });

    it("without an end, or with more after it, is refused", async () => {
      const one = async function* (...blocks: Buffer[]) {
        yield* blocks;
      };
      await expect(unpackLayer(one(entry({}, "abc")), await fresh(), MIB)).rejects.toThrow("ends too early");
      await expect(unpackLayer(one(entry({}, "abc"), TAR_END, TAR_END), await fresh(), MIB)).rejects.toThrow(
        "goes on after",
      );
    });
  });
});
