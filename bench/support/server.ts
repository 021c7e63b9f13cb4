import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** A server to measure: a process of its own on a fresh home, and its CPU time as the kernel counts it. */
export type BenchServer = {
  url: string;
  home: string;
  /** User and system CPU seconds of the server process so far, all of its threads, no children. */
  cpuSeconds(): number;
  /** Resident bytes now and at the highest. */
  memory(): { residentBytes: number; peakBytes: number };
  stop(): Promise<void>;
};

const ENTRY = fileURLToPath(new URL("../../roles/main.ts", import.meta.url));
/** `sysconf(_SC_CLK_TCK)`, which Linux fixes for user space. */
const TICKS_PER_SECOND = 100;

export async function startBenchServer(
  options: { nodeArgs?: string[]; env?: Record<string, string> } = {},
): Promise<BenchServer> {
  const home = await mkdtemp(join(tmpdir(), "engine-bench-"));
  const args = [...(options.nodeArgs ?? []), ENTRY, "serve", "--addr", "127.0.0.1:0"];
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ENGINE_HOME: home, ...options.env },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const url = await new Promise<string>((resolve, reject) => {
    let log = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      log += text;
      const found = /"url":"(http:[^"]+)"/.exec(log)?.[1];
      if (found !== undefined) resolve(found);
    });
    child.once("exit", () => reject(new Error(`the server ended before it listened:\n${log}`)));
  });
  const pid = String(child.pid);
  return {
    url,
    home,
    cpuSeconds: () => {
      const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
      return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
    },
    memory: () => {
      const status = readFileSync(`/proc/${pid}/status`, "utf8");
      const bytesOf = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1] ?? 0) * 1024;
      return { residentBytes: bytesOf("VmRSS"), peakBytes: bytesOf("VmHWM") };
    },
    stop: async () => {
      child.kill("SIGTERM");
      await gone;
      await rm(home, { recursive: true, force: true });
    },
  };
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
