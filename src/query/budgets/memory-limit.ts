import { totalmem } from "node:os";
import { join } from "node:path";
import { groupFolders, readText, type ReadFile } from "../../core/control-groups.ts";

const FILES = { 1: "memory.limit_in_bytes", 2: "memory.max" } as const;

/** The memory that this process may take: the machine's, or less where a control group says so. */
export function availableMemoryBytes(read: ReadFile = readText, machineBytes: number = totalmem()): number {
  const limits = groupFolders("memory", read).flatMap(({ version, folders }) =>
    folders.map((folder) => parseLimit(read(join(folder, FILES[version])))),
  );
  return Math.min(machineBytes, ...limits);
}

/** A number of bytes; `max`, nothing, or what is no number is no limit. */
function parseLimit(text: string | undefined): number {
  const bytes = Number(text?.trim() === "" ? "max" : text?.trim());
  return Number.isFinite(bytes) && bytes > 0 ? bytes : Infinity;
}
