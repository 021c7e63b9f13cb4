import { setTimeout as delay } from "node:timers/promises";
import type { ChaosClient } from "./chaos-client.ts";
import type { ChaosCluster } from "./chaos-cluster.ts";

const LOOK_MS = 250;
const RESTS: ReadonlySet<string> = new Set(["running", "paused", "stopped", "failed"]);

/** Looks how long sandboxes are on their way from one state to another while all of the cluster is up. */
export class SettleWatch {
  readonly #client: ChaosClient;
  readonly #cluster: ChaosCluster;
  readonly #moving = new Map<string, { state: string; sinceMs: number }>();
  readonly #stop = new AbortController();
  readonly #watching: Promise<void>;
  #longest = { ms: 0, what: "" };

  constructor(client: ChaosClient, cluster: ChaosCluster) {
    this.#client = client;
    this.#cluster = cluster;
    this.#watching = this.#watch();
    this.#watching.catch(() => undefined);
  }

  /** Resolves, when nothing is on its way or that takes too long, to the longest that was seen. */
  async settled(giveUpMs: number): Promise<{ ms: number; what: string }> {
    const giveUpAtMs = performance.now() + giveUpMs;
    while ((await this.#look()) > 0 && performance.now() < giveUpAtMs) await delay(LOOK_MS / 5);
    this.#stop.abort();
    await this.#watching;
    return this.#longest;
  }

  async #watch(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      await this.#look();
      await delay(LOOK_MS);
    }
  }

  /** Resolves to how many are on their way. */
  async #look(): Promise<number> {
    const states = await this.#client.list();
    const nowMs = performance.now();
    const upSinceMs = this.#cluster.upSinceMs;
    for (const [id, { state }] of this.#moving) if (states.get(id) !== state) this.#moving.delete(id);
    for (const [id, state] of states) {
      if (RESTS.has(state)) continue;
      const known = this.#moving.get(id) ?? { state, sinceMs: nowMs };
      this.#moving.set(id, known);
      const ms = Math.round(nowMs - Math.max(known.sinceMs, upSinceMs));
      if (ms > this.#longest.ms) this.#longest = { ms, what: `${id} ${state}` };
    }
    return this.#moving.size;
  }
}
