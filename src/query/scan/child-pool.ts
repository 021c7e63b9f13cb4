import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fullBackoffMs } from "../../core/backoff.ts";
import type { Clock, TimerHandle } from "../../core/clock.ts";
import { EngineError, messageOf, systemCodeOf } from "../../core/errors.ts";
import type { Log } from "../../core/log.ts";
import { WaitingLine } from "../../core/waiting-line.ts";
import type { Confinement } from "../../io/confinement/confinement.ts";
import type { DeclaredTable } from "../system-tables/system-tables.ts";
import { QueryProcess, type ProcessOptions } from "./query-process.ts";

/**
 * Keeps a number of query processes warm and lends each to one query at a time. One whose query is cancelled is good
 * for the next within moments; one that died, was killed, or grew too large is replaced at once, while it is still on its
 * way out. Queries that find none free wait in line, for a while.
 */
export type ChildPoolOptions = {
  /** Kept warm. */
  children: number;
  /** Kept warm until the first query comes: as many as after it, unless given. A server that only ingests needs fewer. */
  childrenAtFirst?: number;
  /** Processes at most: those above `children` are started when large queries occupy all the others. */
  maxChildren?: number;
  /** How long a process above `children` stays when it is not needed any more. */
  keepSpareMs?: number;
  memoryBytes: number;
  log: Log;
  clock: Clock;
  confinement: Confinement;
  /** Folders of extents that cannot be linked into those of processes. They must be there. */
  readableFolders?: readonly string[];
  /** The tables of features that queries may name. */
  systemTables?: readonly DeclaredTable[];
  /** The pool's own folder is made in here; what dead servers left is swept. */
  tempDir: string;
  /** Disk that one query may take for spilled data, and again for its result. */
  spillBytes?: number;
  maxQueued?: number;
  maxWaitMs?: number;
  /** How long a process may take to end a query that was cancelled. */
  cancelGraceMs?: number;
  retryAfterSecs?: number;
};

export type ChildPool = {
  readonly maxProcesses: number;
  /** A process for one query. Rejects with `too_many_requests`, `unavailable`, or the signal's reason. */
  lease(signal: AbortSignal): Promise<QueryProcess>;
  /** Gives a process back, dead or alive. */
  release(process: QueryProcess): void;
  /** Tells how many processes large queries occupy: there is always one more, for the others. */
  expectLarge(count: number): void;
  /** Process ids, for tests and diagnostics. */
  pids(): number[];
  /** Processes with a query or starting, those without, and queries that wait for one. */
  state(): { busy: number; idle: number; waiting: number };
  close(): Promise<void>;
};

const GIB = 1024 ** 3;
const DEFAULT_SPILL_BYTES = 32 * GIB;
const DEFAULT_MAX_QUEUED = 256;
const DEFAULT_MAX_WAIT_MS = 10_000;
/** A process that holds more than this after a query makes room for a fresh one. */
const MAX_IDLE_RSS_BYTES = 768 * 1024 * 1024;
/** DuckDB looks for an interrupt after each chunk of rows: a few milliseconds, more where the processor is busy. */
const DEFAULT_CANCEL_GRACE_MS = 150;
const RESTART_DELAY = { firstMs: 500, mostMs: 30_000 } as const;
/** Starting one costs 300 ms of processor time: more than most large queries take. */
const DEFAULT_KEEP_SPARE_MS = 60_000;

export function createChildPool(options: ChildPoolOptions): ChildPool {
  return new Pool(options);
}

class Pool implements ChildPool {
  readonly maxProcesses: number;
  readonly #options: ChildPoolOptions;
  readonly #processOptions: ProcessOptions;
  readonly #all = new Set<QueryProcess>();
  readonly #idle: QueryProcess[] = [];
  /** Each with a key of its own. */
  readonly #waiters: WaitingLine<symbol, QueryProcess>;
  readonly #restarts = new Set<TimerHandle>();
  #wanted: number;
  #large = 0;
  #shrinking: TimerHandle | undefined;
  #failedStarts = 0;
  #closed = false;

