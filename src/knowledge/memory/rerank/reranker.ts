import { availableCores } from "../../../core/available-cores.ts";
import { Backoff } from "../../../core/backoff.ts";
import type { Clock } from "../../../core/clock.ts";
import { messageOf } from "../../../core/errors.ts";
import type { Random } from "../../../core/random.ts";
import { RERANK_LIMITS } from "./limits.ts";
import { RerankSession } from "./rerank-session.ts";
import type { RerankModel } from "./setup.ts";
import type { RerankState } from "./state.ts";

export type RerankerDeps = { model: RerankModel; clock: Clock; random: Random };

/**
 * - `busy`: no session was free in time, or none has loaded the model yet.
 * - `failed`: the model failed, or took too long.
 * - `paused`: it has failed lately, and was not asked.
 */
export type RerankOutcome = "reranked" | "busy" | "failed" | "paused";

/**
 * Rates texts by a question, within a bounded time: who gets no ratings goes on without. A model that fails is not asked
 * for a while; a session whose thread has ended is started again after that.
 */
export class Reranker {
  readonly #deps: RerankerDeps;
  readonly #sessions = new Set<RerankSession>();
  readonly #waiting = new Set<PromiseWithResolvers<RerankSession | undefined>>();
  readonly #backoff: Backoff;
  #failure: string | undefined;
  #askAgainAtMs = 0;
  #isClosed = false;

  constructor(deps: RerankerDeps) {
    this.#deps = deps;
    const growth = { firstMs: RERANK_LIMITS.pauseFirstMs, mostMs: RERANK_LIMITS.pauseMostMs };
    this.#backoff = new Backoff({ ...growth, random: deps.random });
  }

  get state(): RerankState {
    const { id: model } = this.#deps.model;
    if (this.#failure !== undefined) return { state: "failing", model, reason: this.#failure };
    const isLoaded = [...this.#sessions].some(({ state }) => state !== "loading");
    return { state: isLoaded ? "ready" : "loading", model, reason: undefined };
  }

  /** Loads the model, so that the first question need not go without. */
  start(): void {
    const { files, sessions } = this.#deps.model;
    if (this.#isClosed) return;
    // The runtime takes all cores unless told otherwise.
    const options = sessions === 1 ? {} : { intraOpNumThreads: Math.max(1, Math.floor(availableCores() / sessions)) };
    while (this.#sessions.size < sessions) {
      const onFree = (): void => this.#offer(session);
      const onGone = (reason: string | undefined): void => {
        this.#sessions.delete(session);
        if (reason !== undefined && !this.#isClosed) this.#noteFailure(reason);
      };
      const session: RerankSession = new RerankSession({ files, options }, { onFree, onGone });
      this.#sessions.add(session);
    }
  }

  /** How relevant each text is to the query, from 0 to 1; undefined when that is not known in time. */
  async relevances(
    query: string,
    texts: readonly string[],
  ): Promise<{ outcome: RerankOutcome; relevances?: readonly number[] }> {
    const { clock } = this.#deps;
    if (this.#isClosed || clock.monotonicMs() < this.#askAgainAtMs) return { outcome: "paused" };
    this.start();
    const session = await this.#free();
    if (session === undefined) return { outcome: "busy" };
    const late = new AbortController();
    const timer = clock.after(RERANK_LIMITS.runMs, () =>
      late.abort(new Error(`no answer within ${RERANK_LIMITS.runMs} ms`)),
    );
    try {
      const relevances = await session.relevances(query, texts, late.signal);
      this.#noteSuccess();
      return { outcome: "reranked", relevances };
    } catch (error) {
      this.#noteFailure(messageOf(error));
      return { outcome: "failed" };
    } finally {
      timer.cancel();
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const waiting of this.#waiting) waiting.resolve(undefined);
    await Promise.all([...this.#sessions].map(async (session) => await session.close()));
  }

  /** Reserves a session; undefined when none gets free in time. Waits only for those that are expected to. */
  async #free(): Promise<RerankSession | undefined> {
    const sessions = [...this.#sessions];
    const free = sessions.find((session) => session.reserve());
    if (free !== undefined || !sessions.some(({ state }) => state === "running")) return free;
    const waiting = Promise.withResolvers<RerankSession | undefined>();
    this.#waiting.add(waiting);
    const timer = this.#deps.clock.after(RERANK_LIMITS.waitMs, () => {
      this.#waiting.delete(waiting);
      waiting.resolve(undefined);
    });
    try {
      return await waiting.promise;
    } finally {
      timer.cancel();
    }
  }

  /** To the one who has waited longest. */
  #offer(session: RerankSession): void {
    const [first] = this.#waiting;
    if (first === undefined || !session.reserve()) return;
    this.#waiting.delete(first);
    first.resolve(session);
  }

  #noteSuccess(): void {
    this.#failure = undefined;
    this.#backoff.reset();
  }

  #noteFailure(reason: string): void {
    // Those that ran at the same time have failed with the same.
    const isKnown = this.#deps.clock.monotonicMs() < this.#askAgainAtMs;
    this.#failure = reason;
    if (!isKnown) this.#askAgainAtMs = this.#deps.clock.monotonicMs() + this.#backoff.next();
  }
}
