import { existsSync, readdirSync, readFileSync, readlinkSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { signalProcess } from "../../src/core/signals.test-kit.ts";
import { systemCodeOf } from "../../src/core/errors.ts";
import { cgroupRootOf } from "../../src/sandbox/node/open-node.ts";
import { loopFiles } from "../../src/sandbox/runtime/loop-files.test-kit.ts";
import { listMounts, readMounts, sweepMounts } from "../../src/sandbox/runtime/mounts.ts";
import { ID_COUNT } from "../../src/sandbox/runtime/runtime.ts";
import { NODE_RANGES, type NodeMember } from "./chaos-member.ts";

type Place = Pick<NodeMember, "home" | "firstHostId">;

/** What belongs to a node is killed: were its home empty or its ids those of users, that would be all of this computer. */
const [FOLDER_OF_A_NODE, MIN_HOST_ID] = [/^(?:\/[^/]+){3,}$/, 100_000];
const WARM_PREFIX = "warm-";
const [RETRY_MS, MOST_TRIES] = [50, 60];

/** Machines that a node has a folder for; not the prepared ones, which are nobody's. */
export function machinesOf({ home }: Pick<Place, "home">): string[] {
  return namesIn(join(home, "machines")).filter((name) => !name.startsWith(WARM_PREFIX));
}

/** Everything that is left of a node that has ended: each as a line. */
export async function remainsOf(place: Place): Promise<string[]> {
  const { home } = place;
  return [
    ...processesOf(place).map((pid) => `process ${pid} ${commandOf(pid)}`),
    ...(await listMounts(home)).map(({ at }) => `mount ${at}`),
    ...loopFiles(home).map((file) => `loop device of ${file}`),
    ...(await cgroupsOf(place)).map((path) => `cgroup ${path}`),
    ...namesIn(join(home, "machines")).map((name) => `folder of the machine ${name}`),
    ...namesIn(join(home, "held")).map((name) => `file of what is held: ${name}`),
  ];
}

/** Machines of the node, prepared ones apart, in which something runs: each as a line. */
export async function machinesThatRun(place: Place): Promise<string[]> {
  const [root = ""] = await cgroupsOf(place);
  return machinesOf(place).flatMap((name) => {
    const folder = join(place.home, "machines", name);
    const cgroup = /"cgroup":"([\w-]+)"/.exec(textOf(join(folder, "machine.json")))?.[1] ?? "";
    const pids = textOf(join(root, cgroup, "cgroup.procs"))
      .split("\n")
      .slice(0, -1);
    const lease = /^lease_ms .*$/m.exec(textOf(join(folder, "supervisor.conf")))?.[0];
    return cgroup === "" || pids.length === 0 ? [] : [`${name}, ${lease}: ${pids.map(commandOf).join("; ")}`];
  });
}

/** Ends by force what is left. */
export async function sweepRemains(place: Place): Promise<void> {
  for (const pid of processesOf(place)) {
    try {
      signalProcess(pid, "SIGKILL");
    } catch (error) {
      if (systemCodeOf(error) !== "ESRCH") throw error;
    }
  }
  if (existsSync(place.home)) await sweepMounts(place.home);
  for (const root of await cgroupsOf(place)) {
    const groups = readdirSync(root, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    for (const path of [...groups.map(({ name }) => join(root, name)), root]) await removeGroup(path);
  }
}

/** What was killed in it takes a moment to go. */
async function removeGroup(path: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      rmdirSync(path);
      return;
    } catch (error) {
      if (systemCodeOf(error) !== "EBUSY" || tries === MOST_TRIES) throw error;
      await delay(RETRY_MS);
    }
  }
}

/** Descriptors that a process has open, and its memory. */
export type Figures = { descriptors: number; residentMib: number };

export function figuresOf(pid: number): Figures {
  const kib = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
  return { descriptors: readdirSync(`/proc/${pid}/fd`).length, residentMib: Math.round(kib / 1024) };
}

/** Those whose ids are the node's, those that work in its folder, and those that were told of it. */
function processesOf({ home, firstHostId }: Place): number[] {
  if (!FOLDER_OF_A_NODE.test(home) || firstHostId < MIN_HOST_ID) throw new Error(`${home} is not the home of a node`);
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.map(Number).filter((pid) => {
    const status = textOf(`/proc/${pid}/status`);
    // A zombie has nothing any more; it waits for the first process of this computer to look.
    if (status.includes("State:\tZ")) return false;
    const uid = Number(/^Uid:\s+(\d+)/m.exec(status)?.[1]);
    const isInside = uid >= firstHostId && uid < firstHostId + NODE_RANGES * ID_COUNT;
    return isInside || folderOf(pid).startsWith(`${home}/`) || textOf(`/proc/${pid}/cmdline`).includes(`${home}/`);
  });
}

function commandOf(pid: number | string): string {
  return textOf(`/proc/${pid}/cmdline`).replaceAll("\0", " ");
}

function folderOf(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    // It has ended, or has none any more.
    return "";
  }
}

/** The folder of the node's groups, in each hierarchy where there is one. */
async function cgroupsOf({ home }: Place): Promise<string[]> {
  if (!existsSync(home)) return [];
  const root = await cgroupRootOf(home);
  const hierarchies = (await readMounts()).filter(({ fsType }) => fsType === "cgroup" || fsType === "cgroup2");
  return hierarchies.map(({ at }) => join(at, root)).filter((path) => existsSync(path));
}

function namesIn(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}

/** Empty where it is not there any more. */
function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
