import { access, mkdir, readdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { messageOf, systemCodeOf } from "../../src/core/errors.ts";
import { descendantsOf } from "../support/process-stats.ts";

/** A control group of this machine that gives its processes so much of the cores; version 2, or 1. */
export type Quota = {
  /** The process with all that it has started; what they start later is in it, too. */
  hold(pid: number): Promise<void>;
  /** The group goes when its processes have ended. */
  remove(): Promise<void>;
};

const PERIOD_US = 100_000;
const VERSION_1 = "/sys/fs/cgroup/cpu";
const VERSION_2 = "/sys/fs/cgroup";

/** Rejects with a sentence where this user may not, or this machine has none. */
export async function quotaOf(name: string, cores: number): Promise<Quota> {
  const isFirst = await exists(join(VERSION_1, "cpu.cfs_quota_us"));
  const folder = join(isFirst ? VERSION_1 : VERSION_2, name);
  const quotaUs = Math.round(cores * PERIOD_US);
  try {
    await mkdir(folder);
  } catch (error) {
    throw new Error(
      `cannot set a quota of CPU (${messageOf(error)}): run it as root, where control groups may be written`,
      { cause: error },
    );
  }
  const remove = async () => await removed(folder);
  try {
    if (isFirst) {
      await writeFile(join(folder, "cpu.cfs_period_us"), String(PERIOD_US));
      await writeFile(join(folder, "cpu.cfs_quota_us"), String(quotaUs));
    } else await writeFile(join(folder, "cpu.max"), `${quotaUs} ${PERIOD_US}`);
  } catch (error) {
    await remove();
    throw new Error(`${folder} takes no quota of CPU (${messageOf(error)}): enable the controller cpu there`, {
      cause: error,
    });
  }
  return {
    hold: async (pid) => {
      for (const id of descendantsOf(pid)) await moveInto(folder, id);
    },
    remove,
  };
}

async function moveInto(folder: string, pid: number): Promise<void> {
  try {
    await writeFile(join(folder, "cgroup.procs"), String(pid));
  } catch (error) {
    // It has ended meanwhile.
    if (systemCodeOf(error) !== "ESRCH") throw error;
  }
}

/** What is still in it goes back to the group above. */
async function removed(folder: string): Promise<void> {
  const above = join(folder, "..", "cgroup.procs");
  for (const pid of (await readFile(join(folder, "cgroup.procs"), "utf8")).split("\n").filter((line) => line !== "")) {
    await writeFile(above, pid).catch((error: unknown) => {
      if (systemCodeOf(error) !== "ESRCH") throw error;
    });
  }
  await rmdir(folder);
}

async function exists(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT") return false;
    throw error;
  }
}

/** Groups of proofs that a killed one has left behind, by name. */
export async function leftBehind(prefix: string): Promise<string[]> {
  const root = (await exists(VERSION_1)) ? VERSION_1 : VERSION_2;
  return (await readdir(root)).filter((name) => name.startsWith(prefix));
}
