import { Worker } from "node:worker_threads";
import { messageOf } from "../../../core/errors.ts";
import { isolateFile } from "../../../core/isolate.ts";
import { RERANK_LIMITS } from "./limits.ts";
import type { RerankReply, RerankRequest, RerankThreadData } from "./protocol.ts";

export type SessionEvents = {
  /** It has loaded its model, or has ended a run. */
  onFree: () => void;
  /** Its thread has ended. `reason` is given unless a run has failed with it. */
  onGone: (reason: string | undefined) => void;
};

/**
 * - `loading`: the model is not there yet.
 * - `late`: nobody waits any more for what it computes.
 */
export type SessionState = "loading" | "free" | "running" | "late" | "gone";

/** One session of a model, on a thread of its own, for one question at a time. */
export class RerankSession {
  readonly #worker: Worker;
  readonly #events: SessionEvents;
  #state: SessionState = "loading";
  #run: PromiseWithResolvers<readonly number[]> | undefined;
  #failure: string | undefined;

  constructor(data: Omit<RerankThreadData, "isolate">, events: SessionEvents) {
    this.#events = events;
    const file = isolateFile(new URL("rerank-thread.ts", import.meta.url));
    const workerData: RerankThreadData = { isolate: "rerank", ...data };
    this.#worker = new Worker(file, { workerData, name: "rerank" });
    this.#worker.unref();
    this.#worker.on("message", (reply: RerankReply) => this.#take(reply));
    this.#worker.on("error", (error: unknown) => (this.#failure = messageOf(error)));
    this.#worker.on("exit", (code) => this.#end(code));
  }

  get state(): SessionState {
    return this.#state;
  }

  /** Whether it was free; then it is the caller's. */
  reserve(): boolean {
    if (this.#state !== "free") return false;
    this.#state = "running";
    return true;
  }

  /** For who has reserved it. Rejects with an `Error` when the model fails or is late; the session may be busy for longer. */
  async relevances(query: string, texts: readonly string[], late: AbortSignal): Promise<readonly number[]> {
    if (this.#state === "gone") throw new Error("its thread has ended");
    const run = Promise.withResolvers<readonly number[]>();
    this.#run = run;
    const request: RerankRequest = { query, texts, limitMs: RERANK_LIMITS.runMs };
    this.#worker.postMessage(request);
    const onLate = (): void => {
      this.#state = "late";
      run.reject(late.reason as Error);
    };
    late.addEventListener("abort", onLate, { once: true });
    try {
      return await run.promise;
    } finally {
      late.removeEventListener("abort", onLate);
    }
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }

  #take(reply: RerankReply): void {
    if (reply.kind === "rated") this.#run?.resolve(reply.relevances);
    else if (reply.kind === "failed") this.#run?.reject(new Error(reply.message));
    this.#run = undefined;
    this.#state = "free";
    this.#events.onFree();
  }

  #end(code: number): void {
    const reason = this.#failure ?? `its thread ended with code ${code}`;
    const wasRunning = this.#state === "running";
    this.#state = "gone";
    this.#run?.reject(new Error(reason));
    this.#events.onGone(wasRunning ? undefined : reason);
  }
}
