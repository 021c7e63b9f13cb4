import { readdir, readFile } from "node:fs/promises";
import { systemCodeOf } from "../../../../core/errors.ts";

const ROUNDS = 5;

/**
 * Ends what a program started that left its process group: everything whose home is the program's folder, which no other
 * process has. A process that clears its environment is not found, nor is any where the system has no `/proc`.
 */
export async function killStrays(folder: string): Promise<void> {
  const mark = Buffer.from(`HOME=${folder}\0`);
  // One may have started another before it was ended.
  for (let round = 0; round < ROUNDS; round++) {
    const found = await strays(mark);
    for (const pid of found) kill(pid);
    if (found.length === 0) return;
  }
}

async function strays(mark: Buffer): Promise<number[]> {
  const names = await orNothing(readdir("/proc"));
  const pids = (names ?? []).filter((name) => /^\d+$/.test(name)).map(Number);
  const own = await Promise.all(
    pids.map(async (pid) => ({ pid, env: await orNothing(readFile(`/proc/${pid}/environ`)) })),
  );
  return own
    .filter(({ pid, env }) => pid > 1 && pid !== process.pid && env?.includes(mark) === true)
    .map(({ pid }) => pid);
}

const NOT_OURS = new Set(["ENOENT", "ESRCH", "EACCES", "EPERM"]);

/** Processes end while they are looked at, and those of others cannot be looked at. */
async function orNothing<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (NOT_OURS.has(systemCodeOf(error) ?? "")) return undefined;
    throw error;
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if (systemCodeOf(error) !== "ESRCH") throw error;
  }
}
