import { readlinkSync } from "node:fs";
import { bootId, processStat, readIfShown } from "../core/process-stat.ts";

/**
 * A process, written as a file name: its id and start time, and where these mean something: the boot and the namespace of
 * process ids. A folder may be shared by containers and, over a network, by machines, which cannot look at each other's
 * processes.
 */
const PATTERN = /^(?<pid>\d+)-(?<startTicks>\d+)-(?<place>\d+-[0-9a-f]+)$/;

export type HolderState = "alive" | "gone" | "elsewhere";

export function ownHolder(): string {
  return `${process.pid}-${processStat("self")?.startTicks ?? "0"}-${place()}`;
}

/** Whether the process lives; `gone` for a name that is of no process. */
export function holderState(name: string): HolderState {
  const { pid = "", startTicks: started, place: where } = PATTERN.exec(name)?.groups ?? {};
  if (started === undefined) return "gone";
  if (where !== place()) return "elsewhere";
  return processStat(pid)?.startTicks === started ? "alive" : "gone";
}

let knownPlace: string | undefined;

function place(): string {
  knownPlace ??= `${namespaceId()}-${bootId()?.replaceAll("-", "") ?? "0"}`;
  return knownPlace;
}

/** `pid:[4026531836]`, without the words; 0 where `/proc` is not mounted. */
function namespaceId(): string {
  return readIfShown(() => /\d+/.exec(readlinkSync("/proc/self/ns/pid"))?.[0]) ?? "0";
}
