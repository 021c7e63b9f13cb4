import { existsSync, readFileSync, readdirSync, statSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { diskUsage } from "./disks.ts";
import { listMounts } from "./mounts.ts";
import { loopFiles } from "./loop-files.test-kit.ts";
import { describeAsRoot, rootFolder, runAs } from "./root.test-kit.ts";
import { openVolumes } from "./volumes.ts";

const AGENT = 1000;

describeAsRoot("volumes", () => {
  const folder = rootFolder("volumes");
  const open = () => openVolumes({ folder });

  it("belong to the agent, have a size, and keep what is in them", async () => {
    const volumes = await open();
    const at = await volumes.open("tenant/data", 32);
    expect(statSync(at).uid).toBe(AGENT);
    expect(readdirSync(at)).toEqual([]);
    runAs(AGENT, "sh", "-c", `echo kept > ${at}/file`);
    expect((await diskUsage(at)).limitBytes).toBeLessThan(32 * 1024 * 1024);
    expect(() => runAs(AGENT, "sh", "-c", `head -c 33M /dev/zero > ${at}/big`)).toThrow("No space left");
    // Another process finds the same, whatever size it asks for.
    const later = await open();
    expect(await later.open("tenant/data", 64)).toBe(at);
    expect(readFileSync(join(at, "file"), "utf8")).toBe("kept\n");
    await later.remove("tenant/data");
    expect(existsSync(at)).toBe(false);
    await later.remove("tenant/data");
  });

  it("are made once, also when several ask at once", async () => {
    const [one, two] = await Promise.all([open(), open()]);
    const places = await Promise.all([one, two, one].map((volumes) => volumes.open("k", 32)));
    expect(new Set(places).size).toBe(1);
    expect(loopFiles(folder)).toHaveLength(1);
    expect((await listMounts(folder)).length).toBe(1);
    await one.remove("k");
  });

  it("are apart by their keys, whatever these are", async () => {
    const volumes = await open();
    const keys = ["a", "../a", "a/b", "x".repeat(500)];
    const places = await Promise.all(keys.map((key) => volumes.open(key, 16)));
    expect(new Set(places).size).toBe(keys.length);
    for (const place of places) expect(place.startsWith(`${folder}/`)).toBe(true);
    runAs(AGENT, "touch", join(places[0] ?? "", "mine"));
    expect(readdirSync(places[1] ?? "")).toEqual([]);
    for (const key of keys) await volumes.remove(key);
  });

  it("say which nobody has used for how long", async () => {
    const volumes = await open();
    for (const key of ["old", "touched", "new"]) await volumes.open(key, 16);
    const folders = readdirSync(folder).map((name) => join(folder, name));
    for (const at of folders)
      if (readFileSync(join(at, "used"), "utf8") !== "new") utimesSync(join(at, "used"), 10, 10);
    expect((await volumes.unusedSince(11_000)).sort()).toEqual(["old", "touched"]);
    expect(await volumes.unusedSince(9_000)).toEqual([]);
    await volumes.touch("touched");
    await volumes.touch("none");
    expect(await volumes.unusedSince(11_000)).toEqual(["old"]);
    // Whoever comes while it is removed has one that works.
    const [, at] = await Promise.all([volumes.remove("old"), volumes.open("old", 16)]);
    runAs(AGENT, "touch", join(at, "file"));
    expect(await volumes.unusedSince(11_000)).toEqual([]);
    for (const key of ["old", "touched", "new"]) await volumes.remove(key);
  });

  it("leaves nothing of one that cannot be made", async () => {
    const volumes = await open();
    await expect(volumes.open("small", 0)).rejects.toMatchObject({ code: "failed" });
    await volumes.remove("small");
    expect(readdirSync(folder)).toEqual([]);
  });
});
