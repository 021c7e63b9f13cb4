import { existsSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { systemCodeOf } from "../../src/core/errors.ts";
import { statFields, TICKS_PER_SECOND } from "../../src/core/process-stat.ts";

/** What the kernel says of a process, and of the disk. Linux only. */

/** Positions behind the name in `/proc/PID/stat`. */
const PARENT = 1;
const OWN_TICKS = [11, 12];
const ENDED_CHILDREN_TICKS = [13, 14];

/**
 * User and system CPU seconds of a process and of everything it started: all threads, children that live, and children
 * that ended (from the moment their parent took notice of it).
 */
export function cpuSecondsOf(pid: number): number {
  const stats = statsOfAll();
  let seconds = 0;
  for (const [id, fields] of stats) {
    if (!descendsFrom(id, pid, stats)) continue;
    // Ticks are rounded down per process, which hides many small ones; the scheduler's nanoseconds forget ended threads.
    // Neither counts too much.
    seconds += Math.max(ticksOf(fields, OWN_TICKS) / TICKS_PER_SECOND, scheduledSeconds(id));
    seconds += ticksOf(fields, ENDED_CHILDREN_TICKS) / TICKS_PER_SECOND;
  }
  return seconds;
}

/** CPU seconds of a process without its children: of its first thread, and of all others that it has or had. */
export function threadSecondsOf(pid: number): ThreadSeconds {
  const ticks = ticksOf(statFields(pid) ?? [], OWN_TICKS) / TICKS_PER_SECOND;
  const main = mainThreadSecondsOf(pid);
  return { main, others: Math.max(ticks, scheduledSeconds(pid), main) - main };
}

export type ThreadSeconds = { main: number; others: number };

/**
 * Bytes that these processes, and children of theirs that ended, have sent to a disk, by the kernel's count. What stays
 * in memory (tmpfs) is not in it. Undefined where the kernel does not count, or where they are another user's.
 */
export function bytesToDiskOf(pids: readonly number[]): number | undefined {
  let total: number | undefined;
  for (const id of pids) {
    const written = /^write_bytes: (\d+)$/m.exec(readProc(`/proc/${id}/io`, ["EACCES"]))?.[1];
    if (written !== undefined) total = (total ?? 0) + Number(written);
  }
  return total;
}

/** The process and everything that it started and that lives, by id, itself first. */
export function descendantsOf(pid: number): number[] {
  const stats = statsOfAll();
  return [pid, ...[...stats.keys()].filter((id) => id !== pid && descendsFrom(id, pid, stats))];
}

function statsOfAll(): Map<number, readonly string[]> {
  const stats = new Map<number, readonly string[]>();
  for (const name of readdirSync("/proc")) if (/^\d+$/.test(name)) stats.set(Number(name), statFields(name) ?? []);
  return stats;
}

function descendsFrom(id: number, ancestor: number, stats: ReadonlyMap<number, readonly string[]>): boolean {
  for (let at = id; at > 0; at = Number(stats.get(at)?.[PARENT] ?? 0)) if (at === ancestor) return true;
  return false;
}

function ticksOf(fields: readonly string[], positions: readonly number[]): number {
  return positions.reduce((sum, position) => sum + Number(fields[position] ?? 0), 0);
}

/** Time on a core of the threads that live. */
function scheduledSeconds(pid: number): number {
  const folder = `/proc/${pid}/task`;
  let seconds = 0;
  for (const thread of existsSync(folder) ? readdirSync(folder) : []) seconds += scheduledSecondsOf(pid, thread);
  return seconds;
}

/** CPU seconds of a process's first thread, which runs its JavaScript: it is the one that no second core helps. */
export function mainThreadSecondsOf(pid: number): number {
  return scheduledSecondsOf(pid, String(pid));
}

function scheduledSecondsOf(pid: number, thread: string): number {
  return Number(readProc(`/proc/${pid}/task/${thread}/schedstat`).split(" ")[0] ?? 0) / 1e9;
}

/** Empty when the process ended while we looked (its parent counts it), and for errors of these codes. */
function readProc(path: string, unreadable: readonly string[] = []): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (["ENOENT", "ESRCH", ...unreadable].includes(systemCodeOf(error) ?? "")) return "";
    throw error;
  }
}

/** Resident bytes of one process without its children: now, and the most since `resetPeak`. */
export function memoryOf(pid: number): { residentBytes: number; peakBytes: number } {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const bytesOf = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1]) * 1024;
  return { residentBytes: bytesOf("VmRSS"), peakBytes: bytesOf("VmHWM") };
}

/** Resident bytes of a process and of all that it started; what several share counts for each. */
export function residentBytesOf(pid: number): number {
  return descendantsOf(pid).reduce((sum, id) => {
    const kib = /^VmRSS:\s+(\d+)/m.exec(readProc(`/proc/${id}/status`))?.[1] ?? 0;
    return sum + Number(kib) * 1024;
  }, 0);
}

/** Makes the peak start over from what is resident now (proc(5): clear_refs). */
export function resetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, "5");
}

/** Bytes that the files below a folder take on the disk. Files that vanish meanwhile count nothing. */
export async function diskBytesOf(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  let total = 0;
  for (const entry of entries) {
    if (!entry.isFile()) continue;
    const info = await stat(join(entry.parentPath, entry.name)).catch(() => undefined);
    total += (info?.blocks ?? 0) * BLOCK_BYTES;
  }
  return total;
}

/** The unit of `st_blocks`. */
const BLOCK_BYTES = 512;

/** The process that listens on a TCP port of this machine; throws when none is found that we may look into. */
export function pidListeningOn(port: number): number {
  const inodes = new Set(["/proc/net/tcp", "/proc/net/tcp6"].flatMap((file) => listeningInodes(file, port)));
  for (const name of readdirSync("/proc")) {
    if (/^\d+$/.test(name) && socketInodes(name).some((inode) => inodes.has(inode))) return Number(name);
  }
  throw new Error(`found no process that listens on port ${port}; a benchmark must run as the same user`);
}

const LISTEN = "0A";

function listeningInodes(file: string, port: number): string[] {
  if (!existsSync(file)) return [];
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const lines = readFileSync(file, "utf8").split("\n").slice(1);
  return lines.flatMap((line) => {
    const fields = line.trim().split(/\s+/);
    return fields[1]?.endsWith(suffix) === true && fields[3] === LISTEN ? [fields[9] ?? ""] : [];
  });
}

function socketInodes(pid: string): string[] {
  try {
    const folder = `/proc/${pid}/fd`;
    return readdirSync(folder).flatMap((fd) => /^socket:\[(\d+)\]$/.exec(readlinkSync(join(folder, fd)))?.[1] ?? []);
  } catch {
    // Another user's, or gone.
    return [];
  }
}
