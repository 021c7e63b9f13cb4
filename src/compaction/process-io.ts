import { readFileSync } from "node:fs";

/**
 * Bytes that a process of ours has read and written since it started, from and to the page cache or not; undefined where
 * the system does not say (Linux does), and for a process that is gone.
 */
export function bytesMovedBy(pid: number): number | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/io`, "utf8");
  } catch {
    // No such system, no such process, or one that keeps this to itself: there is nothing to be known, and that is all.
    return undefined;
  }
  const counts = [...text.matchAll(/^[rw]char: (\d+)$/gm)].map(([, count]) => Number(count));
  return counts.length === 2 ? counts.reduce((sum, count) => sum + count, 0) : undefined;
}
