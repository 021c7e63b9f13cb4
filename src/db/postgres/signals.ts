import { sleep, type Clock } from "../../core/clock.ts";
import { Listeners, type SignalListener, type Signals } from "../signals.ts";
import type { Connection, OnNotify } from "./connection.ts";
import type { Database } from "./database.ts";

const CHANNEL = "engine_signals";
const REOPEN_AFTER_MS = 1_000;

export type PostgresSignalsOptions = {
  database: Database;
  /** Opens a session beside those of the pools. */
  open: (onNotify: OnNotify) => Promise<Connection>;
  clock: Clock;
};

/**
 * Signals by NOTIFY. One session listens, from the first listener on; when it breaks another is opened, and all
 * listeners are told that they may have missed something. They are sent apart from the change they tell of: a
 * transaction that notifies holds a lock of the whole database while it commits.
 */
export class PostgresSignals implements Signals {
  readonly #options: PostgresSignalsOptions;
  readonly #listeners = new Listeners();
  readonly #stop = new AbortController();
  #listening: Promise<void> | undefined;

  constructor(options: PostgresSignalsOptions) {
    this.#options = options;
  }

  async send(topic: string, payload: string): Promise<void> {
    await this.#options.database.rows("SELECT pg_notify($1, $2)", [CHANNEL, `${topic} ${payload}`]);
  }

  listen(topic: string, listener: SignalListener): () => void {
    this.#listening ??= this.#listen();
    return this.#listeners.add(topic, listener);
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#listening;
  }

  async #listen(): Promise<void> {
    const { signal } = this.#stop;
    const aborted = new Promise<void>((resolve) => {
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    while (!signal.aborted) {
      const connection = await this.#open();
      if (connection !== undefined) {
        this.#listeners.tellAllOfALoss();
        await Promise.race([connection.closed, aborted]);
        if (!connection.isLost) await connection.close().catch(() => connection.destroy());
      }
      await sleep(this.#options.clock, REOPEN_AFTER_MS, signal).catch(() => undefined);
    }
  }

  /** Undefined while the server is away: calls of the pools say so to those who must know. */
  async #open(): Promise<Connection | undefined> {
    try {
      const connection = await this.#options.open((message) => this.#heard(message));
      await connection.script(`LISTEN ${CHANNEL}`);
      return connection;
    } catch {
      return undefined;
    }
  }

  #heard(message: string): void {
    const space = message.indexOf(" ");
    this.#listeners.tell(message.slice(0, space), message.slice(space + 1));
  }
}
