import { readFileSync } from "node:fs";
import { descendantsOf } from "../support/process-stats.ts";

/** Memory of one process by `/proc/PID/smaps` (proc(5)): what it shares is divided among all who share it. */
export type ProcessMemory = {
  /** Its program, or the isolate of ours that it is. */
  name: string;
  /** Proportional set size. */
  pssBytes: number;
  /** The part of it that is in no file. */
  anonymousBytes: number;
  /** Resident bytes of each file. */
  files: ReadonlyMap<string, number>;
};

/** The process and all it has started, itself first. */
export function memoryOfTree(pid: number): ProcessMemory[] {
  return descendantsOf(pid).map((id) => readMemory(id));
}

/**
 * What a machine has to hold where nothing else runs Node: other processes with the same files make the proportional
 * size look smaller. Each file counts once, as in the process that has most of it.
 */
export function bytesAlone(processes: readonly ProcessMemory[]): number {
  const files = new Map<string, number>();
  let total = 0;
  for (const { anonymousBytes, files: own } of processes) {
    total += anonymousBytes;
    for (const [path, bytes] of own) files.set(path, Math.max(bytes, files.get(path) ?? 0));
  }
  return total + [...files.values()].reduce((sum, bytes) => sum + bytes, 0);
}

const KIB = 1024;

function readMemory(pid: number): ProcessMemory {
  const files = new Map<string, number>();
  let [path, pssBytes, anonymousBytes] = ["", 0, 0];
  for (const line of readFileSync(`/proc/${pid}/smaps`, "utf8").split("\n")) {
    const mapping = /^[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ (\d+)\s*(.*)$/.exec(line);
    if (mapping !== null) {
      path = mapping[1] === "0" ? "" : (mapping[2] ?? "");
      continue;
    }
    const [, name, kib] = /^(Pss|Rss|Anonymous): +(\d+) kB$/.exec(line) ?? [];
    const bytes = Number(kib ?? 0) * KIB;
    if (name === "Pss") pssBytes += bytes;
    if (name === "Anonymous") {
      anonymousBytes += bytes;
      if (path !== "") files.set(path, (files.get(path) ?? 0) - bytes);
    }
    if (name === "Rss" && path !== "") files.set(path, (files.get(path) ?? 0) + bytes);
  }
  return { name: nameOf(pid), pssBytes, anonymousBytes, files };
}

function nameOf(pid: number): string {
  const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  const isolate = words.indexOf("--isolate");
  return isolate === -1 ? "server" : (words[isolate + 1] ?? "");
}
