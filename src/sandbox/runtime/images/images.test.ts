import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { closeRoot, openRoot } from "../disks.ts";
import { type Images, openImages } from "./images.ts";
import { HOST_IMAGE } from "../../contract/images/image.ts";
import { sweepMounts } from "../mounts.ts";
import { describeAsRoot, rootFolder } from "../root.test-kit.ts";

const FIRST_ID = 400_000;

describeAsRoot("images", () => {
  const home = rootFolder("images");
  const folder = join(home, "images");
  let images: Images;
  beforeAll(async () => {
    images = await openImages({ folder });
  });
  afterAll(() => sweepMounts(home));

  /** What a shell says whose root is the image, on a disk. */
  async function inImage(name: string | undefined, command: string): Promise<string> {
    const place = { disk: join(home, "disk"), at: join(home, "root") };
    const diskFile = { path: join(home, "disk.ext4"), sizeMb: 64 };
    const image = await images.get(name);
    await openRoot({
      image,
      firstHostId: FIRST_ID,
      ...place,
      isVolatile: false,
      diskFile: existsSync(diskFile.path) ? diskFile.path : diskFile,
    });
    try {
      // The ids of a machine's agent on the host.
      const as = ["--reuid", String(FIRST_ID + 1000), "--regid", String(FIRST_ID + 1000), "--clear-groups"];
      const { stdout, stderr } = spawnSync("chroot", [place.at, "setpriv", ...as, "sh", "-c", command], {
        encoding: "utf8",
      });
      return stdout + stderr;
    } finally {
      await closeRoot(place);
    }
  }

  it("are the host's programs with little else of the host", async () => {
    expect(images.names()).toEqual([HOST_IMAGE]);
    const image = await images.get(undefined);
    expect(image).toMatchObject({ name: HOST_IMAGE, usesHostUsr: true });
    const root = image.path;
    expect(statSync(root).uid).toBe(0);
    expect(readlinkSync(join(root, "bin"))).toBe(readlinkSync("/bin"));
    expect(readdirSync(join(root, "root"))).toEqual([]);
    expect(readdirSync(join(root, "home"))).toEqual(["agent"]);
    expect(statSync(join(root, "home/agent")).uid).toBe(1000);
    expect(statSync(join(root, "tmp")).mode & 0o7777).toBe(0o1777);
    expect(
      readFileSync(join(root, "etc/passwd"), "utf8")
        .split("\n")
        .map((line) => line.split(":")[0]),
    ).toEqual(["root", "agent", "nobody", ""]);
    const written = ["group", "hostname", "hosts", "nsswitch.conf", "passwd", "profile", "resolv.conf"];
    const taken =
      /^(alternatives|java-.*|ld\.so\.(cache|conf|conf\.d)|localtime|mime\.types|protocols|services|pki|ssl)$/;
    expect(
      readdirSync(join(root, "etc"))
        .filter((name) => !taken.test(name))
        .sort(),
    ).toEqual(written);
    expect(existsSync(join(root, "etc/ssl/private"))).toBe(false);
    expect(existsSync(join(root, "etc/ssl/certs"))).toBe(existsSync("/etc/ssl/certs"));
  });

  it("run programs, which write where they may", async () => {
    const said = await inImage(undefined, "cd /home/agent; echo x > file; cat --version | head -1; echo x > /etc/x");
    expect(said).toMatch(/^cat [^\n]*\nsh: 1: cannot create \/etc\/x: Permission denied\n$/);
    expect(await inImage(undefined, "cat /home/agent/file")).toBe("x\n");
  });

  it("are the same for a later process, and are made anew when the host changed", async () => {
    const before = readdirSync(join(folder, HOST_IMAGE)).sort();
    const [again, twice] = await Promise.all([1, 2].map(() => openImages({ folder })));
    expect(await again?.get(HOST_IMAGE)).toEqual(await images.get(undefined));
    expect(await twice?.get(HOST_IMAGE)).toEqual(await images.get(undefined));
    expect(readdirSync(join(folder, HOST_IMAGE)).sort()).toEqual(before);
  });

  it("are whatever is put there, from then on", async () => {
    await expect(images.get("mine")).rejects.toMatchObject({
      code: "unknown_image",
      message: "there is no image mine here; there are: host",
    });
    const rootfs = join(folder, "mine", "v1");
    mkdirSync(join(rootfs, "etc"), { recursive: true });
    writeFileSync(join(rootfs, "etc/version"), "1");
    symlinkSync("v1", join(folder, "mine", "rootfs"));
    const image = await images.get("mine");
    expect(image.usesHostUsr).toBe(false);
    expect(readFileSync(join(image.path, "etc/version"), "utf8")).toBe("1");
    expect(images.names()).toEqual([HOST_IMAGE, "mine"]);
    await expect(images.prepare("mine")).rejects.toMatchObject({ code: "unknown_image" });
    for (const name of ["..", "../../images", "", "mine/v1"]) {
      await expect(images.get(name)).rejects.toMatchObject({ code: "unknown_image" });
    }
  });

  it("leave nothing of Debian that cannot be made, and let the next one try", async () => {
    const mirror = "http://127.0.0.1:9/debian";
    const broken = await openImages({ folder, debian: { mirror } });
    for (let attempt = 0; attempt < 2; attempt++) {
      await expect(broken.prepare("debian")).rejects.toMatchObject({ code: "failed" });
      expect(readdirSync(join(folder, "debian"))).toEqual(["lock"]);
    }
    expect(broken.names()).not.toContain("debian");
  });
});
