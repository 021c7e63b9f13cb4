import { spawn, type ChildProcess } from "node:child_process";
import { dirname } from "node:path";
import { isolateEnv, isolateFile, nodeProgram } from "../core/isolate.ts";
import type { ProcessTask } from "./merge-protocol.ts";

/** How the process of `merge-process.ts` is started: under its limits, and with a guard. */
export const CAN_STOP = process.platform !== "win32";

/** What Node and DuckDB take besides DuckDB's limit, code not counted, with room for their own buffers. */
const OVERHEAD_BYTES = 1024 * 1024 * 1024;

/** A process that says when it is ready. `codeCache`: see `MergeProcessOptions`. */
export function startChild({ folder, limits }: ProcessTask, codeCache: string | undefined): ChildProcess {
  const node = [nodeProgram(), isolateFile(new URL("./merge-child.ts", import.meta.url)), "--isolate", "merge"];
  // Many arenas would keep memory that nobody uses, and count against the limit.
  const env = { ...isolateEnv(), MALLOC_ARENA_MAX: "4", NODE_OPTIONS: "", NODE_COMPILE_CACHE: codeCache };
  const [file, ...args] = process.platform === "win32" ? node : [...underLimits(limits.memoryBytes), ...node];
  if (file === undefined) throw new Error("no command");
  return spawn(file, args, {
    env,
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    serialization: "advanced",
    cwd: dirname(folder),
  });
}

/** `sh` sets the limits and becomes the process. Node writes its code cache before any code of ours runs. */
function underLimits(memoryBytes: number): string[] {
  const dataKib = Math.ceil((memoryBytes + OVERHEAD_BYTES) / 1024);
  return ["/bin/sh", "-c", `umask 077; ulimit -c 0; ulimit -d ${dataKib} 2>/dev/null; exec "$0" "$@"`];
}

/**
 * A process that is stopped does not notice that the server has died, and would stay for ever. So a shell waits for
 * the end of a pipe that only the server holds, and then kills it.
 */
export function startGuard(pid: number | undefined): ChildProcess | undefined {
  if (!CAN_STOP || pid === undefined) return undefined;
  const guard = spawn("/bin/sh", ["-c", 'read -r _; kill -9 "$0"', String(pid)], {
    stdio: ["pipe", "ignore", "ignore"],
  });
  // Without a guard the process is as safe as any other child; that `sh` is missing shows when it is started itself.
  guard.on("error", () => {});
  guard.stdin?.on("error", () => {});
  return guard;
}
