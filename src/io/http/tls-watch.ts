import { messageOf } from "../../core/errors.ts";
import type { Clock } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import { readChangedTlsPair, type TlsPair } from "./tls.ts";

/** Two small files are read so often: it sees every way in which they can change, on every file system. */
export const TLS_POLL_MS = 5_000;

export type TlsWatchOptions = {
  clock: Clock;
  log: Log;
  /** What is served at first. */
  pair: TlsPair;
  /** Serves a new pair from here on; may throw, and the one before goes on. */
  use: (pair: TlsPair) => void;
};

/**
 * Has a server take a certificate that was renewed. Files that cannot be used, or are half written, change nothing: the
 * log says why, once for each reason, and they are looked at again.
 */
export class TlsWatch {
  readonly #options: TlsWatchOptions;
  #pair: TlsPair;
  #complaint = "";
  #stop: () => void;
  #looking: Promise<void> = Promise.resolve();

  constructor(options: TlsWatchOptions) {
    this.#options = options;
    this.#pair = options.pair;
    const timer = options.clock.every(TLS_POLL_MS, () => {
      this.#looking = this.#looking.then(() => this.#look());
    });
    this.#stop = () => timer.cancel();
  }

  /** Resolves when the files are not being read any more. */
  async stop(): Promise<void> {
    this.#stop();
    await this.#looking;
  }

  async #look(): Promise<void> {
    const { log, use } = this.#options;
    const { certPath } = this.#pair.files;
    try {
      const pair = await readChangedTlsPair(this.#pair);
      if (pair !== undefined) {
        use(pair);
        this.#pair = pair;
        log.info({ certPath, expiresAt: new Date(pair.expiresAtMs).toISOString() }, "the TLS certificate is renewed");
      }
      this.#complaint = "";
    } catch (error) {
      const complaint = messageOf(error);
      if (complaint === this.#complaint) return;
      this.#complaint = complaint;
      log.warn(
        { certPath, reason: complaint },
        "the new TLS certificate cannot be used; the one before is still served",
      );
    }
  }
}
