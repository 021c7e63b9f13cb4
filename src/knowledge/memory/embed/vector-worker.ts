import { Backoff } from "../../../core/backoff.ts";
import { nextTurn, pause, type Clock } from "../../../core/clock.ts";
import { messageOf } from "../../../core/errors.ts";
import type { Log } from "../../../core/log.ts";
import type { Random } from "../../../core/random.ts";
import type { MemoryMetrics } from "../metrics.ts";
import type { MemoryStore } from "../store.ts";
import type { Embedder } from "./embedder.ts";
import { EMBED_LIMITS } from "./limits.ts";
import { EmbedFailure } from "./provider.ts";
import type { EmbeddedNode, NodeCursor, VectorPlace, VectorStore } from "./vector-store.ts";

export type VectorWorkerDeps = {
  embedder: Embedder;
  vectors: VectorStore;
  store: Pick<MemoryStore, "head">;
  clock: Clock;
  random: Random;
  log: Log;
  metrics: MemoryMetrics;
};

/** A text that every model embeds: tells whether a provider refuses a text, or everything. */
const PROBE = "memory";

/**
 * Computes the vectors that are missing, behind the writes: one database after the other, in the order of commits. How far
 * it is, is in the catalog, so it goes on there after a restart. While the provider fails it tries again, less and less
 * often. Without work it has no timer.
 */
export class VectorWorker {
  readonly #deps: VectorWorkerDeps;
  readonly #waiting = new Set<number>();
  readonly #abort = new AbortController();
  readonly #backoff: Backoff;
  #running: Promise<void> | undefined;
  #failure: string | undefined;
  /** Resolves when it does not get on. */
  #stuck = Promise.withResolvers<void>();

  constructor(deps: VectorWorkerDeps) {
    this.#deps = deps;
    const growth = { firstMs: EMBED_LIMITS.pauseFirstMs, mostMs: EMBED_LIMITS.pauseMostMs };
    this.#backoff = new Backoff({ ...growth, random: deps.random });
  }

  /** Why it does not get on; undefined when it does. */
  get failure(): string | undefined {
    return this.#failure;
  }

