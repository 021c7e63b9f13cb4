import type { ChildProcess } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { rm } from "node:fs/promises";
import { constants, setPriority } from "node:os";
import { join } from "node:path";
import { availableCores } from "../../core/available-cores.ts";
import type { Clock } from "../../core/clock.ts";
import { EngineError, fromErrorRecord, systemCodeOf } from "../../core/errors.ts";
import type { Log } from "../../core/log.ts";
import { budgetError } from "../budgets/budget.ts";
import type { DeclaredTable } from "../system-tables/system-tables.ts";
import type { Confinement } from "../../io/confinement/confinement.ts";
import { startConfined } from "./confined-process.ts";
import { outputFolder } from "./process-folders.ts";
import type { ChildMessage, QueryProgress, ServerMessage } from "./protocol.ts";
import { checkedData } from "../stream/result-body.ts";
import type { Spooled } from "../stream/spool.ts";

/**
 * One query process, from the server's side. DuckDB cannot be bounded inside our own process (one list function takes
 * gigabytes past its memory limit, and a long parse hears no interrupt), so queries run in processes that the kernel
 * bounds (RLIMIT_DATA, on Linux) and that can be killed at any moment.
 */
export type ProcessOptions = {
  memoryBytes: number;
  spillBytes: number;
  log: Log;
  clock: Clock;
  /** The process gets a folder of its own in here. */
  baseFolder: string;
  confinement: Confinement;
  /** Folders of others that it reads: those of extents which cannot be given to it as hard links. */
  readableFolders: readonly string[];
  /** The tables of features that queries may name. */
  systemTables: readonly DeclaredTable[];
};

/** What Node and DuckDB take before the first query, code not counted, with room for their own buffers. */
const OVERHEAD_BYTES = 768 * 1024 * 1024;
const START_TIMEOUT_MS = 30_000;
const KEPT_STDERR_CHARS = 2_000;

/** What ends a message's turn. */
type Answer = Exclude<ChildMessage, { kind: "progress" }>;

export class QueryProcess {
  /** See `process-folders.ts`. */
  readonly folder: string;
  readonly #options: ProcessOptions;
  readonly #child: ChildProcess;
  readonly #ended = Promise.withResolvers<void>();
  readonly #exited = Promise.withResolvers<void>();
  #waiting: PromiseWithResolvers<Answer> | undefined;
  #death: Error | undefined;
  #stderr = "";
  #isLow = false;
  #isLost = false;
  /** Why its query was cancelled, until it is ready for the next one. */
  #cancelled: Error | undefined;
  /** The answer to a message is due. */
  #isAsked = false;
  #recovery: PromiseWithResolvers<boolean> | undefined;
  /** Who is told how far the query is. */
  #onProgress: ((progress: QueryProgress) => void) | undefined;
  #rssBytes = 0;

