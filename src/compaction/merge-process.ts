import { spawn, type ChildProcess } from "node:child_process";
import type { Clock, TimerHandle } from "../core/clock.ts";
import { messageOf } from "../core/errors.ts";
import { isolateEnv, isolateFile } from "../core/isolate.ts";
import { DamagedInputs, type MergedFile, type MergeMessage, type MergeTask } from "./merge.ts";

/**
 * The merging process, from the server's side. Each merge has one of its own: DuckDB cannot be bounded inside ours, all
 * memory goes back when it ends, and it can be killed at any moment.
 *
 * It is bounded three ways. Memory: by the kernel (RLIMIT_DATA, on Linux), above DuckDB's own limit. Priority: everybody
 * else passes it. Processor: a share of the time, also when nobody else wants it, so that a machine keeps its caches and
 * its clock rate for those whom somebody waits for. For that it is stopped and continued (SIGSTOP, SIGCONT) many times a
 * second, which works in the middle of a sort too; where there are no such signals, priority alone must do.
 */
export type MergeProcessOptions = {
  clock: Clock;
  /** The part of the time in which it may run now, up to 1; asked for many times a second. */
  share: () => number;
  /** Kills it; the merge then rejects with the signal's reason. */
  signal: AbortSignal;
};

/** What Node and DuckDB take besides DuckDB's limit, code not counted, with room for their own buffers. */
const OVERHEAD_BYTES = 1024 * 1024 * 1024;
const START_TIMEOUT_MS = 30_000;
/** Of time in which it could run; ten times as long as the largest merge takes. */
const RUN_TIMEOUT_MS = 3_600_000;
const KEPT_STDERR_CHARS = 2_000;
/** It runs for a share of each period. */
const PERIOD_MS = 100;
/** Below that it would never end. */
const MIN_SHARE = 0.05;
const CAN_STOP = process.platform !== "win32";

/**
 * Merges in a new process. Rejects with `DamagedInputs`, with why it failed or died, or with the signal's reason. The
 * process is gone when the promise settles; the folder is the caller's to delete.
 */
export async function mergeInProcess(task: MergeTask, options: MergeProcessOptions): Promise<MergedFile[]> {
  options.signal.throwIfAborted();
  const merging = new MergeProcess(task, options);
  const onAbort = (): void => merging.kill(options.signal.reason as Error);
  options.signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await merging.run();
  } finally {
    options.signal.removeEventListener("abort", onAbort);
    await merging.end();
  }
}

class MergeProcess {
  readonly #task: MergeTask;
  readonly #options: MergeProcessOptions;
  readonly #child: ChildProcess;
  readonly #guard: ChildProcess | undefined;
  readonly #exited = Promise.withResolvers<void>();
  readonly #answer = Promise.withResolvers<MergedFile[]>();
  #timer: TimerHandle | undefined;
  #ranMs = 0;
  #isReady = false;
  #isGone = false;
  #stderr = "";

