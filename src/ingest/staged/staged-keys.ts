import type { Clock } from "../../core/clock.ts";
import { LIMITS } from "../../core/limits.ts";
import { asReplayOf, type IngestAck } from "../ingest.ts";

/** About 20 MB of keys; past it the oldest are forgotten, and the commit alone tells their retries. */
const MAX_KEYS = 100_000;

/** Keys that this node staged lately, with their acknowledgements: the ledger has them only after the commit. */
export class StagedKeys {
  readonly #clock: Clock;
  /** In the order of their acknowledgements; as replays. */
  readonly #acks = new Map<string, { ack: IngestAck; stagedAtMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  remember(tableId: number, key: string, ack: IngestAck): void {
    this.#acks.set(nameOf(tableId, key), { ack: asReplayOf(ack), stagedAtMs: this.#clock.nowMs() });
    const [oldest] = this.#acks.keys();
    if (this.#acks.size > MAX_KEYS && oldest !== undefined) this.#acks.delete(oldest);
  }

  /** The acknowledgement of then, as a replay. */
  replay(tableId: number, key: string): IngestAck | undefined {
    const name = nameOf(tableId, key);
    const known = this.#acks.get(name);
    if (known === undefined) return undefined;
    if (known.stagedAtMs > this.#clock.nowMs() - LIMITS.idempotencyTtlMs) return known.ack;
    this.#acks.delete(name);
    return undefined;
  }
}

function nameOf(tableId: number, key: string): string {
  return `${tableId} ${key}`;
}
