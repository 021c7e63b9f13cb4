import { readdir, lstat, statfs } from "node:fs/promises";
import { totalmem } from "node:os";
import { join } from "node:path";
import { availableCores } from "../../core/available-cores.ts";
import { systemCodeOf } from "../../core/errors.ts";
import type { NodeCapacity } from "../contract/control-port.ts";

/** What the operator says; the machine decides the rest. */
export type CapacityOptions = {
  cpus: number | undefined;
  memoryBytes: number | undefined;
  diskBytes: number | undefined;
  sandboxes: number;
};

const MIB = 2 ** 20;
/** Sandboxes idle most of the time, and the processor is what they share well. */
const PROMISED_CPUS = 4;
const SHARE = 0.9;
const BLOCK_BYTES = 512;

/** What a node has for sandboxes. `folder` is where their disks lie, and must be there. */
export async function nodeCapacity(folder: string, options: CapacityOptions): Promise<NodeCapacity> {
  const { cpus = availableCores() * PROMISED_CPUS, sandboxes } = options;
  const { memoryBytes = SHARE * memoryOfMachine(), diskBytes = SHARE * (await diskOf(folder)) } = options;
  return {
    cpuMillis: cpus * 1_000,
    memoryMb: Math.floor(memoryBytes / MIB),
    diskMb: Math.floor(diskBytes / MIB),
    sandboxes,
  };
}

/** Of the machine, or of the container that it is. */
function memoryOfMachine(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
}

/** What is free, and what sandboxes have taken already: the same before and after. */
async function diskOf(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize + (await takenBy(folder));
}

/** Bytes of files on the same file system; what is mounted in the folder is not its own. */
async function takenBy(folder: string): Promise<number> {
  const { dev } = await lstat(folder);
  const taken = async (path: string): Promise<number> => {
    try {
      const stat = await lstat(path);
      if (stat.dev !== dev) return 0;
      if (!stat.isDirectory()) return stat.blocks * BLOCK_BYTES;
      let bytes = 0;
      for (const name of await readdir(path)) bytes += await taken(join(path, name));
      return bytes;
    } catch (error) {
      if (systemCodeOf(error) === "ENOENT") return 0;
      throw error;
    }
  };
  return await taken(folder);
}
