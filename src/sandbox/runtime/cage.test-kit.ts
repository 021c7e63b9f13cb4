import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, statfsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe } from "vitest";
import { messageOf } from "../../core/errors.ts";
import { sleep, systemClock as clock } from "../../core/clock.ts";
import { type Cgroup, openCgroups } from "./cgroups/cgroups.ts";
import { whyNotRoot } from "./root.test-kit.ts";

/**
 * The cage of hostile tests: cgroups that limit processes and memory. `spawnCaged` is the only way in which a test
 * starts something hostile on this computer, and it starts nothing where the cage does not hold.
 */
const MOST = { processes: 256, memoryBytes: 256 * 1024 * 1024 } as const;
/** `statfs(2)`: the file systems of version 1 and 2. A folder of another one takes pids as well, and limits nothing. */
const CGROUP_TYPES = new Set([0x27e0eb, 0x63677270]);
const JOIN_TIMEOUT_MS = 10_000;

/** What a process does to itself before it becomes hostile, so that it has an end where the cage fails, too. */
const OWN_LIMITS = { processes: 128, addressBytes: 2 ** 30, fileBytes: 2 ** 26, cpuSeconds: 30, seconds: 60 } as const;

/** Whose ids are nobody's on this computer: the kernel counts the processes of a user, but not those of root. */
export const CAGED_ID = 0x6f00_0000 + process.pid;

/** Why there can be no cage here; undefined where there can. */
export const cageProblem = await whyNoCage();

/**
 * Tests that need limits that hold: whatever runs machines, and whatever is hostile. Elsewhere they are skipped, with a
 * line that says why.
 */
export const describeInCage = cageProblem === undefined ? describe : describe.skip;
if (cageProblem !== undefined) process.stdout.write(`tests in cgroups are skipped: ${cageProblem}\n`);

async function whyNoCage(): Promise<string | undefined> {
  if (whyNotRoot !== undefined) return whyNotRoot;
  for (const program of ["prlimit", "setpriv", "timeout"]) {
    if (spawnSync(program, ["--version"]).status !== 0) return `${program} is not installed`;
  }
  try {
    const groups = await openCgroups({ root: `engine-cage-${process.pid}`, clock });
    try {
      const without = Object.values(groups.abilities).find((ability) => ability !== true);
      if (without !== undefined) return without;
      const group = await groups.create("probe", { cpuCores: 1, memoryMb: 64, maxProcesses: 64 });
      checkLimits(group.procsFiles);
      await group.remove();
    } finally {
      await groups.close();
    }
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

/**
 * Starts a shell command in a group. It has limits of its own besides those of the group, ends after a minute, and runs
 * as `CAGED_ID`. It begins once the kernel lists its process in every hierarchy of the group.
 *
 * Rejects when the group has no limits or the process is not in it; the command has not begun then, and does not.
 */
export async function spawnCaged(group: Pick<Cgroup, "procsFiles">, command: string): Promise<ChildProcess> {
  const { procsFiles } = group;
  checkLimits(procsFiles);
  const joined = procsFiles.map((_file, index) => `echo 0 > "\${${index + 1}}"`).join(" && ");
  const limited = [
    ["prlimit", `--nproc=${OWN_LIMITS.processes}`, `--as=${OWN_LIMITS.addressBytes}`],
    [`--fsize=${OWN_LIMITS.fileBytes}`, `--cpu=${OWN_LIMITS.cpuSeconds}`, "--core=0"],
    ["setpriv", `--reuid=${CAGED_ID}`, `--regid=${CAGED_ID}`, "--clear-groups"],
    ["timeout", "--signal=KILL", `${OWN_LIMITS.seconds}`, "sh", "-c", '"$COMMAND"'],
  ].flat();
  const script = `${joined} && read -r word && [ "$word" = go ] && exec ${limited.join(" ")} < /dev/null`;
  const child = spawn("sh", ["-c", script, "sh", ...procsFiles], {
    stdio: ["pipe", "ignore", "ignore"],
    env: { PATH: process.env["PATH"], COMMAND: command },
  });
  // One that could not join has ended, and takes no word.
  child.stdin.on("error", () => undefined);
  try {
    await once(child, "spawn");
    await untilListed(child, procsFiles);
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  }
  child.stdin.end("go\n");
  return child;
}

/** Caged processes that are there, those that were killed and wait to be collected included: they count as well. */
export function cagedProcesses(): number {
  const owners = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((name) => statSync(`/proc/${name}`, { throwIfNoEntry: false })?.uid);
  return owners.filter((uid) => uid === CAGED_ID).length;
}

async function untilListed(child: ChildProcess, procsFiles: readonly string[]): Promise<void> {
  const startedMs = clock.monotonicMs();
  while (!procsFiles.every((file) => pidsIn(file).includes(Number(child.pid)))) {
    const hasEnded = child.exitCode !== null || child.signalCode !== null;
    if (hasEnded || clock.monotonicMs() - startedMs > JOIN_TIMEOUT_MS) {
      throw new Error(`the process ${child.pid} is not in ${procsFiles.join(", ")}`);
    }
    await sleep(clock, 2);
  }
}

/** Throws unless these are files of cgroups of which one limits processes and one memory. */
function checkLimits(procsFiles: readonly string[], mostProcesses: number = MOST.processes): void {
  const folders = procsFiles.map((file) => dirname(file));
  const others = folders.filter((folder) => !existsSync(folder) || !CGROUP_TYPES.has(statfsSync(folder).type));
  if (others.length > 0) throw new Error(`there is no cgroup at ${others.join(", ")}`);
  const least = (name: string): number => Math.min(...folders.map((folder) => numberIn(join(folder, name))));
  const [processes, memory] = [least("pids.max"), Math.min(least("memory.max"), least("memory.limit_in_bytes"))];
  if (!(processes <= mostProcesses)) throw new Error(`no more than ${mostProcesses} processes may be caged together`);
  if (!(memory <= MOST.memoryBytes)) throw new Error(`no more than ${MOST.memoryBytes} bytes may be caged together`);
}

/**
 * Throws unless a process of a machine is in groups below that folder that limit it: before something hostile runs
 * there. What is run in a machine later joins the groups of its first process, or does not begin. `mostProcesses` is more
 * than usual where the threads of a kernel of its own count among them.
 */
export function checkCaged(pid: number, cgroupRoot: string, mostProcesses?: number): void {
  const lines = readFileSync(`/proc/${pid}/cgroup`, "utf8").split("\n");
  const folders = lines.flatMap((line) => {
    const [id, controllers = "", path = ""] = line.split(":");
    if (!path.includes(`/${cgroupRoot}/`)) return [];
    if (id === "0") return ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map((at) => join(at, path));
    return [join("/sys/fs/cgroup", controllers, path)];
  });
  const files = folders.map((folder) => join(folder, "cgroup.procs")).filter((file) => pidsIn(file).includes(pid));
  checkLimits(files, mostProcesses);
}

function pidsIn(procsFile: string): number[] {
  return (textOf(procsFile) ?? "").split("\n").filter(Boolean).map(Number);
}

/** Infinity where there is no such limit. */
function numberIn(file: string): number {
  const text = textOf(file)?.trim() ?? "";
  return /^\d+$/.test(text) ? Number(text) : Infinity;
}

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    // Not a hierarchy with that controller.
    return undefined;
  }
}
