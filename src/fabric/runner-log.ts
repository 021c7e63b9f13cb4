import type { Clock, TimerHandle } from "../core/clock.ts";
import { messageOf } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import type { JobPort, LogLevel, LogLine } from "./handler.ts";
import { FABRIC_LIMITS } from "./limits.ts";
import { isPassing } from "./runner-failure.ts";
import type { HeldLease } from "./runner-lease.ts";

export type LogWriterOptions = { port: JobPort; lease: HeldLease; clock: Clock; log: Log };

/** Lines that come together are written together. */
const GATHER_MS = 250;
/** What failed is repeated after this long. */
const RETRY_MS = 2_000;
/** Lines of one job that wait in memory. */
const MOST_LINES = 1_000;

/**
 * The lines of one job, in order and in batches. While they come faster than they can be written, the newest are dropped,
 * and a line in their place says how many. A batch whose answer got lost may be written twice.
 */
export class JobLogWriter {
  readonly #options: LogWriterOptions;
  #lines: LogLine[] = [];
  #dropped = 0;
  #timer: TimerHandle | undefined;
  #writing: Promise<void> | undefined;
  #isFinished = false;

  constructor(options: LogWriterOptions) {
    this.#options = options;
  }

  add(level: LogLevel, message: string): void {
    if (this.#isFinished) return;
    if (this.#lines.length >= MOST_LINES) {
      this.#dropped++;
      return;
    }
    this.#sayWhatWasDropped();
    // What is cut later would only take memory until then.
    this.#lines.push({ level, message: message.slice(0, FABRIC_LIMITS.log.lineChars) });
    this.#writeIn(GATHER_MS);
  }

  /** Resolves when all lines are written, or never can be. Rejects when the lease is lost. */
  async finish(): Promise<void> {
    this.stop();
    await this.#writing;
    this.#sayWhatWasDropped();
    while (this.#lines.length > 0) await this.#writeBatch((write) => this.#options.lease.persist(write));
  }

  /** Writes nothing more by itself. */
  stop(): void {
    this.#isFinished = true;
    this.#timer?.cancel();
  }

  #sayWhatWasDropped(): void {
    if (this.#dropped === 0) return;
    this.#lines.push({ level: "warn", message: `${this.#dropped} lines were dropped: they came too fast` });
    this.#dropped = 0;
  }

  #writeIn(delayMs: number): void {
    if (this.#isFinished || this.#timer !== undefined || this.#writing !== undefined) return;
    this.#timer = this.#options.clock.after(delayMs, () => {
      this.#timer = undefined;
      this.#writing = this.#writeAll().then((delayMs) => {
        this.#writing = undefined;
        if (this.#lines.length > 0) this.#writeIn(delayMs);
      });
    });
  }

  /** How long to wait before the next time. */
  async #writeAll(): Promise<number> {
    try {
      while (this.#lines.length > 0 && !this.#isFinished) {
        await this.#writeBatch((write) => this.#options.lease.write(write));
      }
      return GATHER_MS;
    } catch {
      // The lease itself notices when the fabric is away.
      return RETRY_MS;
    }
  }

  async #writeBatch(send: (write: () => Promise<void>) => Promise<void>): Promise<void> {
    const { port, lease, log } = this.#options;
    const batch = this.#lines.slice(0, FABRIC_LIMITS.log.linesAtOnce);
    try {
      await send(() => port.log(lease.hold, batch));
    } catch (error) {
      if (lease.lost.aborted || isPassing(error)) throw error;
      const { jobId } = lease.hold;
      log.warn({ jobId, lines: batch.length, reason: messageOf(error) }, "lines of a job were refused");
    }
    this.#lines = this.#lines.slice(batch.length);
  }
}
