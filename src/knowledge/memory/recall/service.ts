import type { Catalog } from "../../../catalog/catalog.ts";
import { pause, type Clock } from "../../../core/clock.ts";
import type { Log } from "../../../core/log.ts";
import type { Embedding, EmbeddingState } from "../embed/embedding.ts";
import { EMBED_LIMITS } from "../embed/limits.ts";
import type { MemoryMetrics } from "../metrics.ts";
import { checkRealm } from "../realms.ts";
import type { MemoryScope } from "../service.ts";
import type { RerankState } from "../rerank/state.ts";
import type { MemoryStore } from "../store.ts";
import type { Question } from "./question.ts";
import type { RecallClient } from "./recall-client.ts";
import type { IndexState } from "./recall-protocol.ts";

export type RecallServiceDeps = {
  catalog: Pick<Catalog, "databases">;
  store: Pick<MemoryStore, "databases">;
  client: RecallClient;
  embedding: Embedding;
  clock: Clock;
  log: Log;
  metrics: MemoryMetrics;
};

/**
 * Finds memories, for routes, tools and agents alike. Indexes are on a thread of their own. It starts with the process
 * where some database has a memory, and builds the indexes, so that the first question need not wait; where none has, it
 * starts with the first question: who never remembers anything has no thread, no connection and no index, and a single
 * statement when the server starts.
 */
export class RecallService {
  readonly #deps: RecallServiceDeps;
  readonly #closing = new AbortController();

  constructor(deps: RecallServiceDeps) {
    this.#deps = deps;
    const { client, metrics } = deps;
    metrics.recallsWaiting.watch({}, () => client.waiting);
    metrics.indexBytes.watch({}, () => client.indexBytes);
  }

  /**
   * The answer as JSON: a `RecallAnswer`. It rests on every change that was acknowledged before. Throws `forbidden` for
   * the realms of others, `unavailable` while the index is being built, `too_many_requests`.
   */
  async recall({ databaseId, rights }: MemoryScope, question: Question): Promise<string> {
    for (const realm of question.realms) checkRealm(rights, realm);
    const { client, clock, embedding, metrics } = this.#deps;
    const startedMs = clock.monotonicMs();
    try {
      const vector = await embedding.questionVector(question.query);
      const { json, reranking } = await client.recall(databaseId, { question, rights, vector });
      if (reranking !== undefined) metrics.reranks.inc({ outcome: reranking });
      return json;
    } finally {
      metrics.recallDuration.observe((clock.monotonicMs() - startedMs) / 1_000);
    }
  }

  /** The index of a database in this process. */
  async indexOf({ databaseId }: MemoryScope): Promise<IndexState> {
    return await this.#deps.client.stateOf(databaseId);
  }

  /** How far the memory of a database is embedded. */
  async embeddingOf({ databaseId }: MemoryScope): Promise<EmbeddingState> {
    return await this.#deps.embedding.stateOf(databaseId);
  }

  /** What reranks in this process. */
  get reranking(): RerankState {
    return this.#deps.client.rerankState;
  }

  /** Builds the indexes that questions will need; without it the first question about a database does. */
  async prepare(): Promise<void> {
    const { client, clock, embedding, log } = this.#deps;
    const startedMs = clock.monotonicMs();
    try {
      const databaseIds = await this.#remembered();
      if (databaseIds.length === 0 || this.#isClosed) return;
      embedding.begin(databaseIds);
      await client.prepare(databaseIds);
      const durationMs = Math.round(clock.monotonicMs() - startedMs);
      const sizeBytes = client.indexBytes;
      log.info({ databases: databaseIds.length, sizeBytes, durationMs }, "memory indexes built");
    } catch (error) {
      if (!this.#isClosed) log.warn({ err: error }, "memory indexes not built: the first questions will wait for them");
    }
  }

  /**
   * Embeds what other processes save, which have no model or end before they have used it, for as long as this one runs.
   * Does nothing where no model is configured.
   */
  async followSaves(): Promise<void> {
    const { clock, embedding, log } = this.#deps;
    const { signal } = this.#closing;
    if (embedding.model === undefined) return;
    let isFailing = false;
    for (;;) {
      await pause(clock, EMBED_LIMITS.lookMs, signal);
      if (signal.aborted) return;
      try {
        embedding.begin(await this.#remembered());
        isFailing = false;
      } catch (error) {
        if (!isFailing && !this.#isClosed)
          log.warn({ err: error }, "cannot look for memories without a vector for now");
        isFailing = true;
      }
    }
  }

  /** The databases that have a memory. */
  async #remembered(): Promise<number[]> {
    const { catalog, store } = this.#deps;
    const remembered = await store.databases();
    if (remembered.length === 0) return [];
    const existing = new Set((await catalog.databases()).map(({ id }) => id));
    return remembered.filter((id) => existing.has(id));
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error("this server is stopping"));
    await this.#deps.embedding.close();
    await this.#deps.client.close();
  }
}
