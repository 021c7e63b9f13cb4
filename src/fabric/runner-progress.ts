import type { Clock, TimerHandle } from "../core/clock.ts";
import { messageOf } from "../core/errors.ts";
import type { JobPort } from "./handler.ts";
import { checkJson, isPassing } from "./runner-failure.ts";
import type { HeldLease } from "./runner-lease.ts";

export type ProgressOptions = {
  port: JobPort;
  lease: HeldLease;
  clock: Clock;
  onCancelRequested: () => void;
  /** A snapshot cannot be stored, and never could; said once. */
  onRefused: (reason: string) => void;
};

const EVERY_MS = 1_000;

/** What a handler says of how far it is, thinned: the newest is written, at most once a second. */
export class ProgressWriter {
  readonly #options: ProgressOptions;
  #next: { snapshot: unknown } | undefined;
  #timer: TimerHandle | undefined;
  #writing: Promise<void> | undefined;
  #writtenAtMs = -Infinity;
  #hasRefused = false;
  #isFinished = false;

  constructor(options: ProgressOptions) {
    this.#options = options;
  }

  set(snapshot: unknown): void {
    if (this.#isFinished) return;
    this.#next = { snapshot };
    this.#writeSoon();
  }

  /** Resolves when the last one is written, or never can be. Rejects when the lease is lost. */
  async finish(): Promise<void> {
    this.stop();
    await this.#writing;
    const last = this.#next;
    this.#next = undefined;
    if (last !== undefined) await this.#write(last.snapshot, (write) => this.#options.lease.persist(write));
  }

  /** Writes nothing more by itself. */
  stop(): void {
    this.#isFinished = true;
    this.#timer?.cancel();
  }

  #writeSoon(): void {
    if (this.#isFinished || this.#timer !== undefined || this.#writing !== undefined) return;
    const { clock } = this.#options;
    const inMs = Math.max(0, this.#writtenAtMs + EVERY_MS - clock.monotonicMs());
    this.#timer = clock.after(inMs, () => {
      this.#timer = undefined;
      this.#writing = this.#writeNext().finally(() => {
        this.#writing = undefined;
        if (this.#next !== undefined) this.#writeSoon();
      });
    });
  }

  async #writeNext(): Promise<void> {
    const next = this.#next;
    if (next === undefined) return;
    this.#next = undefined;
    this.#writtenAtMs = this.#options.clock.monotonicMs();
    try {
      await this.#write(next.snapshot, (write) => this.#options.lease.write(write));
    } catch {
      // The next turn brings it, or one that is newer; the lease itself notices when the fabric is away.
      this.#next ??= next;
    }
  }

  async #write(snapshot: unknown, send: (write: () => Promise<void>) => Promise<void>): Promise<void> {
    const { port, lease, onCancelRequested } = this.#options;
    try {
      checkJson(snapshot, "the progress");
      await send(async () => {
        const { cancelRequested } = await port.progress(lease.hold, snapshot);
        if (cancelRequested) onCancelRequested();
      });
    } catch (error) {
      if (lease.lost.aborted || isPassing(error)) throw error;
      this.#refuse(messageOf(error));
    }
  }

  #refuse(reason: string): void {
    if (this.#hasRefused) return;
    this.#hasRefused = true;
    this.#options.onRefused(reason);
  }
}
