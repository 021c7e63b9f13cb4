import { sleep, type Clock, type TimerHandle } from "../core/clock.ts";
import { EngineError } from "../core/errors.ts";
import type { IdSource } from "../core/ids.ts";
import type { Log } from "../core/log.ts";
import type { Repository } from "./repository.ts";

/**
 * Who works in a destination now: a small file for each, written anew every so often.
 *
 * A backup relies on objects that it found there, and does not name them before its manifest, so nothing may be pruned
 * meanwhile. Each of the two writes its own mark first and looks for those of the other kind then: of a backup and a
 * prune that begin together, one at least sees the other. A prune that sees a backup leaves the objects alone, a backup
 * that sees a prune waits.
 *
 * The mark of a process that died goes stale. A process that stood still for as long must not go on as if nothing had
 * happened: it looks whether its mark is still there (`isHeld`), for whoever finds a stale one deletes it.
 */
export type MarkPorts = { clock: Clock; newId: IdSource; log: Log };

const RENEW_MS = 30_000;
/** By the clock of the store alone: a mark is stale when it is so much older than one that was written just now. */
const STALE_MS = 10 * 60_000;
const POLL_MS = 1_000;
const WAIT_MS = 15 * 60_000;

export type MarkKind = "running" | "pruning";

export class Mark {
  readonly #repository: Repository;
  readonly #ports: MarkPorts;
  readonly #kind: MarkKind;
  readonly #name: string;
  #timer: TimerHandle | undefined;
  #renewing: Promise<void> = Promise.resolve();
  #isEnded = false;

  private constructor(repository: Repository, kind: MarkKind, ports: MarkPorts) {
    this.#repository = repository;
    this.#ports = ports;
    this.#kind = kind;
    this.#name = `${kind}/${ports.newId()}`;
  }

  static async set(repository: Repository, kind: MarkKind, ports: MarkPorts): Promise<Mark> {
    const mark = new Mark(repository, kind, ports);
    await mark.#write();
    mark.#schedule();
    return mark;
  }

  /** Whether somebody of the other kind works here. Forgets those that are stale. */
  async seesOther(): Promise<boolean> {
    const other: MarkKind = this.#kind === "running" ? "pruning" : "running";
    const now = await this.#modifiedAtMs();
    const stale: string[] = [];
    let isSeen = false;
    for await (const { name, modifiedAtMs } of this.#repository.names(other)) {
      if (now - modifiedAtMs > STALE_MS) stale.push(name);
      else isSeen = true;
    }
    await this.#repository.delete(stale);
    return isSeen;
  }

  /** Resolves when nobody of the other kind works here. Throws `unavailable` when that takes too long. */
  async waitForOthers(signal?: AbortSignal): Promise<void> {
    const deadlineMs = this.#ports.clock.monotonicMs() + WAIT_MS;
    while (await this.seesOther()) {
      signal?.throwIfAborted();
      if (this.#ports.clock.monotonicMs() > deadlineMs) {
        throw new EngineError("unavailable", "another process prunes this destination for too long: try again");
      }
      await sleep(this.#ports.clock, POLL_MS, signal);
    }
  }

  /** Throws `unavailable` when somebody has taken the mark away, believing this process dead. */
  async check(): Promise<void> {
    if ((await this.#repository.store.head(this.#repository.keyOf(this.#name))) !== undefined) return;
    throw new EngineError(
      "unavailable",
      "this process stood still for too long, and the destination was pruned: try again",
    );
  }

  async end(): Promise<void> {
    this.#isEnded = true;
    this.#timer?.cancel();
    await this.#renewing;
    await this.#repository.delete([this.#name]);
  }

  async #write(): Promise<void> {
    await this.#repository.put(this.#name, "\n");
  }

  async #modifiedAtMs(): Promise<number> {
    await this.check();
    await this.#write();
    const info = await this.#repository.store.head(this.#repository.keyOf(this.#name));
    return info?.modifiedAtMs ?? 0;
  }

  #schedule(): void {
    this.#timer = this.#ports.clock.after(RENEW_MS, () => void (this.#renewing = this.#renew()), { background: true });
  }

  async #renew(): Promise<void> {
    try {
      // One that was taken away must not come back.
      await this.check();
      await this.#write();
      if (!this.#isEnded) this.#schedule();
    } catch (error) {
      this.#ports.log.warn({ err: error, mark: this.#name }, "the mark of a backup could not be renewed");
      if (!this.#isEnded && !(error instanceof EngineError && error.code === "unavailable")) this.#schedule();
    }
  }
}
