import type { ChildProcess } from "node:child_process";
import type { Clock, TimerHandle } from "../core/clock.ts";
import { messageOf } from "../core/errors.ts";
import type { IoBudget } from "./io-budget.ts";
import type { ProcessMessage, ProcessTask } from "./merge-protocol.ts";
import { DamagedInputs, type MergedFile, type MergeTask } from "./merge.ts";
import { CAN_STOP, startChild, startGuard } from "./merge-spawn.ts";
import { bytesMovedBy } from "./process-io.ts";
import type { ExtentProblem, VerifyTask } from "./verify.ts";

/**
 * The process that merges or verifies extents, from the server's side: DuckDB cannot be bounded inside ours, all memory
 * goes back when it ends, and it can be killed at any moment. It has one task at a time. To start, and to compile what
 * is slow until it is compiled, takes as long as to merge 40 MB; so merges that follow each other may share one
 * (`SpareProcess`), a few at most, and none after one that failed. Between two tasks it is stopped.
 *
 * It is bounded four ways. Memory: by the kernel (RLIMIT_DATA, on Linux), above DuckDB's own limit. Priority: everybody
 * else passes it. Processor: a share of the time, also when nobody else wants it, so that a machine keeps its caches and
 * its clock rate for those whom somebody waits for. For that it is stopped and continued (SIGSTOP, SIGCONT) many times a
 * second, which works in the middle of a sort too; where there are no such signals, priority alone must do. Bytes: what
 * it has read and written, of which the kernel keeps count, is charged to the budget, and it stays stopped until that is
 * paid.
 */
export type MergeProcessOptions = {
  clock: Clock;
  /** The part of the time in which it may run now, up to 1; asked for many times a second. */
  share: () => number;
  /** Whose bytes it reads and writes; by default there is no bound. */
  budget?: IoBudget;
  /** A folder of ours alone, in which one process leaves the compiled program for the next: it takes a third of its start. */
  codeCache?: string;
  /** Where the process comes from, if there is one, and is left for the next task; by default each task has its own. */
  spare?: SpareProcess;
  /** Kills it; the task then rejects with the signal's reason. */
  signal: AbortSignal;
};

const START_TIMEOUT_MS = 30_000;
/** Of time in which it could run; ten times as long as the largest merge takes. */
const RUN_TIMEOUT_MS = 3_600_000;
const KEPT_STDERR_CHARS = 2_000;
/** It runs for a share of each period. */
const PERIOD_MS = 100;
/** Below that it would never end. */
const MIN_SHARE = 0.05;
/** A long rest is looked at again after so long. */
const MAX_REST_MS = 1_000;

/**
 * Merges in a process. Rejects with `DamagedInputs`, with why it failed or died, or with the signal's reason. The process
 * is gone when the promise settles, or kept in the spare; the folder is the caller's to delete.
 */
export async function mergeInProcess(task: MergeTask, options: MergeProcessOptions): Promise<MergedFile[]> {
  const outcome = await runInProcess({ kind: "merge", ...task }, options);
  if (outcome.kind !== "merged") throw outOfTurn(outcome);
  return outcome.files;
}

/** Verifies in a new process, in every other way like `mergeInProcess`. What is wrong with extents is no rejection. */
export async function verifyInProcess(task: VerifyTask, options: MergeProcessOptions): Promise<ExtentProblem[]> {
  const outcome = await runInProcess({ kind: "verify", ...task }, options);
  if (outcome.kind !== "verified") throw outOfTurn(outcome);
  return outcome.problems;
}

type Outcome = Extract<ProcessMessage, { kind: "merged" | "verified" }>;

async function runInProcess(task: ProcessTask, options: MergeProcessOptions): Promise<Outcome> {
  options.signal.throwIfAborted();
  const running = (await options.spare?.take(task)) ?? new MergeProcess(task, options);
  const onAbort = (): void => running.kill(options.signal.reason as Error);
  options.signal.addEventListener("abort", onAbort, { once: true });
  let isDone = false;
  try {
    const outcome = await running.run(task, options);
    isDone = !options.signal.aborted;
    return outcome;
  } finally {
    options.signal.removeEventListener("abort", onAbort);
    if (isDone && options.spare !== undefined) await options.spare.keep(running);
    else await running.end();
  }
}

/** What tasks leave in a process, such as memory that cannot be given back in between, goes with it after so many. */
export const MAX_TASKS = 8;

/** Keeps a process from one task to the next, for whoever has several in a row; `end` is theirs to call. */
export class SpareProcess {
  #kept: MergeProcess | undefined;

