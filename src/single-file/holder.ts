import { readFileSync, readlinkSync } from "node:fs";
import { systemCodeOf } from "../core/errors.ts";

/**
 * A process, written as a file name: its id and start time, and where these mean something: the boot and the namespace of
 * process ids. A folder may be shared by containers and, over a network, by machines, which cannot look at each other's
 * processes.
 */
const PATTERN = /^(?<pid>\d+)-(?<startTicks>\d+)-(?<place>\d+-[0-9a-f]+)$/;

export type HolderState = "alive" | "gone" | "elsewhere";

export function ownHolder(): string {
  return `${process.pid}-${startTicks("self") ?? "0"}-${place()}`;
}

/** Whether the process lives; `gone` for a name that is of no process. */
export function holderState(name: string): HolderState {
  const { pid = "", startTicks: started, place: where } = PATTERN.exec(name)?.groups ?? {};
  if (started === undefined) return "gone";
  if (where !== place()) return "elsewhere";
  return startTicks(pid) === started ? "alive" : "gone";
}

let knownPlace: string | undefined;

function place(): string {
  knownPlace ??= `${namespaceId()}-${bootId()}`;
  return knownPlace;
}

/** `pid:[4026531836]`, without the words; 0 where `/proc` is not mounted. */
function namespaceId(): string {
  return orMissing(() => /\d+/.exec(readlinkSync("/proc/self/ns/pid"))?.[0]) ?? "0";
}

function bootId(): string {
  const text = orMissing(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8"));
  return text?.replaceAll("-", "").trim() ?? "0";
}

/** Field 22 of `/proc/PID/stat`; the name of the program before it may hold anything, so it is counted from its end. */
function startTicks(pid: string): string | undefined {
  const text = orMissing(() => readFileSync(`/proc/${pid}/stat`, "utf8"));
  return text?.slice(text.lastIndexOf(")") + 2).split(" ")[19];
}

/** The process has ended, or this system keeps it from us. */
const MISSING = new Set(["ENOENT", "ESRCH", "EACCES", "EPERM", "EINVAL"]);

function orMissing<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (MISSING.has(systemCodeOf(error) ?? "")) return undefined;
    throw error;
  }
}
