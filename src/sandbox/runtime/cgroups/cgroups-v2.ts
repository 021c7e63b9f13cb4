import { access, readFile } from "node:fs/promises";
import { join } from "node:path";
import { systemCodeOf } from "../../../core/errors.ts";
import {
  type CgroupLimits,
  type CgroupStats,
  type Controllers,
  CPU_PERIOD_US,
  cpuQuotaUs,
} from "./cgroups-controllers.ts";
import { makeFolder, readKey, readNumber, reasonOf, writeWord } from "./cgroups-files.ts";
import type { MountEntry } from "../mounts.ts";

const CONTROLLERS = ["cpu", "memory", "pids"] as const;
/** Processes of a group that hands controllers on to groups below it move to this one. */
const LEAF = "engine-node";

/**
 * The controllers of cgroup version 2: below the mount where that may be changed (root on a computer of its own), else
 * below the group of this process, which must have been delegated to its user. A controller that is not handed down
 * limits nothing; `abilities` says so.
 */
export async function openControllersV2(options: {
  mounts: readonly MountEntry[];
  root: string;
  /** The group of this process, as `/proc/self/cgroup` names it; read there by default. */
  ownGroup?: string;
}): Promise<Controllers> {
  const mount = options.mounts.findLast((m) => m.fsType === "cgroup2");
  if (mount === undefined) return withoutControllers("cgroup version 2 is not mounted");
  const own = join(mount.at, options.ownGroup ?? (await readOwnGroup()));
  let reason = "";
  for (const base of new Set([mount.at, own])) {
    const parent = join(base, options.root);
    try {
      // Something else may be mounted over it since: folders there would limit nothing.
      await access(join(base, "cgroup.controllers"));
      await makeFolder(parent);
      await handDown(base, own);
      const given = await handDown(parent, own);
      return withControllers(parent, given);
    } catch (error) {
      reason = reasonOf("cgroup version 2", error);
    }
  }
  return withoutControllers(reason);
}

async function readOwnGroup(): Promise<string> {
  const text = await readFile("/proc/self/cgroup", "utf8");
  const line = text.split("\n").find((line) => line.startsWith("0::"));
  return line?.slice("0::".length) ?? "/";
}

/** Gives what controllers a group has to the groups below it, and returns their names. */
async function handDown(group: string, own: string): Promise<Set<string>> {
  const has = words(await readFile(join(group, "cgroup.controllers"), "utf8"));
  const wanted = CONTROLLERS.filter((controller) => has.has(controller));
  const file = join(group, "cgroup.subtree_control");
  const given = words(await readFile(file, "utf8"));
  const missing = wanted.filter((controller) => !given.has(controller));
  if (missing.length > 0) {
    const word = missing.map((controller) => `+${controller}`).join(" ");
    try {
      await writeWord(file, word);
    } catch (error) {
      // A group below the root has either processes or controllers for groups below it.
      if (systemCodeOf(error) !== "EBUSY" || group !== own) throw error;
      await moveProcesses(group, join(group, LEAF));
      await writeWord(file, word);
    }
  }
  return new Set(wanted);
}

async function moveProcesses(from: string, to: string): Promise<void> {
  await makeFolder(to);
  for (const pid of words(await readFile(join(from, "cgroup.procs"), "utf8"))) {
    try {
      await writeWord(join(to, "cgroup.procs"), pid);
    } catch (error) {
      // It has ended since.
      if (systemCodeOf(error) !== "ESRCH") throw error;
    }
  }
}

function words(text: string): Set<string> {
  return new Set(text.split(/\s+/).filter(Boolean));
}

function withoutControllers(reason: string): Controllers {
  return {
    abilities: { cpu: reason, memory: reason, processes: reason },
    parents: [],
    setLimits: () => Promise.resolve(),
    stats: () => Promise.resolve({ cpuUsageUs: 0, memoryBytes: 0, memoryLimitBytes: 0, processes: 0, oomKills: 0 }),
  };
}

function withControllers(parent: string, given: ReadonlySet<string>): Controllers {
  const ability = (controller: string): true | string =>
    given.has(controller) || `the ${controller} controller of cgroup version 2 is not handed down to this program`;
  return {
    abilities: { cpu: ability("cpu"), memory: ability("memory"), processes: ability("pids") },
    parents: [parent],
    setLimits: (name, limits) => setLimits(join(parent, name), given, limits),
    stats: (name) => readStats(join(parent, name)),
  };
}

async function setLimits(folder: string, given: ReadonlySet<string>, limits: CgroupLimits): Promise<void> {
  await Promise.all([
    given.has("cpu") && writeWord(join(folder, "cpu.max"), `${cpuQuotaUs(limits.cpuCores)} ${CPU_PERIOD_US}`),
    given.has("memory") && setMemory(folder, limits.memoryMb * 1024 * 1024),
    given.has("pids") && writeWord(join(folder, "pids.max"), String(limits.maxProcesses)),
  ]);
}

/**
 * Out of memory, the kernel kills the process that uses most of it, and the rest of the machine lives on, as with
 * version 1. A kernel that does not count swap lacks the file for it.
 */
async function setMemory(folder: string, bytes: number): Promise<void> {
  await writeWord(join(folder, "memory.max"), String(bytes));
  await writeWord(join(folder, "memory.oom.group"), "0");
  try {
    await writeWord(join(folder, "memory.swap.max"), "0");
  } catch (error) {
    if (systemCodeOf(error) !== "ENOENT") throw error;
  }
}

async function readStats(folder: string): Promise<CgroupStats> {
  const [cpuUsageUs, usedBytes, memoryLimitBytes, processes, cacheBytes, oomKills] = await Promise.all([
    readKey(join(folder, "cpu.stat"), "usage_usec"),
    readNumber(join(folder, "memory.current")),
    readNumber(join(folder, "memory.max")),
    readNumber(join(folder, "pids.current")),
    readKey(join(folder, "memory.stat"), "inactive_file"),
    readKey(join(folder, "memory.events"), "oom_kill"),
  ]);
  const memoryBytes = Math.max(0, usedBytes - cacheBytes);
  return { cpuUsageUs, memoryBytes, memoryLimitBytes, processes, oomKills };
}
