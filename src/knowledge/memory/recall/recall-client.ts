import { Worker } from "node:worker_threads";
import type { Clock } from "../../../core/clock.ts";
import { EngineError, fromErrorRecord } from "../../../core/errors.ts";
import { isolateFile } from "../../../core/isolate.ts";
import type { Log } from "../../../core/log.ts";
import type { RerankSetup } from "../rerank/setup.ts";
import { RerankWatch, type RerankState } from "../rerank/state.ts";
import { RECALL_LIMITS } from "./limits.ts";
import type { Asking } from "./question.ts";
import {
  NO_INDEX,
  type IndexState,
  type RecallCall,
  type RecalledJson,
  type RecallReply,
  type RecallRequest,
  type RecallThreadData,
} from "./recall-protocol.ts";

export type RecallClientOptions = Omit<RecallThreadData, "isolate" | "rerankModel"> & {
  log: Log;
  clock: Clock;
  /** Nothing reranks unless given. */
  rerank?: RerankSetup;
  /** `startRecallThread` unless given. */
  startThread?: (data: RecallThreadData) => Worker;
};

type Waiting = PromiseWithResolvers<unknown>;
type Thread = { worker: Worker; waiting: Map<number, Waiting>; indexBytes: number };

/** How soon the index of a dropped database goes after its records. */
const DROP_GONE_MS = 60_000;

/**
 * Recall on its thread, which starts with the first call. When it dies, those who wait are told to come back, and the next
 * call starts another: what it holds is built from the records.
 */
export class RecallClient {
  readonly #options: RecallClientOptions;
  readonly #rerankSetup: RerankSetup;
  readonly #rerankWatch: RerankWatch;
  #thread: Thread | undefined;
  #lastId = 0;
  #isClosed = false;

  constructor(options: RecallClientOptions) {
    this.#options = options;
    this.#rerankSetup = options.rerank ?? { off: undefined };
    this.#rerankWatch = new RerankWatch(this.#rerankSetup, options.log);
  }

  /** Calls that the thread has not answered. */
  get waiting(): number {
    return this.#thread?.waiting.size ?? 0;
  }

  /** What the indexes of all databases take; undefined without a thread. */
  get indexBytes(): number | undefined {
    return this.#thread?.indexBytes;
  }

  /** As of the last answer of the thread. */
  get rerankState(): RerankState {
    return this.#rerankWatch.state;
  }

  /** Throws `too_many_requests`, `unavailable`. */
  async recall(databaseId: number, asking: Asking): Promise<RecalledJson> {
    return (await this.#call({ kind: "recall", databaseId, asking })) as RecalledJson;
  }

  /** Builds the indexes of these databases, in this order, as far as there is room. */
  async prepare(databaseIds: readonly number[]): Promise<void> {
    await this.#call({ kind: "prepare", databaseIds });
  }

  /** Starts no thread. */
  async stateOf(databaseId: number): Promise<IndexState> {
    if (this.#thread === undefined) return NO_INDEX;
    return (await this.#call({ kind: "state", databaseId })) as IndexState;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#thread?.worker.terminate();
  }

  async #call(call: RecallCall): Promise<unknown> {
    if (this.#isClosed) throw new EngineError("unavailable", "this server is stopping");
    const { worker, waiting } = (this.#thread ??= this.#start());
    if (waiting.size >= RECALL_LIMITS.waiting) throw busy();
    const id = ++this.#lastId;
    const answer = Promise.withResolvers<unknown>();
    waiting.set(id, answer);
    const request: RecallRequest = { id, call };
    worker.postMessage(request);
    return await answer.promise;
  }

  /** Again and again, while the thread is there. */
  #dropGoneLater(thread: Thread): void {
    const { log, clock } = this.#options;
    const dropGone = (): void => {
      if (this.#thread !== thread || this.#isClosed) return;
      this.#call({ kind: "dropGone" }).catch((error: unknown) => {
        log.debug({ err: error }, "indexes of dropped databases stay for now");
      });
      this.#dropGoneLater(thread);
    };
    clock.after(DROP_GONE_MS, dropGone, { background: true });
  }

  #start(): Thread {
    const { log, source, options, model, startThread = startRecallThread } = this.#options;
    const rerankModel = "off" in this.#rerankSetup ? undefined : this.#rerankSetup.model;
    this.#rerankWatch.begin();
    const worker = startThread({ isolate: "recall", source, options, model, rerankModel });
    const thread: Thread = { worker, waiting: new Map(), indexBytes: 0 };
    // It holds nothing that is not in the records: it does not keep the process alive.
    worker.unref();
    worker.on("message", (reply: RecallReply) => {
      const answer = thread.waiting.get(reply.id);
      thread.waiting.delete(reply.id);
      thread.indexBytes = reply.indexBytes;
      if (reply.rerankState !== undefined) this.#rerankWatch.note(reply.rerankState);
      if (answer !== undefined) settle(answer, reply);
    });
    this.#dropGoneLater(thread);
    worker.on("error", (error: unknown) => log.error({ err: error }, "the recall thread failed"));
    worker.on("exit", (code) => {
      if (this.#thread === thread) this.#thread = undefined;
      if (!this.#isClosed) log.warn({ code, waiting: thread.waiting.size }, "the recall thread ended");
      for (const answer of thread.waiting.values()) answer.reject(ended());
      thread.waiting.clear();
    });
    return thread;
  }
}

export function startRecallThread(data: RecallThreadData): Worker {
  const file = isolateFile(new URL("recall-thread.ts", import.meta.url));
  return new Worker(file, { workerData: data, name: "recall" });
}

function settle(answer: Waiting, reply: RecallReply): void {
  if (reply.kind === "answer") answer.resolve(reply.value);
  else if (reply.kind === "refused") answer.reject(fromErrorRecord(reply.error));
  else {
    const error = new Error(`recall failed: ${reply.message}`);
    if (reply.stack !== undefined) error.stack = reply.stack;
    answer.reject(error);
  }
}

function busy(): EngineError {
  return new EngineError("too_many_requests", "too many questions to memory wait for an answer", {
    headers: { "Retry-After": "1" },
  });
}

function ended(): EngineError {
  return new EngineError("unavailable", "the recall thread ended: ask again", { headers: { "Retry-After": "1" } });
}
