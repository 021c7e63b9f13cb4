import type { Clock } from "../core/clock.ts";
import type { Signals } from "../db/signals.ts";
import type { FlushCommit, FlushOutcome } from "./catalog.ts";

const LIST = /^[0-9]+( [0-9]+)*$/;
const TOPIC = "catalog_commits";

/** Of so many tables each is named; a signal about more says that it may be any. */
const MOST_NAMED = 256;

/**
 * Tells the nodes that share the catalog which tables got rows. Best effort, as all signals: whoever listens also looks at
 * the head now and then. At most one signal is under way, and the next is sent `gapMs` after it at the earliest, so that a
 * node that commits all the time sends no signal for each commit.
 */
export class CommitSignals {
  readonly #signals: Signals;
  readonly #clock: Clock;
  readonly #gapMs: number;
  #tables = new Set<number>();
  #isSending = false;

  constructor(signals: Signals, clock: Clock, gapMs: number) {
    this.#signals = signals;
    this.#clock = clock;
    this.#gapMs = gapMs;
  }

  /** What became of flushes that were committed together. */
  committed(flushes: readonly FlushCommit[], outcomes: readonly FlushOutcome[]): void {
    for (const [i, { tableId }] of flushes.entries()) {
      if (outcomes[i]?.kind === "committed") this.#tables.add(tableId);
    }
    if (this.#tables.size > 0 && !this.#isSending) void this.#send();
  }

  async #send(): Promise<void> {
    this.#isSending = true;
    const tables = [...this.#tables];
    this.#tables.clear();
    // A signal that is lost costs those who wait for it the time until they look.
    await this.#signals.send(TOPIC, tables.length > MOST_NAMED ? "" : tables.join(" ")).catch(() => undefined);
    if (this.#gapMs === 0) this.#sendNext();
    else this.#clock.after(this.#gapMs, () => this.#sendNext(), { background: true });
  }

  #sendNext(): void {
    this.#isSending = false;
    if (this.#tables.size > 0) void this.#send();
  }
}

/** Calls the listener with the ids of tables that got rows, or with undefined when any may have; until it is stopped. */
export function onCommits(
  signals: Pick<Signals, "listen">,
  listener: (tableIds: ReadonlySet<number> | undefined) => void,
): () => void {
  return signals.listen(TOPIC, (payload) => {
    // What a newer version says in another way names no tables: look at all of them.
    const isList = payload !== undefined && LIST.test(payload);
    listener(isList ? new Set(payload.split(" ").map(Number)) : undefined);
  });
}
