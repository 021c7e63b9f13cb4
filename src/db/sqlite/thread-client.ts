import { Worker } from "node:worker_threads";
import { EngineError, messageOf } from "../../core/errors.ts";
import { isolateFile } from "../../core/isolate.ts";
import type { OpenOptions } from "./open.ts";
import { CLOSE, fromWire, OPEN, type OwnErrors, type Reply, type Request, type ThreadData } from "./thread-protocol.ts";

type Method = (...args: never[]) => unknown;
type MethodOf<Api> = { [K in keyof Api]: Api[K] extends Method ? K : never }[keyof Api] & string;
type Arguments<M> = M extends (...args: infer A) => unknown ? A : never;
type Result<M> = M extends (...args: never[]) => infer R ? R : never;
type PartOf<M> = Result<M> extends Generator<infer P> ? P : never;

/** Calls waiting for one thread; past it the thread is so far behind that a caller is better told so. */
const MAX_PENDING_CALLS = 4_096;

/** The caller's side of one part of the database, wherever that runs. Calls are answered in order. */
export interface PartClient<Api> {
  call<K extends MethodOf<Api>>(method: K, ...args: Arguments<Api[K]>): Promise<Result<Api[K]>>;
  /** Calls a method that answers in parts; resolves after the last. */
  stream<K extends MethodOf<Api>>(
    method: K,
    args: Arguments<Api[K]>,
    onPart: (part: PartOf<Api[K]>) => void,
  ): Promise<void>;
  /** Closes the part's connection after all calls made before; resolves when the part has ended. */
  close(): Promise<void>;
  /** Ends the part at once: for a catalog that has failed, or was never opened. */
  terminate(): Promise<void>;
  /** Rejects everything that waits and everything to come. */
  fail(reason: Error): void;
}

/** What runs on a thread: its file, the name by which the bundled program starts it, and its own errors. */
export type ThreadKind = { file: URL; isolate: string; errors: OwnErrors };

type Pending = { settle: PromiseWithResolvers<unknown>; onPart: ((part: unknown) => void) | undefined };

/**
 * The caller's side of a thread that serves `Api`. Calls are answered in order. When the thread dies, every call that
 * waits is rejected with the reason, and so is every later one; a thread is not started again, because what it was
 * doing when it died is not known.
 */
export class ThreadClient<Api> implements PartClient<Api> {
  readonly #worker: Worker;
  readonly #pending = new Map<number, Pending>();
  readonly #errors: OwnErrors;
  readonly #onDeath: (reason: Error) => void;
  #lastId = 0;
  #death: Error | undefined;
  #closing = false;

  /** Starts the thread, which does nothing until `open`. `onDeath` is called at most once, when it ends unasked. */
  constructor(name: string, kind: ThreadKind, onDeath: (reason: Error) => void) {
    const workerData: ThreadData = { isolate: kind.isolate };
    const worker = new Worker(isolateFile(kind.file), { workerData, name });
    this.#worker = worker;
    this.#errors = kind.errors;
    this.#onDeath = onDeath;
    worker.on("message", (reply: Reply) => this.#receive(reply));
    worker.on("error", (error) =>
      this.#die(new Error(`the catalog's thread ended: ${messageOf(error)}`, { cause: error })),
    );
    worker.on("exit", (code) => this.#die(new Error(`the catalog's thread ended with exit code ${code}`)));
  }

  /** Opens the thread's connection. Rejects with `StartupError`, after which the thread ends. */
  async open(options: OpenOptions): Promise<void> {
    try {
      await this.#send(OPEN, [options]);
    } catch (error) {
      this.#closing = true;
      throw error;
    }
  }

  call<K extends MethodOf<Api>>(method: K, ...args: Arguments<Api[K]>): Promise<Result<Api[K]>> {
    return this.#send(method, args) as Promise<Result<Api[K]>>;
  }

  async stream<K extends MethodOf<Api>>(
    method: K,
    args: Arguments<Api[K]>,
    onPart: (part: PartOf<Api[K]>) => void,
  ): Promise<void> {
    await this.#send(method, args, onPart as (part: unknown) => void);
  }

  async close(): Promise<void> {
    if (this.#death !== undefined) return;
    const ended = new Promise<void>((resolve) => this.#worker.once("exit", () => resolve()));
    const closed = this.#send(CLOSE, []);
    this.#closing = true;
    await closed;
    await ended;
  }

  async terminate(): Promise<void> {
    this.#closing = true;
    await this.#worker.terminate();
  }

  /** Ends the thread as a crash would: for tests. */
  kill(): void {
    void this.#worker.terminate();
  }

  fail(reason: Error): void {
    if (this.#death !== undefined) return;
    this.#death = reason;
    for (const { settle } of this.#pending.values()) settle.reject(reason);
    this.#pending.clear();
  }

  #die(reason: Error): void {
    const unforeseen = this.#death === undefined && !this.#closing;
    this.fail(reason);
    if (unforeseen) this.#onDeath(reason);
  }

  #send(method: string, args: readonly unknown[], onPart?: (part: unknown) => void): Promise<unknown> {
    if (this.#death !== undefined) {
      const message = `the catalog has failed: ${this.#death.message}`;
      return Promise.reject(new EngineError("unavailable", message, { cause: this.#death }));
    }
    if (this.#pending.size >= MAX_PENDING_CALLS) {
      return Promise.reject(new EngineError("unavailable", "too many calls wait for the catalog; try again"));
    }
    const id = ++this.#lastId;
    const request: Request = { id, method, args };
    const settle = Promise.withResolvers<unknown>();
    this.#pending.set(id, { settle, onPart });
    this.#worker.postMessage(request);
    return settle.promise;
  }

  #receive(reply: Reply): void {
    const pending = this.#pending.get(reply.id);
    if (pending === undefined) return;
    if (reply.kind === "part") {
      pending.onPart?.(reply.part);
      return;
    }
    this.#pending.delete(reply.id);
    if (reply.kind === "value") pending.settle.resolve(reply.value);
    else pending.settle.reject(fromWire(reply.error, this.#errors));
  }
}
