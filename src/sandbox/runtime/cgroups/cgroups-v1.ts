import { access, constants } from "node:fs/promises";
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

/** Where the groups of a controller lie, or why there are none. */
type Parent = { ok: true; folder: string } | { ok: false; reason: string };

/**
 * The controllers of cgroup version 1, each in the hierarchy in which it is mounted (several may share one). A
 * controller that is not mounted, or may not be changed, limits nothing; `abilities` says so.
 */
export async function openControllersV1(options: {
  mounts: readonly MountEntry[];
  root: string;
}): Promise<Controllers> {
  const { mounts, root } = options;
  const [cpu, cpuacct, memory, pids] = await Promise.all(
    ["cpu", "cpuacct", "memory", "pids"].map((controller) => makeParentV1(mounts, root, controller)),
  );
  const folders = { cpu: folderOf(cpu), cpuacct: folderOf(cpuacct), memory: folderOf(memory), pids: folderOf(pids) };
  return {
    abilities: { cpu: abilityOf(cpu), memory: abilityOf(memory), processes: abilityOf(pids) },
    parents: Object.values(folders).filter((folder) => folder !== undefined),
    setLimits: (name, limits) => setLimits(folders, name, limits),
    stats: (name) => readStats(folders, name),
  };
}

/** Makes the folder below which the groups of a controller lie. */
export async function makeParentV1(mounts: readonly MountEntry[], root: string, controller: string): Promise<Parent> {
  const mount = mounts.findLast((m) => m.fsType === "cgroup" && m.options.split(",").includes(controller));
  const what = `the ${controller} controller of cgroups`;
  if (mount === undefined) return { ok: false, reason: `${what} is not mounted` };
  const folder = join(mount.at, root);
  try {
    // Something else may be mounted over it since: folders there would limit nothing.
    await access(join(mount.at, "cgroup.procs"));
    await makeFolder(folder);
    await access(folder, constants.W_OK);
    return { ok: true, folder };
  } catch (error) {
    return { ok: false, reason: reasonOf(what, error) };
  }
}

function folderOf(parent: Parent | undefined): string | undefined {
  return parent?.ok === true ? parent.folder : undefined;
}

function abilityOf(parent: Parent | undefined): true | string {
  if (parent === undefined) return "not looked for";
  return parent.ok || parent.reason;
}

type Folders = {
  cpu: string | undefined;
  cpuacct: string | undefined;
  memory: string | undefined;
  pids: string | undefined;
};

async function setLimits(folders: Folders, name: string, limits: CgroupLimits): Promise<void> {
  const { cpu, memory, pids } = folders;
  await Promise.all([
    cpu !== undefined && setCpu(join(cpu, name), limits.cpuCores),
    memory !== undefined && setMemory(join(memory, name), limits.memoryMb * 1024 * 1024),
    pids !== undefined && writeWord(join(pids, name, "pids.max"), String(limits.maxProcesses)),
  ]);
}

async function setCpu(folder: string, cores: number): Promise<void> {
  await writeWord(join(folder, "cpu.cfs_period_us"), String(CPU_PERIOD_US));
  await writeWord(join(folder, "cpu.cfs_quota_us"), String(cpuQuotaUs(cores)));
}

/**
 * Memory together with swap may not be limited below memory alone: which is written first depends on whether the limit
 * grows or shrinks. A kernel that does not count swap lacks the file.
 */
async function setMemory(folder: string, bytes: number): Promise<void> {
  const file = join(folder, "memory.limit_in_bytes");
  const withSwap = join(folder, "memory.memsw.limit_in_bytes");
  const grows = (await readNumber(file)) !== 0 && (await readNumber(file)) < bytes;
  if (grows) await writeIfThere(withSwap, String(bytes));
  await writeWord(file, String(bytes));
  if (!grows) await writeIfThere(withSwap, String(bytes));
}

async function writeIfThere(file: string, word: string): Promise<void> {
  try {
    await writeWord(file, word);
  } catch (error) {
    if (systemCodeOf(error) !== "ENOENT") throw error;
  }
}

async function readStats(folders: Folders, name: string): Promise<CgroupStats> {
  const read = (folder: string | undefined, file: string): Promise<number> =>
    folder === undefined ? Promise.resolve(0) : readNumber(join(folder, name, file));
  const { memory } = folders;
  const [cpuNs, usedBytes, limitBytes, processes, cacheBytes, oomKills] = await Promise.all([
    read(folders.cpuacct, "cpuacct.usage"),
    read(memory, "memory.usage_in_bytes"),
    read(memory, "memory.limit_in_bytes"),
    read(folders.pids, "pids.current"),
    memory === undefined ? 0 : readKey(join(memory, name, "memory.stat"), "total_inactive_file"),
    memory === undefined ? 0 : readKey(join(memory, name, "memory.oom_control"), "oom_kill"),
  ]);
  return {
    cpuUsageUs: Math.round(cpuNs / 1000),
    memoryBytes: Math.max(0, usedBytes - cacheBytes),
    memoryLimitBytes: limitBytes,
    processes,
    oomKills,
  };
}
