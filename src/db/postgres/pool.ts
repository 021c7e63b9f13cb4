import { backoffMs } from "../../core/backoff.ts";
import { sleep, type Clock, type TimerHandle } from "../../core/clock.ts";
import { EngineError } from "../../core/errors.ts";
import type { Metrics } from "../../core/metrics.ts";
import type { Random } from "../../core/random.ts";
import type { Connection } from "./connection.ts";
import { isRefusal, NotPrimary, unavailable } from "./errors.ts";

export type PoolOptions = {
  open: () => Promise<Connection>;
  maxConnections: number;
  /** How long a call waits for a connection, be they all in use or the server away. */
  acquireTimeoutMs: number;
  clock: Clock;
  random: Random;
  /** Absent: nobody reads them. Under `name` the pool is told from another one of this node. */
  metrics?: Metrics | undefined;
  name: "read" | "write" | "all";
};

/** Between two attempts to reach a server that is away. */
const RECONNECT = { firstMs: 50, mostMs: 1_000 } as const;

/** What a waiter is given: a connection, or the place of one, to open it itself. */
type Grant = Connection | undefined;
type Waiter = { settle: PromiseWithResolvers<Grant>; timer: TimerHandle };

/**
 * At most so many sessions with the server, lent one call at a time; who waits is served in order. A session that broke
 * is dropped and its place given to the next, which opens another: so a server that comes back is found by whoever
 * still waits.
 */
export class Pool {
  readonly #options: PoolOptions;
  readonly #idle: Connection[] = [];
  readonly #waiters: Waiter[] = [];
  /** Sessions that there are, and those being opened. */
  #places = 0;
  #onEmpty: (() => void) | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: PoolOptions) {
    this.#options = options;
    const { metrics, name, maxConnections } = options;
    const idle = () => this.#idle.filter(({ isLost }) => !isLost).length;
    metrics?.catalogConnections.watch({ pool: name, state: "idle" }, idle);
    metrics?.catalogConnections.watch({ pool: name, state: "busy" }, () => this.#places - this.#idle.length);
    metrics?.catalogConnectionsLimit.watch({ pool: name }, () => maxConnections);
    metrics?.catalogWaiting.watch({ pool: name }, () => this.#waiters.length);
  }

  /**
   * Runs the work on a connection that is its own meanwhile. Rejects with `unavailable` when there is none in time, else
   * as the work does. A connection on which it takes longer than `limitMs` is broken: the server may be gone without a
   * word.
   */
  async run<T>(work: (connection: Connection) => Promise<T>, limitMs?: number): Promise<T> {
    const { clock, metrics, name: pool } = this.#options;
    const connection = await this.#timed("catalogWait", () => this.#acquire());
    const limit = () => connection.destroy();
    const timer = limitMs === undefined ? undefined : clock.after(limitMs, limit, { background: true });
    try {
      return await this.#timed("catalogCall", () => work(connection));
    } finally {
      timer?.cancel();
      if (connection.isLost) metrics?.catalogFailures.inc({ pool, kind: "lost" });
      this.#release(connection);
    }
  }

  async #timed<T>(as: "catalogWait" | "catalogCall", work: () => Promise<T>): Promise<T> {
    const { clock, metrics, name: pool } = this.#options;
    const startedMs = clock.monotonicMs();
    try {
      return await work();
    } finally {
      metrics?.[as].observe({ pool }, (clock.monotonicMs() - startedMs) / 1000);
    }
  }

  /** Ends all sessions; those that are lent when they come back. Resolves when all have. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    for (const { settle, timer } of this.#waiters.splice(0)) {
      timer.cancel();
      settle.reject(closedError());
    }
    await Promise.all(this.#idle.splice(0).map((connection) => this.#end(connection)));
    if (this.#places > 0) await new Promise<void>((resolve) => (this.#onEmpty = resolve));
  }

  async #acquire(): Promise<Connection> {
    if (this.#closed !== undefined) throw closedError();
    const { clock, acquireTimeoutMs, maxConnections } = this.#options;
    const deadlineMs = clock.monotonicMs() + acquireTimeoutMs;
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
      if (!idle.isLost) return idle;
      this.#places--;
    }
    if (this.#places < maxConnections) this.#places++;
    else {
      const granted = await this.#wait(acquireTimeoutMs);
      if (granted !== undefined) return granted;
    }
    return await this.#open(deadlineMs);
  }

  #wait(timeoutMs: number): Promise<Grant> {
    const settle = Promise.withResolvers<Grant>();
    const timer = this.#options.clock.after(timeoutMs, () => {
      this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
      this.#options.metrics?.catalogFailures.inc({ pool: this.#options.name, kind: "timeout" });
      const places = `all ${this.#options.maxConnections} connections of this node are in use`;
      settle.reject(unavailable(`${places}, and none became free within ${timeoutMs} ms`));
    });
    const waiter: Waiter = { settle, timer };
    this.#waiters.push(waiter);
    return settle.promise;
  }

  /** Opens a session for a place that is the caller's, trying until the deadline. */
  async #open(deadlineMs: number): Promise<Connection> {
    const { clock, random, open, metrics, name: pool } = this.#options;
    for (let failures = 0; ; failures++) {
      try {
        const connection = await open();
        if (this.#closed === undefined) return connection;
        await connection.close();
        throw closedError();
      } catch (error) {
        metrics?.catalogFailures.inc({ pool, kind: "connect" });
        const waitMs = backoffMs(RECONNECT, failures, random);
        const isLate = clock.monotonicMs() + waitMs > deadlineMs;
        if (isLate || this.#closed !== undefined || isRefusal(error) || error instanceof NotPrimary) {
          this.#vacate();
          if (isLate) metrics?.catalogFailures.inc({ pool, kind: "timeout" });
          throw error instanceof EngineError ? error : unavailable(error);
        }
        await sleep(clock, waitMs);
      }
    }
  }

  #release(connection: Connection): void {
    if (connection.isLost) this.#vacate();
    else if (this.#closed !== undefined) void this.#end(connection);
    else if (!this.#grant(connection)) this.#idle.push(connection);
  }

  /** Gives up a place; the first who waits may have it. */
  #vacate(): void {
    if (this.#grant(undefined)) return;
    this.#places--;
    if (this.#places === 0) this.#onEmpty?.();
  }

  #grant(granted: Grant): boolean {
    const waiter = this.#waiters.shift();
    waiter?.timer.cancel();
    waiter?.settle.resolve(granted);
    return waiter !== undefined;
  }

  async #end(connection: Connection): Promise<void> {
    await connection.close().catch(() => connection.destroy());
    this.#vacate();
  }
}

function closedError(): EngineError {
  return new EngineError("unavailable", "the catalog is closed");
}
