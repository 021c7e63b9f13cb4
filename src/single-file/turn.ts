import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { sleep, type Clock } from "../core/clock.ts";
import { systemCodeOf } from "../core/errors.ts";
import { holderState, ownHolder } from "./holder.ts";

const POLL_MS = 50;
/** After so long each process unpacks for itself. */
const MOST_WAIT_MS = 60_000;

/**
 * Runs the task while no other process does, so that several first starts unpack once. It saves work and space and no
 * more: what the task does must be right if another does it at the same time, because a lock of a process that cannot be
 * looked at from here is passed over in the end.
 */
export async function inTurn(lock: string, clock: Clock, task: () => Promise<void>): Promise<void> {
  const endsMs = clock.monotonicMs() + MOST_WAIT_MS;
  while (!take(lock) && clock.monotonicMs() < endsMs) {
    if (isAbandoned(lock)) rmSync(lock, { force: true });
    else await sleep(clock, POLL_MS);
  }
  try {
    await task();
  } finally {
    if (read(lock) === ownHolder()) rmSync(lock, { force: true });
  }
}

function take(lock: string): boolean {
  try {
    writeFileSync(lock, ownHolder(), { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    if (systemCodeOf(error) === "EEXIST") return false;
    throw error;
  }
}

/** One that is still empty is being written. */
function isAbandoned(lock: string): boolean {
  const holder = read(lock);
  return holder !== undefined && holder !== "" && holderState(holder) === "gone";
}

function read(lock: string): string | undefined {
  try {
    return readFileSync(lock, "utf8");
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}
