import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { openControllersV1 } from "./cgroups-v1.ts";
import { openControllersV2 } from "./cgroups-v2.ts";
import type { MountEntry } from "../mounts.ts";

/** A folder with the files of a hierarchy that has all controllers: what is written, and what is read. */
let at: string;
beforeEach(() => {
  at = mkdtempSync(join(tmpdir(), "engine-cgroup2-"));
  group("", { "cgroup.controllers": "cpuset cpu io memory pids\n", "cgroup.subtree_control": "cpu\n" });
});
afterEach(() => rmSync(at, { recursive: true }));

function group(path: string, files: Readonly<Record<string, string>>): void {
  mkdirSync(join(at, path), { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(at, path, name), text);
}

const read = (path: string): string => readFileSync(join(at, path), "utf8");

function mountOf(fsType: string, options = "rw"): MountEntry {
  return { mountId: 1, parentId: 0, root: "/", at, isShared: false, fsType, source: "", options };
}

function open(ownGroup = "/") {
  return openControllersV2({ mounts: [mountOf("cgroup2")], root: "machines", ownGroup });
}

it("hands controllers down, those that are not yet", async () => {
  group("machines", { "cgroup.controllers": "cpu memory pids\n", "cgroup.subtree_control": "\n" });
  const { abilities, parents } = await open();
  expect(abilities).toEqual({ cpu: true, memory: true, processes: true });
  expect(parents).toEqual([join(at, "machines")]);
  expect(read("cgroup.subtree_control")).toBe("+memory +pids");
  expect(read("machines/cgroup.subtree_control")).toBe("+cpu +memory +pids");
});

it("says which controllers it is not given", async () => {
  group("machines", { "cgroup.controllers": "pids\n", "cgroup.subtree_control": "pids\n" });
  const { abilities } = await open();
  expect(abilities).toEqual({
    cpu: "the cpu controller of cgroup version 2 is not handed down to this program",
    memory: "the memory controller of cgroup version 2 is not handed down to this program",
    processes: true,
  });
});

it("goes below its own group where the whole may not be changed", async () => {
  rmSync(join(at, "cgroup.subtree_control"));
  group("service", { "cgroup.controllers": "cpu memory pids\n", "cgroup.subtree_control": "cpu memory pids\n" });
  group("service/machines", { "cgroup.controllers": "cpu memory pids\n", "cgroup.subtree_control": "\n" });
  const { abilities, parents } = await open("/service");
  expect(abilities.memory).toBe(true);
  expect(parents).toEqual([join(at, "service/machines")]);
});

it("makes nothing where something else is mounted over the hierarchy", async () => {
  rmSync(join(at, "cgroup.controllers"));
  const { abilities, parents } = await open();
  expect(abilities.processes).toContain("cgroup version 2 cannot be used");
  expect(parents).toEqual([]);
  expect(readdirSync(at)).toEqual(["cgroup.subtree_control"]);

  const { abilities: older } = await openControllersV1({ mounts: [mountOf("cgroup", "rw,pids")], root: "machines" });
  expect(older.processes).toContain("the pids controller of cgroups cannot be used");
  expect(readdirSync(at)).toEqual(["cgroup.subtree_control"]);
});

it("says why when it can go nowhere", async () => {
  rmSync(join(at, "cgroup.subtree_control"));
  const { abilities, parents } = await open();
  expect(abilities.cpu).toContain("cgroup version 2 cannot be used");
  expect(parents).toEqual([]);
});

it("writes limits in the forms of the kernel", async () => {
  group("machines", { "cgroup.controllers": "cpu memory pids\n", "cgroup.subtree_control": "cpu memory pids\n" });
  const names = ["cpu.max", "memory.max", "memory.oom.group", "memory.swap.max", "pids.max"];
  group("machines/one", Object.fromEntries(names.map((name) => [name, ""])));
  const controllers = await open();
  await controllers.setLimits("one", { cpuCores: 1.5, memoryMb: 512, maxProcesses: 100 });
  expect(names.map((name) => read(`machines/one/${name}`))).toEqual(["150000 100000", "536870912", "0", "0", "100"]);
  await controllers.setLimits("one", { cpuCores: 0.001, memoryMb: 1, maxProcesses: 1 });
  expect(read("machines/one/cpu.max").startsWith("1000 100000")).toBe(true);
  rmSync(join(at, "machines/one/memory.swap.max"));
  await controllers.setLimits("one", { cpuCores: 1, memoryMb: 1, maxProcesses: 1 });
});

it("reads numbers, and 0 for what is not there", async () => {
  group("machines", { "cgroup.controllers": "cpu memory pids\n", "cgroup.subtree_control": "cpu memory pids\n" });
  group("machines/one", {
    "cpu.stat": "usage_usec 1234\nuser_usec 1000\nsystem_usec 234\n",
    "memory.current": "5000\n",
    "memory.max": "max\n",
    "memory.stat": "anon 3000\ninactive_file 1500\nactive_file 500\n",
    "memory.events": "low 0\nhigh 0\nmax 7\noom 2\noom_kill 1\n",
    "pids.current": "3\n",
  });
  const controllers = await open();
  expect(await controllers.stats("one")).toEqual({
    cpuUsageUs: 1234,
    memoryBytes: 3500,
    memoryLimitBytes: 0,
    processes: 3,
    oomKills: 1,
  });
  expect(await controllers.stats("none")).toEqual({
    cpuUsageUs: 0,
    memoryBytes: 0,
    memoryLimitBytes: 0,
    processes: 0,
    oomKills: 0,
  });
});