  /** The process that is kept, when it can take the task. */
  async take(task: ProcessTask): Promise<MergeProcess | undefined> {
    const kept = this.#kept;
    this.#kept = undefined;
    if (kept?.canTake(task) === true) return kept;
    await kept?.end();
    return undefined;
  }

  async keep(process: MergeProcess): Promise<void> {
    const before = this.#kept;
    this.#kept = process;
    await before?.end();
  }

  /** Resolves when no process is kept; it is gone. */
  async end(): Promise<void> {
    const kept = this.#kept;
    this.#kept = undefined;
    await kept?.end();
  }
}

function outOfTurn({ kind }: Outcome): Error {
  return new Error(`the merging process answered ${kind} out of turn`);
}

class MergeProcess {
  readonly #memoryBytes: number;
  readonly #child: ChildProcess;
  readonly #guard: ChildProcess | undefined;
  readonly #exited = Promise.withResolvers<void>();
  #task: ProcessTask;
  #options: MergeProcessOptions;
  #answer = Promise.withResolvers<Outcome>();
  #tasks = 0;
  #timer: TimerHandle | undefined;
  #ranMs = 0;
  #movedBytes = 0;
  #isReady = false;
  #isGone = false;
  #stderr = "";

  /** Starts it for this task and others with its limits. */
  constructor(task: ProcessTask, options: MergeProcessOptions) {
    this.#task = task;
    this.#options = options;
    this.#memoryBytes = task.limits.memoryBytes;
    // Somebody looks at it when the process is gone; before that it may fail unseen.
    this.#answer.promise.catch(() => {});
    this.#child = startChild(task, options.codeCache);
    this.#guard = startGuard(this.#child.pid);
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-KEPT_STDERR_CHARS);
    });
    this.#child.on("message", (message) => this.#onMessage(message as ProcessMessage));
    this.#child.on("error", (error) => this.#onExit(error));
    this.#child.on("exit", (code, signal) => {
      const end = signal ?? `code ${code}`;
      this.#onExit(new Error(`the merging process ended with ${end}: ${this.#stderr}`));
    });
  }

  canTake({ limits }: ProcessTask): boolean {
    return !this.#isGone && this.#tasks < MAX_TASKS && limits.memoryBytes === this.#memoryBytes;
  }

  /** Only one task at a time, and none after one that did not resolve. */
  async run(task: ProcessTask, options: MergeProcessOptions): Promise<Outcome> {
    this.#tasks++;
    this.#task = task;
    this.#options = options;
    if (this.#tasks > 1) {
      this.#answer = Promise.withResolvers<Outcome>();
      this.#answer.promise.catch(() => {});
      this.#begin();
    } else {
      this.#timer = options.clock.after(START_TIMEOUT_MS, () =>
        this.kill(new Error(`a merging process was not ready after ${START_TIMEOUT_MS} ms`)),
      );
    }
    return this.#answer.promise;
  }

  #begin(): void {
    if (this.#isGone) {
      this.#answer.reject(new Error(`the merging process has ended: ${this.#stderr}`));
      return;
    }
    this.#ranMs = 0;
    // What it read to start is nothing that merges move.
    this.#movedBytes = this.#countIo();
    this.#child.send(this.#task, (error) => error !== null && this.kill(error));
    this.#timer?.cancel();
    this.#go();
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

  #onMessage(message: ProcessMessage): void {
    switch (message.kind) {
      case "ready":
        this.#isReady = true;
        this.#begin();
        return;
      case "merged":
      case "verified":
        this.#chargeIo();
        this.#timer?.cancel();
        if (CAN_STOP) this.#child.kill("SIGSTOP");
        this.#answer.resolve(message);
        return;
      case "failed":
        this.#answer.reject(
          message.damaged.length > 0
            ? new DamagedInputs(message.damaged)
            : new Error(`${this.#task.kind === "merge" ? "merging" : "verifying"} failed: ${message.message}`),
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
    this.#chargeIo();
    const owedMs = CAN_STOP ? Math.min(this.#options.budget?.owedMs ?? 0, MAX_REST_MS) : 0;
    if (owedMs > 0) {
      this.#options.budget?.countWait(owedMs);
      this.#rest(owedMs);
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

  /** What it has moved since the last time. */
  #chargeIo(): void {
    const movedBytes = this.#countIo();
    this.#options.budget?.charge(this.#task.kind, Math.max(0, movedBytes - this.#movedBytes));
    this.#movedBytes = movedBytes;
  }

  #countIo(): number {
    const { pid } = this.#child;
    return (pid === undefined ? undefined : bytesMovedBy(pid)) ?? this.#movedBytes;
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
