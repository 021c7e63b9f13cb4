import { existsSync, mkdirSync, readFileSync, readdirSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { buildDebian } from "./images-debian.ts";
import { listMounts } from "../mounts.ts";
import { describeAsRoot } from "../root.test-kit.ts";

/** It is made once for all runs of the tests: that takes half a minute, and its packages come over the network. */
const folder = join(tmpdir(), "engine-test-debian");

describeAsRoot("the image of Debian", () => {
  it("is made once, when two ask for it", { timeout: 240_000 }, async () => {
    mkdirSync(folder, { recursive: true });
    await Promise.all([buildDebian(folder, {}), buildDebian(folder, {})]);
    expect(readdirSync(folder).sort()).toEqual(["lock", "rootfs"]);
    expect(await listMounts(folder)).toEqual([]);
  });

  it("has an agent, package management, and nothing of the host", () => {
    const root = join(folder, "rootfs");
    const inside = (command: string): string =>
      spawnSync("chroot", [root, "sh", "-c", command], {
        encoding: "utf8",
        env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" },
      }).stdout;
    expect(inside("id -u agent; id -g agent; ls -ld /home/agent | cut -c1-10")).toBe("1000\n1000\ndrwxr-x---\n");
    expect(
      inside("git --version; curl --version | head -1; python3 -c 'print(1)'; apt-get --version | head -1"),
    ).toMatch(/^git version .*\ncurl .*\n1\napt .*\n$/);
    expect(readFileSync(join(root, "etc/resolv.conf"), "utf8")).toContain("no name server inside");
    expect(readFileSync(join(root, "etc/hostname"), "utf8")).toBe("sandbox\n");
    expect(readFileSync(join(root, "etc/apt/sources.list"), "utf8")).toContain("-security main");
    expect(inside("/usr/sbin/policy-rc.d; echo $?")).toBe("101\n");
    expect(existsSync(join(root, "var/lib/apt/lists/partial"))).toBe(true);
    const { stdout } = spawnSync("du", ["-smx", root], { encoding: "utf8" });
    expect(Number(stdout.split("\t")[0])).toBeLessThan(260);
  });
});
