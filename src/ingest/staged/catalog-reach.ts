import type { Catalog } from "../../catalog/catalog.ts";
import { sleep, type Clock } from "../../core/clock.ts";
import { EngineError } from "../../core/errors.ts";
import type { Log } from "../../core/log.ts";

/** How long a question waits for its answer. */
const TIMEOUT_MS = 5_000;
/** For so long after a failure nobody waits for the catalog; then one question at a time does, until it is back. */
const PAUSE_MS = 1_000;

/**
 * The catalog, for a node that must go on without it: a question fails soon, with `unavailable`, when the catalog cannot
 * be reached, and at once when that was so a moment ago. Errors that are answers (`invalid_name`, …) pass as they are.
 */
export class CatalogReach {
  readonly #catalog: Catalog;
  readonly #clock: Clock;
  readonly #log: Log;
  #downUntilMs = 0;
  #isDown = false;
  #isProbing = false;

  constructor(ports: { catalog: Catalog; clock: Clock; log: Log }) {
    this.#catalog = ports.catalog;
    this.#clock = ports.clock;
    this.#log = ports.log;
  }

  async ask<T>(question: (catalog: Catalog) => Promise<T>): Promise<T> {
    if (this.#isDown && (this.#isProbing || this.#clock.monotonicMs() < this.#downUntilMs)) throw unavailable();
    this.#isProbing = this.#isDown;
    try {
      const answer = await this.#inTime(question(this.#catalog));
      this.#setDown(false);
      return answer;
    } catch (error) {
      if (error instanceof EngineError && error.code !== "unavailable") throw error;
      this.#setDown(true, error);
      throw unavailable(error);
    } finally {
      this.#isProbing = false;
    }
  }

  async #inTime<T>(answer: Promise<T>): Promise<T> {
    const timer = new AbortController();
    const late = sleep(this.#clock, TIMEOUT_MS, timer.signal).then(() => {
      throw new Error(`the catalog did not answer within ${TIMEOUT_MS} ms`);
    });
    // One of the two is not waited for in the end, and its failure is nobody's.
    late.catch(() => undefined);
    answer.catch(() => undefined);
    try {
      return await Promise.race([answer, late]);
    } finally {
      timer.abort();
    }
  }

  #setDown(isDown: boolean, reason?: unknown): void {
    if (isDown) this.#downUntilMs = this.#clock.monotonicMs() + PAUSE_MS;
    if (isDown === this.#isDown) return;
    this.#isDown = isDown;
    if (isDown) this.#log.warn({ err: reason }, "the catalog cannot be reached; known tables go on accepting writes");
    else this.#log.info("the catalog can be reached again");
  }
}

function unavailable(cause?: unknown): EngineError {
  return new EngineError("unavailable", "the catalog cannot be reached, and this request needs it", {
    headers: { "Retry-After": "1" },
    cause,
  });
}