  constructor(options: ChildPoolOptions) {
    this.#options = options;
    this.#waiters = new WaitingLine(options.clock);
    this.#wanted = Math.min(options.children, options.childrenAtFirst ?? options.children);
    this.maxProcesses = Math.max(options.children, options.maxChildren ?? 0);
    mkdirSync(options.tempDir, { recursive: true, mode: 0o700 });
    sweep(options.tempDir);
    const baseFolder = mkdtempSync(join(options.tempDir, `query-${process.pid}-`));
    ownFolders.add(baseFolder);
    this.#processOptions = {
      memoryBytes: options.memoryBytes,
      spillBytes: options.spillBytes ?? DEFAULT_SPILL_BYTES,
      log: options.log,
      clock: options.clock,
      confinement: options.confinement,
      readableFolders: options.readableFolders ?? [],
      systemTables: options.systemTables ?? [],
      baseFolder,
    };
    this.#fill();
  }

  pids(): number[] {
    return [...this.#all].flatMap((child) => child.pid ?? []);
  }

  state(): { busy: number; idle: number; waiting: number } {
    const idle = this.#idle.length;
    return { busy: this.#all.size - idle, idle, waiting: this.#waiters.size };
  }

  expectLarge(count: number): void {
    this.#large = count;
    const needed = this.#needed();
    if (needed >= this.#wanted) {
      this.#shrinking?.cancel();
      this.#shrinking = undefined;
      this.#wanted = needed;
      this.#fill();
      return;
    }
    const { clock, keepSpareMs = DEFAULT_KEEP_SPARE_MS } = this.#options;
    this.#shrinking ??= clock.after(keepSpareMs, () => this.#shrink(), { background: true });
  }

  #needed(): number {
    return Math.min(this.maxProcesses, Math.max(this.#options.children, this.#large + 1));
  }

  #shrink(): void {
    this.#shrinking = undefined;
    this.#wanted = this.#needed();
    while (this.#living() > this.#wanted) {
      const spare = this.#idle.shift();
      if (spare === undefined) return;
      this.#retire(spare, "the process is not needed any more");
    }
  }

  lease(signal: AbortSignal): Promise<QueryProcess> {
    if (signal.aborted) return Promise.reject(signal.reason as Error);
    if (this.#closed) return Promise.reject(new EngineError("unavailable", "the server is stopping"));
    if (this.#wanted < this.#options.children) {
      this.#wanted = this.#needed();
      this.#fill();
    }
    const free = this.#idle.pop();
    if (free !== undefined) return Promise.resolve(free);
    if (this.#waiters.size >= (this.#options.maxQueued ?? DEFAULT_MAX_QUEUED)) return Promise.reject(this.#busy());
    const { maxWaitMs = DEFAULT_MAX_WAIT_MS } = this.#options;
    return this.#waiters.wait(Symbol("query"), { signal, timeoutMs: maxWaitMs, onTimeout: () => this.#busy() });
  }

  release(child: QueryProcess): void {
    if (this.#closed || !child.alive) return;
    if (child.isCancelled) this.#recover(child);
    else if (child.rssBytes > MAX_IDLE_RSS_BYTES) this.#retire(child, "the process grew too large");
    else if (!child.restorePriority()) this.#retire(child, "the process cannot be made fast again");
    else if (this.#living() > this.#wanted) this.#retire(child, "the process is not needed any more");
    else this.#offer(child);
  }

  #recover(child: QueryProcess): void {
    const { cancelGraceMs = DEFAULT_CANCEL_GRACE_MS, log } = this.#options;
    child.recover(cancelGraceMs).then(
      (isReady) => isReady && this.release(child),
      (error: unknown) => log.error({ err: error }, "cannot take back a query process"),
    );
  }

  /** Those that were killed and are not gone yet left out. */
  #living(): number {
    return [...this.#all].filter(({ alive }) => alive).length;
  }

  #retire(child: QueryProcess, why: string): void {
    child.kill(new Error(why));
  }

  #fill(): void {
    while (!this.#closed && this.#living() + this.#restarts.size < this.#wanted) if (!this.#start()) return;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#shrinking?.cancel();
    for (const timer of this.#restarts) timer.cancel();
    const stopping = new EngineError("unavailable", "the server is stopping");
    for (const waiter of this.#waiters.keys()) this.#waiters.refuse(waiter, stopping);
    const children = [...this.#all];
    for (const child of children) child.kill(stopping);
    await Promise.all(children.map((child) => child.exited()));
    const { baseFolder } = this.#processOptions;
    rmSync(baseFolder, { recursive: true, force: true });
    ownFolders.delete(baseFolder);
  }

  #busy(): EngineError {
    const seconds = this.#options.retryAfterSecs ?? 1;
    return new EngineError("too_many_requests", "all query processes are busy; try again later", {
      headers: { "Retry-After": String(seconds) },
    });
  }

  #offer(child: QueryProcess): void {
    const waiter = this.#waiters.keys().next().value;
    if (waiter === undefined) this.#idle.push(child);
    else this.#waiters.serve(waiter, child);
  }

  /** False when the process could not even be started. */
  #start(): boolean {
    let child: QueryProcess;
    try {
      child = new QueryProcess(this.#processOptions);
    } catch (error) {
      this.#startFailed(error);
      return false;
    }
    this.#all.add(child);
    const ready = child.ready();
    ready.then(
      () => {
        this.#failedStarts = 0;
        if (child.alive && !this.#closed) this.#offer(child);
      },
      (error: unknown) => this.#startFailed(error),
    );
    const onError = (error: unknown): void => this.#options.log.error({ err: error }, "cannot replace a query process");
    child
      .ended()
      .then(async () => {
        const place = this.#idle.indexOf(child);
        if (place !== -1) this.#idle.splice(place, 1);
        // One that never became ready is replaced with a delay, by `#startFailed`.
        const started = await ready.then(
          () => true,
          () => false,
        );
        if (started) this.#fill();
      })
      .catch(onError);
    child
      .exited()
      .then(() => this.#all.delete(child))
      .catch(onError);
    return true;
  }

  #startFailed(error: unknown): void {
    if (this.#closed) return;
    const delayMs = fullBackoffMs(RESTART_DELAY, this.#failedStarts++);
    this.#options.log.error({ err: error, retryInMs: delayMs }, "a query process does not start");
    const failure = new EngineError("unavailable", `query processes do not start: ${messageOf(error)}`);
    if (this.#living() === 0) for (const waiter of this.#waiters.keys()) this.#waiters.refuse(waiter, failure);
    const timer = this.#options.clock.after(
      delayMs,
      () => {
        this.#restarts.delete(timer);
        this.#fill();
      },
      { background: true },
    );
    this.#restarts.add(timer);
  }
}

/** Folders of the pools of this process. In a container every server has the same process id as the one before it. */
const ownFolders = new Set<string>();

/** Deletes folders of servers that are gone: their name has the process id. */
function sweep(tempDir: string): void {
  for (const name of readdirSync(tempDir)) {
    const folder = join(tempDir, name);
    const pid = Number(/^query-(\d+)-/.exec(name)?.[1]);
    const stale = pid === process.pid ? !ownFolders.has(folder) : pid > 0 && !isRunning(pid);
    if (stale) rmSync(folder, { recursive: true, force: true });
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return systemCodeOf(error) !== "ESRCH";
  }
}
