import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { AutocannonPlan, AutocannonRun } from "./autocannon-child.ts";

const CHILD = fileURLToPath(new URL("./autocannon-child.ts", import.meta.url));

/** Runs autocannon in a process of its own. `installPeers` comes first. Rejects when a request of it failed. */
export async function runAutocannon(plan: AutocannonPlan, signal: AbortSignal): Promise<AutocannonRun> {
  const { stdout } = await promisify(execFile)(process.execPath, [CHILD, JSON.stringify(plan)], { signal });
  return JSON.parse(stdout) as AutocannonRun;
}
