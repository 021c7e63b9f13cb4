import type { Clock, TimerHandle } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Log } from "../../core/log.ts";
import type { Exec } from "../runtime/runtime.ts";

/** A connection that broke is made again within that; then the reader was not lost. */
const GRACE_MS = 15_000;

type Watched = { exec: Exec; readers: number; timer: TimerHandle | undefined };

/** Kills commands that are to end with their last reader. */
export class Abandoned {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #watched = new Map<string, Watched>();

  constructor({ clock, log }: { clock: Clock; log: Log }) {
    this.#clock = clock;
    this.#log = log;
  }

  watch(exec: Exec): void {
    if (!this.#watched.has(exec.id)) this.#watched.set(exec.id, { exec, readers: 0, timer: undefined });
  }

  /** A reader has come; it calls what it gets when it leaves, and says whether it has seen the end. */
  enter(execId: string): (left: { isOver: boolean }) => void {
    const watched = this.#watched.get(execId);
    if (watched === undefined) return () => undefined;
    watched.readers++;
    watched.timer?.cancel();
    return ({ isOver }) => {
      watched.readers--;
      if (isOver) this.#watched.delete(execId);
      else if (watched.readers === 0) {
        watched.timer = this.#clock.after(GRACE_MS, () => this.#kill(watched.exec), { background: true });
      }
    };
  }

  #kill(exec: Exec): void {
    this.#watched.delete(exec.id);
    exec.kill("SIGKILL").catch((error: unknown) => {
      this.#log.warn({ execId: exec.id, reason: messageOf(error) }, "a command that nobody wants was not ended");
    });
  }
}
