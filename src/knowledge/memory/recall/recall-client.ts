import { Worker } from "node:worker_threads";
import { EngineError, fromErrorRecord, messageOf } from "../../../core/errors.ts";
import { isolateFile } from "../../../core/isolate.ts";
import type { Log } from "../../../core/log.ts";
import type { Asked } from "./question.ts";
import type { RecallReply, RecallRequest, RecallThreadData } from "./recall-protocol.ts";

/** Questions that wait for the thread; past it clients are better told to come back. */
const MAX_WAITING = 1_000;

export type RecallClientOptions = Omit<RecallThreadData, "isolate"> & { log: Log };

type Waiting = PromiseWithResolvers<string>;

/**
 * Recall on its thread, which starts with the first question. When it dies, the questions that wait are told to come
 * back, and the next one starts another: what it holds is built from the records.
 */
export class RecallClient {
  readonly #options: RecallClientOptions;
  #thread: { worker: Worker; waiting: Map<number, Waiting> } | undefined;
  #lastId = 0;

  constructor(options: RecallClientOptions) {
    this.#options = options;
  }

  /** The answer as JSON. */
  async recall(databaseId: number, asked: Asked): Promise<string> {
    const { worker, waiting } = (this.#thread ??= this.#start());
    if (waiting.size >= MAX_WAITING) throw busy();
    const id = ++this.#lastId;
    const answer = Promise.withResolvers<string>();
    waiting.set(id, answer);
    const request: RecallRequest = { id, databaseId, asked };
    worker.postMessage(request);
    return await answer.promise;
  }

  async close(): Promise<void> {
    await this.#thread?.worker.terminate();
  }

  #start(): { worker: Worker; waiting: Map<number, Waiting> } {
    const { log, source, options } = this.#options;
    const workerData: RecallThreadData = { isolate: "recall", source, options };
    const worker = new Worker(isolateFile(new URL("recall-thread.ts", import.meta.url)), {
      workerData,
      name: "recall",
    });
    const waiting = new Map<number, Waiting>();
    // It holds nothing that is not in the records: it does not keep the process alive.
    worker.unref();
    worker.on("message", (reply: RecallReply) => {
      const answer = waiting.get(reply.id);
      waiting.delete(reply.id);
      settle(answer, reply);
    });
    worker.on("error", (error: unknown) => log.error({ err: error }, "the thread of recall failed"));
    worker.on("exit", () => {
      if (this.#thread?.worker === worker) this.#thread = undefined;
      for (const answer of waiting.values()) answer.reject(ended());
      waiting.clear();
    });
    return { worker, waiting };
  }
}

function settle(answer: Waiting | undefined, reply: RecallReply): void {
  if (answer === undefined) return;
  if (reply.kind === "answer") answer.resolve(reply.json);
  else if (reply.kind === "refused") answer.reject(fromErrorRecord(reply.error));
  else {
    const error = new Error(`recall failed: ${messageOf(reply.message)}`);
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
  return new EngineError("unavailable", "the thread of recall ended: ask again", { headers: { "Retry-After": "1" } });
}
