import { lstatSync, mkdirSync, readdirSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../core/clock.ts";
import { systemCodeOf } from "../core/errors.ts";
import { holderState, ownHolder } from "./holder.ts";

/**
 * Who uses which unpacked program: an empty file for each process in `uses/<id>/`. By these the programs of earlier
 * versions are removed when nobody needs them any more.
 */
const REFRESH_MS = 6 * 60 * 60 * 1000;
/** A process that cannot be looked at from here lives while it has refreshed its file within this time. */
const SILENT_MS = 8 * REFRESH_MS;
/** What was started within this time may be started again: an update keeps the version before. */
const KEPT_MS = 7 * 24 * 60 * 60 * 1000;

/** A cache that became read-only, or whose disk is full, is good enough to run from. */
const UNWRITABLE = new Set(["EROFS", "EACCES", "EPERM", "ENOSPC", "EDQUOT"]);

/** Tells others that this process runs from `<root>/<id>`, until it ends. */
export function markUse(root: string, id: string, clock: Clock): void {
  const file = join(usesOf(root, id), ownHolder());
  const mark = (): void => {
    mkdirSync(usesOf(root, id), { recursive: true, mode: 0o700 });
    writeFileSync(file, "", { mode: 0o600 });
    touch(join(root, id), clock);
    touch(file, clock);
  };
  unlessUnwritable(mark);
  clock.every(REFRESH_MS, () => unlessUnwritable(mark));
  process.once("exit", () => unlessUnwritable(() => rmSync(file, { force: true })));
}

function unlessUnwritable(task: () => void): void {
  try {
    task();
  } catch (error) {
    if (!UNWRITABLE.has(systemCodeOf(error) ?? "")) throw error;
  }
}

function touch(path: string, clock: Clock): void {
  const seconds = clock.nowMs() / 1000;
  try {
    utimesSync(path, seconds, seconds);
  } catch (error) {
    // Marked before it is unpacked: there is none yet.
    if (systemCodeOf(error) !== "ENOENT") throw error;
  }
}

/** A folder beside the unpacked programs, for this process alone to work in. */
export function scratchFolder(root: string, purpose: string): string {
  return join(root, `${purpose}-${ownHolder()}`);
}

const SCRATCH = /^(unpacking|damaged|removed)-(?<holder>.+)$/;
const ID = /^[0-9a-f]{64}$/;

/** Removes what nobody uses: programs of other versions, and what processes left that were killed while they unpacked. */
export function sweep(root: string, ownId: string, clock: Clock): void {
  for (const name of readdirSync(root)) {
    const path = join(root, name);
    const holder = SCRATCH.exec(name)?.groups?.["holder"];
    if (holder !== undefined && !isHeld(holder, path, clock)) rmSync(path, { recursive: true, force: true });
    if (ID.test(name) && name !== ownId && !isUsed(root, name, clock)) remove(root, name);
  }
}

function isUsed(root: string, id: string, clock: Clock): boolean {
  const uses = usesOf(root, id);
  if (ageMs(join(root, id), clock) < KEPT_MS) return true;
  return namesIn(uses).some((name) => isHeld(name, join(uses, name), clock));
}

function isHeld(holder: string, path: string, clock: Clock): boolean {
  const state = holderState(holder);
  return state === "alive" || (state === "elsewhere" && ageMs(path, clock) < SILENT_MS);
}

/** Renamed first: a start of that version finds all of it or nothing. */
function remove(root: string, id: string): void {
  const removed = scratchFolder(root, "removed");
  rmSync(removed, { recursive: true, force: true });
  renameSync(join(root, id), removed);
  rmSync(removed, { recursive: true, force: true });
  rmSync(usesOf(root, id), { recursive: true, force: true });
}

function usesOf(root: string, id: string): string {
  return join(root, "uses", id);
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT") return [];
    throw error;
  }
}

/** Infinite for what is gone. */
function ageMs(path: string, clock: Clock): number {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  return stats === undefined ? Infinity : clock.nowMs() - stats.mtimeMs;
}