  /** Says that the memory of a database may have nodes without a vector. */
  wake(databaseId: number): void {
    if (this.#abort.signal.aborted) return;
    this.#waiting.add(databaseId);
    this.#running ??= this.#work();
  }

  /** Resolves when there is nothing more to do, when it does not get on, and after a while. */
  async settled(limitMs: number): Promise<void> {
    const late = Promise.withResolvers<void>();
    const timer = this.#deps.clock.after(limitMs, () => late.resolve());
    await Promise.race([this.#running, this.#stuck.promise, late.promise]);
    timer.cancel();
  }

  async close(): Promise<void> {
    this.#abort.abort(new Error("this server is stopping"));
    await this.#running;
  }

  async #work(): Promise<void> {
    const { signal } = this.#abort;
    // Those that come meanwhile, and those that come again, are at the end of the set.
    for (const databaseId of this.#waiting) {
      this.#waiting.delete(databaseId);
      const pauseMs = await this.#catchUp(databaseId);
      if (signal.aborted) break;
      if (pauseMs === 0) continue;
      this.#waiting.add(databaseId);
      await pause(this.#deps.clock, pauseMs, signal);
    }
    // In the turn in which the set was found empty: nobody can have added to it.
    this.#running = undefined;
  }

  /** Resolves to how long to wait before it is tried again; 0 when all is done. */
  async #catchUp(databaseId: number): Promise<number> {
    const place = { databaseId, model: this.#deps.embedder.model };
    try {
      const isDone = await this.#embedMissing(place);
      this.#noteSuccess();
      return isDone ? 0 : EMBED_LIMITS.heldRetryMs;
    } catch (error) {
      if (this.#abort.signal.aborted) return 0;
      const pauseMs = this.#backoff.next();
      this.#noteFailure(error, pauseMs);
      return pauseMs;
    }
  }

  /** False when another process is at it. */
  async #embedMissing(place: VectorPlace): Promise<boolean> {
    const { store, vectors, embedder } = this.#deps;
    const { databaseId } = place;
    const head = await store.head(databaseId);
    if ((await vectors.throughSeq(place)) >= head.seq) return true;
    const held = await vectors.hold(place);
    if (held === undefined) return false;
    try {
      embedder.expect(await vectors.dimensions(place));
      return await this.#embedThrough(place, held.throughSeq, head.seq);
    } finally {
      await vectors.release(place);
    }
  }

  async #embedThrough(place: VectorPlace, afterSeq: number, throughSeq: number): Promise<boolean> {
    const { vectors } = this.#deps;
    for (let cursor: NodeCursor = { seq: afterSeq + 1, id: "" }; ;) {
      // SQLite reads on this thread: others have their turn between pages.
      await nextTurn();
      const nodes = await vectors.nodes(place.databaseId, cursor, throughSeq);
      for (const batch of batchesOf(await vectors.withoutVector(place, nodes))) {
        if (!(await this.#embed(place, batch))) return false;
      }
      const last = nodes.at(-1);
      const isEnd = nodes.length < EMBED_LIMITS.pageNodes || last === undefined;
      // The last commit of a page may go on in the next one.
      if (!(await vectors.advance(place, isEnd ? throughSeq : last.seq - 1))) return false;
      if (isEnd) return true;
      cursor = last;
    }
  }

  /**
   * Embeds nodes and stores their vectors. False when another process holds them. When they are refused each is tried
   * alone, and once more after another text was taken (`isLast`): then it is that node's text that is refused.
   */
  async #embed(place: VectorPlace, nodes: readonly EmbeddedNode[], isLast = false): Promise<boolean> {
    const { embedder, vectors, metrics } = this.#deps;
    const { signal } = this.#abort;
    try {
      const answers = await embedder.documents(
        nodes.map(({ text }) => text),
        signal,
      );
      const computed = nodes.flatMap((node, i) => {
        const vector = answers[i];
        return vector === undefined ? [] : [{ node, vector }];
      });
      const isStored = await vectors.store(place, computed);
      if (isStored) metrics.embeddings.inc({ outcome: "stored" }, computed.length);
      return isStored;
    } catch (error) {
      if (!(error instanceof EmbedFailure) || error.kind !== "refused") throw error;
      if (nodes.length > 1) return await this.#embedEach(place, nodes);
      if (isLast) return this.#passOver(error);
      await embedder.documents([PROBE], signal);
      return await this.#embed(place, nodes, true);
    }
  }

  async #embedEach(place: VectorPlace, nodes: readonly EmbeddedNode[]): Promise<boolean> {
    for (const node of nodes) if (!(await this.#embed(place, [node]))) return false;
    return true;
  }

  /** A text that the provider does not take has no vector, and is found by its words. */
  #passOver(refusal: EmbedFailure): true {
    const { log, metrics } = this.#deps;
    metrics.embeddings.inc({ outcome: "refused" });
    log.debug({ reason: refusal.message }, "the embedding provider refused a text");
    return true;
  }

  #noteSuccess(): void {
    this.#backoff.reset();
    if (this.#failure === undefined) return;
    this.#failure = undefined;
    this.#stuck = Promise.withResolvers<void>();
    this.#deps.log.info({ model: this.#deps.embedder.model }, "memories are embedded again");
  }

  #noteFailure(error: unknown, pauseMs: number): void {
    const { log, embedder } = this.#deps;
    const isKnown = this.#failure !== undefined;
    this.#failure = error instanceof EmbedFailure ? error.message : "vectors could not be read or stored";
    this.#stuck.resolve();
    const details = { model: embedder.model, reason: messageOf(error), retryMs: Math.round(pauseMs) };
    if (isKnown) log.debug(details, "memories are still not embedded");
    else log.warn(details, "memories are not embedded for now: recall finds new ones by words and links alone");
  }
}

/** In their order, as many in each as one request takes. */
function batchesOf(nodes: readonly EmbeddedNode[]): EmbeddedNode[][] {
  const batches: EmbeddedNode[][] = [];
  let chars = 0;
  for (const node of nodes) {
    const length = Math.min(node.text.length, EMBED_LIMITS.textChars);
    const batch = batches.at(-1);
    if (batch === undefined || batch.length >= EMBED_LIMITS.batchTexts || chars + length > EMBED_LIMITS.batchChars) {
      batches.push([node]);
      chars = length;
    } else {
      batch.push(node);
      chars += length;
    }
  }
  return batches;
}
