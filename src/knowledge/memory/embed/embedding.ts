import type { Clock } from "../../../core/clock.ts";
import type { Log } from "../../../core/log.ts";
import type { Random } from "../../../core/random.ts";
import type { RecordStore } from "../../../db/records.ts";
import type { MemoryMetrics } from "../metrics.ts";
import { maskSecrets } from "../secrets.ts";
import type { MemoryStore } from "../store.ts";
import { Embedder } from "./embedder.ts";
import { EMBED_LIMITS } from "./limits.ts";
import { EmbedFailure, type EmbedProvider } from "./provider.ts";
import { VectorStore } from "./vector-store.ts";
import { VectorWorker } from "./vector-worker.ts";

/** What computes vectors, or why nothing does. */
export type EmbedSetup = { provider: EmbedProvider } | { off: string };

/** The vectors of a database's memory, as this process sees them. */
export type EmbeddingState = {
  /**
   * - `off`: no model is configured, and recall goes by words and links.
   * - `behind`: some memories have no vector yet.
   * - `failing`: the same, and the provider gives none.
   */
  state: "off" | "ready" | "behind" | "failing";
  model: string | undefined;
  /** How many commits are embedded. */
  commits: number;
  /** Why it is off or failing. */
  reason: string | undefined;
};

export type EmbeddingDeps = {
  setup: EmbedSetup;
  records: RecordStore;
  store: MemoryStore;
  clock: Clock;
  random: Random;
  log: Log;
  metrics: MemoryMetrics;
  /** Whether writes wait for their vectors. */
  writesWait: boolean;
  /** Tells processes apart. */
  holder: string;
};

type Running = { embedder: Embedder; vectors: VectorStore; worker: VectorWorker; provider: EmbedProvider };

/**
 * The vectors of memories in one process: those of memories are computed behind the writes, those of questions when they
 * are asked. Nobody waits for a provider that fails: recall goes on by words and links. Without a model it does nothing.
 */
export class Embedding {
  readonly #deps: EmbeddingDeps;
  readonly #running: Running | undefined;
  readonly #abort = new AbortController();
  #hasWarned = false;
  #askAgainAtMs = 0;
  #questionsFail = false;

  constructor(deps: EmbeddingDeps) {
    this.#deps = deps;
    const { setup, records, holder } = deps;
    if ("off" in setup) return;
    const { provider } = setup;
    const embedder = new Embedder({ ...deps, provider });
    const vectors = new VectorStore(records, holder);
    this.#running = { embedder, vectors, provider, worker: new VectorWorker({ ...deps, embedder, vectors }) };
  }

  /** Whose vectors are compared; undefined when no model is configured. */
  get model(): string | undefined {
    return this.#running?.embedder.model;
  }

  /** Says that there are memories in these databases, maybe without vectors. */
  begin(databaseIds: readonly number[]): void {
    if (this.#running === undefined && databaseIds.length > 0) this.#warn();
    for (const databaseId of databaseIds) this.#running?.worker.wake(databaseId);
  }

  /** Says that a commit has changed the memory of a database. */
  noteCommit(databaseId: number): void {
    this.#running?.worker.wake(databaseId);
  }

  /** Resolves when a write that is durable may be acknowledged: at once, unless writes wait for their vectors. */
  async afterWrite(): Promise<void> {
    if (this.#deps.writesWait) await this.#running?.worker.settled(EMBED_LIMITS.writeMs);
  }

  /** The vector of a question; undefined when there is none in time. */
  async questionVector(query: string): Promise<Float32Array | undefined> {
    if (this.#running === undefined) {
      this.#warn();
      return undefined;
    }
    if (this.#deps.clock.monotonicMs() < this.#askAgainAtMs) return undefined;
    try {
      const vector = await this.#running.embedder.question(maskSecrets(query), this.#abort.signal);
      this.#questionsFail = false;
      return vector;
    } catch (error) {
      if (!(error instanceof EmbedFailure)) throw error;
      // One that is refused says nothing about others.
      if (error.kind !== "refused" && !this.#abort.signal.aborted) this.#noteOutage(error);
      return undefined;
    }
  }

  async stateOf(databaseId: number): Promise<EmbeddingState> {
    const { setup, store } = this.#deps;
    if (this.#running === undefined) {
      return { state: "off", model: undefined, commits: 0, reason: "off" in setup ? setup.off : undefined };
    }
    const { embedder, vectors, worker } = this.#running;
    const { model } = embedder;
    const [head, commits] = await Promise.all([store.head(databaseId), vectors.throughSeq({ databaseId, model })]);
    if (commits >= head.seq) return { state: "ready", model, commits, reason: undefined };
    const reason = worker.failure;
    return { state: reason === undefined ? "behind" : "failing", model, commits, reason };
  }

  async close(): Promise<void> {
    this.#abort.abort(new EmbedFailure("temporary", "this server is stopping"));
    await this.#running?.worker.close();
    await this.#running?.provider.close();
  }

  #noteOutage({ message: reason }: EmbedFailure): void {
    const { clock, log } = this.#deps;
    this.#askAgainAtMs = clock.monotonicMs() + EMBED_LIMITS.questionPauseMs;
    if (this.#questionsFail) log.debug({ reason }, "questions are still not embedded");
    else log.warn({ reason }, "questions are not embedded for now: recall goes by words and links");
    this.#questionsFail = true;
  }

  /** Once, and only where there is a memory to be found. */
  #warn(): void {
    const { setup, log } = this.#deps;
    if (this.#hasWarned || !("off" in setup)) return;
    this.#hasWarned = true;
    log.warn({ reason: setup.off }, "no memory is found by its meaning alone: recall goes by words and links");
  }
}
