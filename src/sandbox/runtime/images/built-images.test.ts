import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, readdirSync, statSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { ManualClock } from "../../../core/clock.ts";
import { openImages, type Images } from "./images.ts";
import { sweepMounts } from "../mounts.ts";
import { describeAsRoot, rootFolder } from "../root.test-kit.ts";
import { BuiltImages } from "./built-images.ts";
import type { BuiltImage, ImageLayer } from "../../contract/images/image.ts";
import { writeLayer } from "./layer-archive.ts";

const FIRST_HOST_ID = 0x7000_0000;
const MIB = 1024 * 1024;
const NOBODY = async (): Promise<ReadonlySet<string>> => new Set();
const idOf = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;

describeAsRoot("built images of a node", () => {
  const folder = rootFolder("built");
  const stored = new Map<string, Uint8Array>();
  const clock = new ManualClock();
  let reads = 0;
  let base: Images;
  afterAll(() => sweepMounts(folder));

  const open = async (cacheBytes = 100 * MIB): Promise<BuiltImages> => {
    const images = join(folder, "images");
    base = await openImages({ folder: images });
    const read = async ({ buildId }: ImageLayer, part: number): Promise<Uint8Array> => {
      reads++;
      const bytes = stored.get(`${buildId}/${part}`);
      if (bytes === undefined) throw new Error("it is not stored");
      return bytes;
    };
    return BuiltImages.open({ folder: images, images: base, read, cacheBytes, clock });
  };
  /** A layer that a shell command makes. */
  const layerOf = async (n: number, command: string): Promise<ImageLayer> => {
    const changes = await mkdtemp(join(folder, "changes-"));
    mkdirSync(join(changes, "opt"));
    execFileSync("sh", ["-ec", command], { cwd: join(changes, "opt") });
    execFileSync("chown", ["-R", `${FIRST_HOST_ID}:${FIRST_HOST_ID}`, changes]);
    const options = { changes, merged: changes, firstHostId: FIRST_HOST_ID, maxBytes: 100 * MIB, leaveOut: [] };
    const packed = await writeLayer(options, async (part, bytes) => {
      stored.set(`${idOf(n)}/${part}`, Uint8Array.from(bytes));
    });
    return { buildId: idOf(n), fence: 1, ...packed };
  };
  const imageOf = (n: number, ...layers: ImageLayer[]): BuiltImage => ({
    id: idOf(n),
    base: "host",
    layers,
    environment: {},
  });

  it("are fetched once, whoever asks, and share the files that no layer changed", async () => {
    const images = await open();
    const [first, second] = [await layerOf(1, "echo 1 > a; echo 1 > b"), await layerOf(2, "echo 2 > a")];
    const lower = imageOf(1, first);
    reads = 0;
    const releases = await Promise.all([images.load(lower, NOBODY), images.load(lower, NOBODY)]);
    expect(reads).toBe(1);
    const upper = imageOf(2, first, second);
    releases.push(await images.load(upper, NOBODY));
    // Only what it has not.
    expect(reads).toBe(2);
    for (const release of releases) release();
    const [one, two] = [images.get(lower.id), images.get(upper.id)];
    expect(readFileSync(join(one.path, "opt/a"), "utf8")).toBe("1\n");
    expect(readFileSync(join(two.path, "opt/a"), "utf8")).toBe("2\n");
    expect(statSync(join(two.path, "opt/b")).ino).toBe(statSync(join(one.path, "opt/b")).ino);
    const host = await base.get("host");
    expect(statSync(join(two.path, "etc/passwd")).ino).toBe(statSync(join(host.path, "etc/passwd")).ino);
    // The next process finds them.
    expect((await open()).ids().toSorted()).toEqual([lower.id, upper.id]);
    expect(() => images.get(idOf(9))).toThrow(`the image ${idOf(9)} is not on this node`);
  });

  it("leave nothing behind when their bytes are others", async () => {
    const images = await open();
    const layer = await layerOf(3, "echo 3 > a");
    const bad = imageOf(3, { ...layer, sha256: "0".repeat(64) });
    await expect(images.load(bad, NOBODY)).rejects.toMatchObject({
      code: "failed",
      message: expect.stringContaining("its hash is another"),
    });
    expect(images.ids()).not.toContain(bad.id);
    expect(readdirSync(join(folder, "images", ".built")).filter((name) => name.startsWith("new-"))).toEqual([]);
    (await images.load(imageOf(3, layer), NOBODY))();
  });

  it("make room for others, the longest unused first, but for those in use", async () => {
    const before = await open();
    const used = before.ids().length;
    expect(used).toBeGreaterThan(0);
    const images = await open(9 * MIB);
    const layers = await Promise.all(
      [4, 5, 6].map((n) => layerOf(n, `head -c ${4 * MIB} /dev/zero > zero; echo ${n} > n`)),
    );
    const load = async (n: number, inUse = NOBODY): Promise<void> => {
      const layer = layers[n - 4];
      if (layer === undefined) throw new Error("no layer");
      clock.advance(1_000_000);
      (await images.load(imageOf(n, layer), inUse))();
    };
    await load(4);
    await load(5);
    // Again: it is the latest.
    await load(4);
    await load(6);
    expect(images.ids()).toContain(idOf(4));
    expect(images.ids()).not.toContain(idOf(5));
    // Both are used by machines: there is no room.
    const all = async (): Promise<ReadonlySet<string>> => new Set([idOf(4), idOf(6)]);
    await expect(load(5, all)).rejects.toMatchObject({ code: "no_space" });
    await load(5, async () => new Set([idOf(4)]));
    expect(
      images
        .ids()
        .toSorted()
        .filter((id) => id >= idOf(4)),
    ).toEqual([idOf(4), idOf(5)]);
  });
});
