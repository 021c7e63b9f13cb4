import { spawn } from "node:child_process";
import { once } from "node:events";
import { open, readFile, writeFile } from "node:fs/promises";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { type Clock, sleep } from "../../core/clock.ts";
import { messageOf, systemCodeOf } from "../../core/errors.ts";
import type { Cgroup } from "./cgroups/cgroups.ts";
import type { MachineFolder } from "./folder.ts";
import { type Launch, type OwnKernel, READY_FD } from "./launcher.ts";
import { AGENT_GID, AGENT_UID, ID_COUNT, RuntimeError } from "./runtime.ts";
import type { UserLimits } from "./user-limits.ts";

export type SupervisorOrder = {
  launch: Launch;
  cgroup: Cgroup;
  firstHostId: number;
  filterFile: string;
  leaseMs: number;
  /** From the end of the lease on, until it kills. */
  graceMs: number;
  deadlineMs: number | undefined;
  userLimits: UserLimits;
};

/** The bundled release has these files beside it. */
const PROGRAM = fileURLToPath(new URL("./supervisor/supervisor.pl", import.meta.url));
/** Files that a command may have open. */
const OPEN_FILES = 65_536;
const LAST_WORDS_CHARS = 1000;

/**
 * Starts the supervisor of a machine; resolves when the machine's first process is in place. It lives on when this
 * process ends. Rejects with `RuntimeError` `failed`; then neither of them is there.
 */
export async function startSupervisor(folder: MachineFolder, order: SupervisorOrder): Promise<void> {
  await writeFile(folder.configuration, configurationOf(order), { mode: 0o600 });
  const log = await open(folder.log, "a", 0o600);
  try {
    const child = spawn("perl", [PROGRAM, folder.path, String(process.pid)], {
      detached: true,
      stdio: ["ignore", log.fd, log.fd, "pipe"],
      env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" },
      cwd: "/",
    });
    await once(child, "spawn");
    const told = child.stdio[3];
    if (!(told instanceof Readable)) throw new Error("no pipe was made");
    const answer = await text(told);
    if (answer.startsWith("ready ")) {
      child.unref();
      return;
    }
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    const reason = answer.replace(/^failed /, "") || `its supervisor ended: ${await lastWords(folder.log)}`;
    throw new RuntimeError("failed", `the machine did not start: ${reason}`);
  } catch (error) {
    if (error instanceof RuntimeError) throw error;
    throw new RuntimeError("failed", `its supervisor did not start: ${messageOf(error)}`, { cause: error });
  } finally {
    await log.close();
  }
}

async function lastWords(log: string): Promise<string> {
  return (await readFile(log, "utf8")).trim().slice(-LAST_WORDS_CHARS);
}

/** Between two looks at whether it has gone. */
const LOOK_AFTER_MS = 1;

const KILL_TIMEOUT_MS = 20_000;

/** Ends a supervisor, and its machine with it; resolves when it is not there any more. Repeatable. */
export async function killSupervisor(folder: MachineFolder, clock: Clock): Promise<void> {
  const startedMs = clock.monotonicMs();
  for (let pid = await folder.supervisorPid(); pid !== undefined; pid = await folder.supervisorPid()) {
    try {
      process.kill(pid, "SIGKILL");
    } catch (error) {
      // It has just gone.
      if (systemCodeOf(error) !== "ESRCH") throw error;
    }
    if (clock.monotonicMs() - startedMs > KILL_TIMEOUT_MS) {
      throw new RuntimeError("failed", `the supervisor ${pid} does not end`);
    }
    await sleep(clock, LOOK_AFTER_MS);
  }
}

function configurationOf({ launch, cgroup, ...order }: SupervisorOrder): string {
  const { freezer, killFile } = cgroup;
  const lines: (readonly (string | number)[])[] = [
    ["launch", ...launch.command],
    ...launch.passed.map(({ fd, file }) => ["passed", fd, file]),
    ...launch.staged.map(({ from, name }) => ["staged", from, name]),
    ...launch.copied.map(({ from, name }) => ["copied", from, name]),
    ["ready_number", launch.ownKernel === undefined ? READY_FD : 0],
    ...firstProcessLines(launch),
    ["owns_user_namespace", launch.inUserNamespace ? 1 : 0],
    ["first_id", order.firstHostId],
    ["ids", ID_COUNT],
    ["agent_uid", AGENT_UID],
    ["agent_gid", AGENT_GID],
    ["open_files", OPEN_FILES],
    ["message_bytes", order.userLimits.messageQueueBytes],
    ["user_limit", "max_inotify_instances", order.userLimits.inotifyInstances],
    ["user_limit", "max_inotify_watches", order.userLimits.inotifyWatches],
    ...(launch.terminals === undefined ? [] : [["terminals", launch.terminals]]),
    ["filter_file", order.filterFile],
    ["lease_ms", Math.round(order.leaseMs)],
    ["grace_ms", Math.round(order.graceMs)],
    ["deadline_ms", Math.round(order.deadlineMs ?? 0)],
    ["join", ...cgroup.procsFiles],
  ];
  if (freezer !== undefined) {
    const { file, freezeWord, thawWord, stateFile, frozenLine } = freezer;
    lines.push(["freezer", file, freezeWord, thawWord, stateFile, frozenLine]);
  }
  if (killFile !== undefined) lines.push(["kill_file", killFile]);
  return lines.map((line) => `${line.map((word) => encodeWord(String(word))).join(" ")}\n`).join("");
}

/** How the first process becomes known, and what commands are begun by where it cannot be entered. */
function firstProcessLines({ pidFrom, ownKernel }: Launch): (readonly (string | number)[])[] {
  const lines: (readonly (string | number)[])[] =
    ownKernel === undefined ? [] : [ownKernelLine(ownKernel), ["exec", ...ownKernel.exec]];
  if (pidFrom !== undefined) lines.push("fd" in pidFrom ? ["info_number", pidFrom.fd] : ["pid_file", pidFrom.file]);
  return lines;
}

function ownKernelLine({ machine, signaller, pidFile }: OwnKernel): string[] {
  return ["kernel", machine, signaller, pidFile];
}

/** Bytes that would not fit in a word become %XX. */
function encodeWord(word: string): string {
  if (word === "") throw new RangeError("a word of a supervisor's configuration is empty");
  return [...Buffer.from(word)]
    .map((byte) => {
      const char = String.fromCodePoint(byte);
      return /[\w./:=,@+-]/.test(char) ? char : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
    })
    .join("");
}