  constructor(task: MergeTask, options: MergeProcessOptions) {
    this.#task = task;
    this.#options = options;
    // Somebody looks at it when the process is gone; before that it may fail unseen.
    this.#answer.promise.catch(() => {});
    this.#child = startChild(task);
    this.#guard = startGuard(this.#child.pid);
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-KEPT_STDERR_CHARS);
    });
    this.#child.on("message", (message) => this.#onMessage(message as MergeMessage));
    this.#child.on("error", (error) => this.#onExit(error));
    this.#child.on("exit", (code, signal) => {
      const end = signal ?? `code ${code}`;
      this.#onExit(new Error(`the merging process ended with ${end}: ${this.#stderr}`));
    });
  }

  async run(): Promise<MergedFile[]> {
    this.#timer = this.#options.clock.after(START_TIMEOUT_MS, () =>
      this.kill(new Error(`a merging process was not ready after ${START_TIMEOUT_MS} ms`)),
    );
    return this.#answer.promise;
  }

  /** Ends it at once; `run` rejects with the reason unless it was done. */
  kill(reason: Error): void {
    this.#answer.reject(reason);
    this.#timer?.cancel();
    // Also a stopped process dies of this one.
    this.#child.kill("SIGKILL");
  }

  /** Resolves when the process is gone. */
  async end(): Promise<void> {
    this.kill(new Error("the merge is over"));
    await this.#exited.promise;
  }

  #onMessage(message: MergeMessage): void {
    switch (message.kind) {
      case "ready":
        this.#isReady = true;
        this.#child.send(this.#task, (error) => error !== null && this.kill(error));
        this.#timer?.cancel();
        this.#go();
        return;
      case "merged":
        this.#answer.resolve(message.files);
        return;
      case "failed":
        this.#answer.reject(
          message.damaged.length > 0
            ? new DamagedInputs(message.damaged)
            : new Error(`merging failed: ${message.message}`),
        );
        return;
    }
  }

  /** Lets it run for its share of a period. */
  #go(): void {
    if (this.#isGone) return;
    if (this.#ranMs >= RUN_TIMEOUT_MS) {
      this.kill(new Error(`a merge took more than ${RUN_TIMEOUT_MS} ms`));
      return;
    }
    const share = Math.min(Math.max(this.#options.share(), MIN_SHARE), 1);
    const runMs = CAN_STOP ? PERIOD_MS * share : PERIOD_MS;
    this.#ranMs += runMs;
    if (CAN_STOP) this.#child.kill("SIGCONT");
    this.#timer = this.#options.clock.after(
      runMs,
      () => (runMs >= PERIOD_MS ? this.#go() : this.#rest(PERIOD_MS - runMs)),
      { background: true },
    );
  }

  #rest(restMs: number): void {
    if (this.#isGone) return;
    this.#child.kill("SIGSTOP");
    this.#timer = this.#options.clock.after(restMs, () => this.#go(), { background: true });
  }

  #onExit(reason: Error): void {
    this.#isGone = true;
    this.#timer?.cancel();
    this.#guard?.kill("SIGKILL");
    this.#answer.reject(this.#isReady ? reason : new Error(`a merging process does not start: ${messageOf(reason)}`));
    this.#exited.resolve();
  }
}

function startChild({ folder, limits }: MergeTask): ChildProcess {
  const node = [process.execPath, isolateFile(new URL("./merge-child.ts", import.meta.url)), "--isolate", "merge"];
  // Many arenas would keep memory that nobody uses, and count against the limit.
  const env = { ...isolateEnv(), MALLOC_ARENA_MAX: "4", NODE_OPTIONS: "" };
  const [file, ...args] = process.platform === "win32" ? node : [...underLimits(limits.memoryBytes), ...node];
  if (file === undefined) throw new Error("no command");
  return spawn(file, args, { env, stdio: ["ignore", "ignore", "pipe", "ipc"], serialization: "advanced", cwd: folder });
}

/** `sh` sets the limits and becomes the process. */
function underLimits(memoryBytes: number): string[] {
  const dataKib = Math.ceil((memoryBytes + OVERHEAD_BYTES) / 1024);
  return ["/bin/sh", "-c", `ulimit -c 0; ulimit -d ${dataKib} 2>/dev/null; exec "$0" "$@"`];
}

/**
 * A process that is stopped does not notice that the server has died, and would stay for ever. So a shell waits for
 * the end of a pipe that only the server holds, and then kills it.
 */
function startGuard(pid: number | undefined): ChildProcess | undefined {
  if (!CAN_STOP || pid === undefined) return undefined;
  const guard = spawn("/bin/sh", ["-c", 'read -r _; kill -9 "$0"', String(pid)], {
    stdio: ["pipe", "ignore", "ignore"],
  });
  // Without a guard the process is as safe as any other child; that `sh` is missing shows when it is started itself.
  guard.on("error", () => {});
  guard.stdin?.on("error", () => {});
  return guard;
}
