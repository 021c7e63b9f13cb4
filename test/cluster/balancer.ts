import { setTimeout as delay } from "node:timers/promises";
import { systemClock } from "../../src/core/clock.ts";
import { answers } from "../../src/deploy/local/probe.ts";

const POLL_MS = 200;

/** Chooses among servers as a load balancer does: each in turn, of those whose `/health` said yes when last asked. */
export class Balancer {
  readonly #urls: readonly string[];
  readonly #healthy = new Set<string>();
  readonly #stop = new AbortController();
  #polling: Promise<unknown> = Promise.resolve();
  #turn = 0;

  constructor(urls: readonly string[]) {
    this.#urls = urls;
  }

  /** Resolves when each was asked once. */
  async start(): Promise<void> {
    await Promise.all(this.#urls.map((url) => this.#ask(url)));
    this.#polling = Promise.all(this.#urls.map((url) => this.#poll(url)));
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#polling;
  }

  /** Throws when there is none. */
  next(): string {
    const usable = this.#urls.filter((url) => this.#healthy.has(url));
    const url = usable[this.#turn++ % usable.length];
    if (url === undefined) throw new Error("no server is healthy");
    return url;
  }

  isHealthy(url: string): boolean {
    return this.#healthy.has(url);
  }

  async #poll(url: string): Promise<void> {
    while (!this.#stop.signal.aborted) {
      await delay(POLL_MS);
      await this.#ask(url);
    }
  }

  async #ask(url: string): Promise<void> {
    if (await answers(`${url}/health`, systemClock)) this.#healthy.add(url);
    else this.#healthy.delete(url);
  }
}
