import { readdirSync, readFileSync } from "node:fs";

/** Memory of the processes that belong to sandboxes, pages that several have in shares. */
export function residentBytesOfSandboxes(): number {
  let bytes = 0;
  for (const pid of readdirSync("/proc")) {
    if (!/^\d+$/.test(pid)) continue;
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, "utf8");
      if (!command.includes("supervisor.pl") && !command.includes("first-process")) continue;
      const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
      bytes += Number(/^Pss:\s+(\d+) kB$/m.exec(rollup)?.[1] ?? 0) * 1024;
    } catch {
      // It has ended in between.
    }
  }
  return bytes;
}
