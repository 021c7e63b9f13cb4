import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { changeMounts, listMounts, makeMountsPrivate, parseMounts, runProgram, sweepMounts } from "./mounts.ts";
import { removeSwept, removeUnmounted } from "./removal.test-kit.ts";
import { describeAsRoot, rootFolder, runAs } from "./root.test-kit.ts";

it("reads what the kernel says of mounts", () => {
  const text = [
    String.raw`27 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw,discard`,
    String.raw`30 27 0:25 /a\040b /mnt/with\040space\134 ro - tmpfs none ro,size=4k`,
  ].join("\n");
  expect(parseMounts(`${text}\n`)).toEqual([
    {
      mountId: 27,
      parentId: 1,
      root: "/",
      at: "/",
      isShared: true,
      fsType: "ext4",
      source: "/dev/vda",
      options: "rw,discard",
    },
    {
      mountId: 30,
      parentId: 27,
      root: "/a b",
      at: "/mnt/with space\\",
      isShared: false,
      fsType: "tmpfs",
      source: "none",
      options: "ro,size=4k",
    },
  ]);
  expect(() => parseMounts("something else")).toThrow("not understood");
});

it("says what a program said, and which one is missing", async () => {
  expect(await runProgram("sh", ["-c", "echo out; echo err >&2"])).toBe("out\n");
  const failed = runProgram("sh", ["-c", "echo first >&2; echo last >&2; exit 3"]);
  await expect(failed).rejects.toMatchObject({ code: "failed", message: "sh: last" });
  const full = runProgram("sh", ["-c", "echo 'x: No space left on device' >&2; exit 1"]);
  await expect(full).rejects.toMatchObject({ code: "no_space" });
  await expect(runProgram("engine-no-such-program", [])).rejects.toMatchObject({ code: "unable" });
});

describeAsRoot("mounts", () => {
  const folder = rootFolder("mounts");

  it("maps ids, both ways", async () => {
    const [from, at] = [join(folder, "from"), join(folder, "at, and:on")];
    mkdirSync(from, { mode: 0o777 });
    mkdirSync(at);
    writeFileSync(join(from, "of-root"), "");
    const mapped = ["mapped", from, at, "500000", "65536", "rw"] as const;
    // Those who come later find it done.
    await Promise.all([changeMounts([mapped]), changeMounts([mapped]), changeMounts([mapped])]);
    expect(await listMounts(at)).toHaveLength(1);
    expect(statSync(join(at, "of-root")).uid).toBe(500_000);
    runAs(500_000, "touch", join(at, "of-mapped-root"));
    expect(statSync(join(from, "of-mapped-root")).uid).toBe(0);
    // Who has no id there is nobody, and can make nothing.
    expect(() => runAs(1234, "touch", join(at, "of-somebody"))).toThrow(/EOVERFLOW|too large|Permission denied/);
    await sweepMounts(at);
  });

  it("undoes what it did when a later operation fails", async () => {
    const [from, at] = [join(folder, "from"), join(folder, "bound")];
    mkdirSync(at);
    mkdirSync(join(folder, "other"));
    const ids = ["500000", "65536", "ro"] as const;
    const operations = [
      ["mapped", from, at, ...ids],
      ["mapped", join(folder, "missing"), join(folder, "other"), ...ids],
    ] as const;
    await expect(changeMounts(operations)).rejects.toMatchObject({
      code: "failed",
      message: expect.stringMatching(/ENOENT cannot open .*missing as a mount/),
    });
    expect(await listMounts(at)).toEqual([]);
    await expect(changeMounts([["explode"]])).rejects.toThrow("there is no operation explode");
    await expect(changeMounts([["folder", "one"]])).rejects.toThrow("folder takes 2 arguments");
  });

  it.each(["unmount", "free"])("does not %s where everything of this computer is", (operation) => {
    // By a user who could not do it, were it tried.
    const input = readFileSync(new URL("./mounts.pl", import.meta.url));
    const options = { uid: 500_000, gid: 500_000, input, stdio: "pipe", cwd: "/" } as const;
    for (const path of ["", "/", "//", "relative", "/tmp/..", "/./tmp"]) {
      const args = ["-", process.arch, String(process.pid), operation, path];
      expect(() => execFileSync("perl", args, options)).toThrow(`EINVAL '${path}' is no folder of machines`);
    }
  });

  it("removes no folder in which something is mounted", async () => {
    const [from, at] = [join(folder, "of-the-host"), join(folder, "home/mounted")];
    for (const path of [from, at]) mkdirSync(path, { recursive: true });
    writeFileSync(join(from, "kept"), "");
    await changeMounts([["mapped", from, at, "500000", "65536", "rw"]]);
    await expect(removeUnmounted(join(folder, "home"))).rejects.toThrow(`${at} is mounted there`);
    expect(existsSync(join(at, "kept"))).toBe(true);
    await removeSwept(join(folder, "home"));
    expect([existsSync(join(from, "kept")), existsSync(join(folder, "home"))]).toEqual([true, false]);
  });

  it("keeps mounts from other namespaces", async () => {
    // In a namespace of its own, where everything is shared as systemd does it.
    const script = `
      set -e
      mkdir -p ${folder}/node ${folder}/node/in
      node="$0"; shift 0
      "$node" --disable-warning=ExperimentalWarning --input-type=module -e '
        import { makeMountsPrivate } from ${JSON.stringify(new URL("./mounts.ts", import.meta.url).href)};
        await makeMountsPrivate("${folder}/node");
        await makeMountsPrivate("${folder}/node");
      '
      grep -c " ${folder}/node " /proc/self/mountinfo
      grep " ${folder}/node " /proc/self/mountinfo | grep -c shared: || true
      awk '$5 == "/"' /proc/self/mountinfo | grep -c shared:
    `;
    const args = ["--mount", "--propagation", "shared", "sh", "-c", script, process.execPath];
    expect(execFileSync("unshare", args, { encoding: "utf8" })).toBe("1\n0\n1\n");
    await makeMountsPrivate(join(folder, "from"));
  });
});