  constructor(options: ProcessOptions) {
    this.#options = options;
    this.folder = mkdtempSync(join(options.baseFolder, "child-"));
    this.#child = startChild(options, this.folder);
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-KEPT_STDERR_CHARS);
    });
    this.#child.on("message", (message) => this.#hear(message as ChildMessage));
    this.#child.on("error", (error) => this.#onExit(error));
    this.#child.on("exit", (code, signal) => this.#onExit(this.#reasonOf(code, signal)));
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get alive(): boolean {
    return this.#death === undefined;
  }

  /** What it held in memory after its last query. */
  get rssBytes(): number {
    return this.#rssBytes;
  }

  /** Whether it ended without having been killed by `kill`: by itself, or at the hand of somebody else. */
  get isLost(): boolean {
    return this.#isLost;
  }

  /** Resolves once the process takes queries; rejects when it does not start. */
  async ready(): Promise<void> {
    const timer = this.#options.clock.after(START_TIMEOUT_MS, () =>
      this.kill(new Error(`a query process was not ready after ${START_TIMEOUT_MS} ms`)),
    );
    try {
      await this.#next();
    } finally {
      timer.cancel();
    }
  }

  /** Whether a query was cancelled, and the process is not ready for another one: see `recover`. */
  get isCancelled(): boolean {
    return this.#cancelled !== undefined;
  }

  /**
   * Sends a message and waits for the answer; meanwhile `onProgress` is told how far the query is. Rejects with the query's
   * error, or with why it or the process ended.
   */
  async ask(message: ServerMessage, onProgress?: (progress: QueryProgress) => void): Promise<Answer> {
    if (this.#cancelled !== undefined) throw this.#cancelled;
    const next = this.#next();
    this.#isAsked = true;
    this.#onProgress = onProgress;
    this.#send(message);
    const answer = await next;
    if (answer.kind === "failed") {
      if (answer.broken) this.kill(new Error("the process is spent"));
      throw fromErrorRecord(answer.error);
    }
    return answer;
  }

  /**
   * Ends the query, not the process: who waits for it hears the reason at once, and DuckDB is interrupted. Starting
   * another process takes longer than most queries do, so many that run into their time would leave none for the next.
   */
  cancel(reason: Error): void {
    if (!this.alive || this.#cancelled !== undefined) return;
    this.#cancelled = reason;
    if (!this.#isAsked) return;
    this.#settle((waiting) => waiting.reject(reason));
    this.#send({ kind: "cancel" });
  }

  /**
   * Waits until a process whose query was cancelled is good for another one. False when it is dead, killed for not having
   * heard in time: some functions of DuckDB look for an interrupt only when they are done.
   */
  async recover(graceMs: number): Promise<boolean> {
    if (this.#cancelled === undefined || !this.alive) return this.alive;
    const late = new Error("the process did not hear that its query is cancelled");
    const timer = this.#options.clock.after(graceMs, () => this.kill(late));
    this.#recovery = Promise.withResolvers<boolean>();
    // Parsed, and never run: it is still open.
    if (!this.#isAsked) this.#drop();
    try {
      return await this.#recovery.promise;
    } finally {
      timer.cancel();
    }
  }

  /** Progress, or an answer: for who waits, or the last of a query that was cancelled. */
  #hear(message: ChildMessage): void {
    if (message.kind === "progress") {
      if (this.#cancelled === undefined && this.#waiting !== undefined) this.#onProgress?.(progressOf(message));
      return;
    }
    this.#isAsked = false;
    this.#onProgress = undefined;
    if (message.kind === "done" || message.kind === "failed") this.#rssBytes = message.rssBytes;
    if (this.#cancelled === undefined) this.#settle((waiting) => waiting.resolve(message));
    // It was parsed, and never run.
    else if (message.kind === "needs") this.#drop();
    else if (message.kind === "failed" && message.broken) this.kill(new Error("the process is spent"));
    else {
      // A result that was on its way is nobody's.
      if (message.kind === "done") this.#discard(message.data);
      this.#cancelled = undefined;
      this.#recovery?.resolve(this.alive);
    }
  }

  #drop(): void {
    this.#isAsked = true;
    this.#send({ kind: "drop" });
  }

  #discard(data: Spooled): void {
    try {
      const own = checkedData(data, outputFolder(this.folder));
      if ("file" in own) rmSync(own.file, { force: true });
    } catch (error) {
      this.kill(error as Error);
    }
  }

  #send(message: ServerMessage): void {
    if (this.#death !== undefined) return;
    this.#child.send(message, (error) => error !== null && this.#lose(unreachable(error)));
  }

  /** Ends the process at once; what waits for it rejects with `reason`. Harmless when it is dead already. */
  kill(reason: Error): void {
    this.#die(reason);
    this.#child.kill("SIGKILL");
  }

  /** Lets every other process pass it on the processor, until `restorePriority`. */
  lowerPriority(): void {
    if (!this.#isLow) this.#isLow = this.#setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  }

  /** False when the system does not let us: then the process is not for small queries any more. */
  restorePriority(): boolean {
    if (this.#isLow && this.#setPriority(constants.priority.PRIORITY_NORMAL)) this.#isLow = false;
    return !this.#isLow;
  }

  /** Resolves when it will take no query any more: it ended, or was killed and is about to. */
  ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** Resolves when the process is gone and its folder is deleted. */
  exited(): Promise<void> {
    return this.#exited.promise;
  }

  #die(reason: Error): void {
    this.#death ??= reason;
    this.#settle((waiting) => waiting.reject(reason));
    this.#recovery?.resolve(false);
    this.#ended.resolve();
  }

  #lose(reason: Error): void {
    if (this.#death === undefined) this.#isLost = true;
    this.kill(reason);
  }

  #next(): Promise<Answer> {
    this.#waiting = Promise.withResolvers<Answer>();
    if (this.#death !== undefined) this.#waiting.reject(this.#death);
    return this.#waiting.promise;
  }

  #settle(settle: (waiting: PromiseWithResolvers<Answer>) => void): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting !== undefined) settle(waiting);
  }

  #onExit(reason: Error): void {
    if (this.#death === undefined) this.#isLost = true;
    this.#die(reason);
    rm(this.folder, { recursive: true, force: true })
      .catch((error: unknown) => this.#options.log.error({ err: error }, "cannot delete the folder of a query"))
      .finally(() => this.#exited.resolve());
  }

  /** Linux knows priorities of threads only; a thread that is started later has that of the one that starts it. */
  #setPriority(priority: number): boolean {
    const { pid } = this;
    if (pid === undefined || !this.alive) return false;
    return threadsOf(pid)
      .map((thread) => trySetPriority(thread, priority))
      .every(Boolean);
  }

  /** Why a process died that nobody killed: almost always memory, refused by the kernel at a place that cannot say so. */
  #reasonOf(code: number | null, signal: NodeJS.Signals | null): Error {
    const outOfMemory = signal === "SIGABRT" || signal === "SIGKILL" || signal === "SIGTRAP" || code === 134;
    if (this.#death !== undefined) return this.#death;
    this.#options.log.warn({ code, signal, stderr: this.#stderr }, "a query process died");
    if (signal === "SIGXFSZ") return budgetError("temp_bytes", this.#options.spillBytes, this.#options.spillBytes);
    const { memoryBytes } = this.#options;
    if (outOfMemory) return budgetError("memory_bytes", memoryBytes, memoryBytes);
    return new EngineError("query_failed", `the query process ended with ${signal ?? `code ${code}`}`);
  }
}

/** Numbers that the process tells may be anybody's word. */
function progressOf({ percent, spillBytes }: QueryProgress): QueryProgress {
  const isShare = typeof percent === "number" && percent >= 0 && percent <= 100;
  return { ...(isShare && { percent }), spillBytes: Number.isSafeInteger(spillBytes) ? Math.max(0, spillBytes) : 0 };
}

function threadsOf(pid: number): number[] {
  if (process.platform !== "linux") return [pid];
  try {
    return readdirSync(`/proc/${pid}/task`).map(Number);
  } catch {
    // It just ended.
    return [];
  }
}

function trySetPriority(thread: number, priority: number): boolean {
  try {
    setPriority(thread, priority);
    return true;
  } catch (error) {
    // A thread that just ended is no failure; one that we may not change is.
    return systemCodeOf((error as { info?: unknown }).info) === "ESRCH";
  }
}

/** The channel is closed: somebody else ended the process, and its exit was not heard of yet. */
function unreachable(cause: Error): EngineError {
  return new EngineError("query_failed", "the query process is gone", { cause });
}

function startChild(options: ProcessOptions, folder: string): ChildProcess {
  const { confinement, memoryBytes, spillBytes, readableFolders, systemTables } = options;
  return startConfined({
    program: { source: new URL("./query-child.ts", import.meta.url), isolate: "query" },
    folder,
    readable: readableFolders,
    confinement,
    limits: { dataBytes: memoryBytes + OVERHEAD_BYTES, fileBytes: spillBytes },
    env: {
      ENGINE_QUERY_CHILD_MEMORY_BYTES: String(memoryBytes),
      ENGINE_QUERY_CHILD_SPILL_BYTES: String(spillBytes),
      // Confined it sees no control groups.
      ENGINE_QUERY_CHILD_CORES: String(availableCores()),
      ...(systemTables.length > 0 && {
        ENGINE_QUERY_CHILD_SYSTEM_TABLES: JSON.stringify(systemTables.map(({ name, columns }) => ({ name, columns }))),
      }),
    },
  });
}
