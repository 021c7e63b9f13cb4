import type { ChildProcess } from "node:child_process";
import { mkdirSync, mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../core/clock.ts";
import { EngineError } from "../../core/errors.ts";
import type { Log } from "../../core/log.ts";
import type { Confinement } from "../../io/confinement/confinement.ts";
import { budgetError } from "../budgets/budget.ts";
import { startConfined } from "../scan/confined-process.ts";
import type { TranslatorAnswer, TranslatorMessage, TranslatorReply } from "./protocol.ts";

/** One translator process, from the server's side. */
export type TranslatorProcessOptions = {
  log: Log;
  clock: Clock;
  /** The process gets a folder of its own in here. */
  tempDir: string;
  confinement: Confinement;
  /** What one query may take. */
  memoryBytes: number;
  /** The start-up snapshot to start from. */
  snapshot: string | undefined;
};

/** What Node and the library take before the first text, code not counted. */
const OVERHEAD_BYTES = 768 * 1024 * 1024;
/** It writes none but one that shows that it can. */
const FILE_BYTES = 64 * 1024;
const START_TIMEOUT_MS = 30_000;
const KEPT_STDERR_CHARS = 2_000;
/** Of V8 when its heap is full, or when the kernel gives it no more. */
const OUT_OF_MEMORY: ReadonlySet<NodeJS.Signals | null> = new Set(["SIGABRT", "SIGTRAP", "SIGILL"]);

export class TranslatorProcess {
  readonly #options: TranslatorProcessOptions;
  readonly #folder: string;
  readonly #child: ChildProcess;
  readonly #ended = Promise.withResolvers<void>();
  readonly #exited = Promise.withResolvers<void>();
  #waiting: PromiseWithResolvers<TranslatorReply> | undefined;
  #death: Error | undefined;
  #isLost = false;
  #rssBytes = 0;
  #stderr = "";

  constructor(options: TranslatorProcessOptions) {
    this.#options = options;
    const { tempDir, confinement, memoryBytes, snapshot } = options;
    mkdirSync(tempDir, { recursive: true, mode: 0o700 });
    // By its name a later server sweeps it (`child-pool.ts`), when this one is killed before it can.
    this.#folder = mkdtempSync(join(tempDir, `query-${process.pid}-kql-`));
    this.#child = startConfined({
      program: {
        source: new URL("./translator-child.ts", import.meta.url),
        isolate: "kql",
        nodeOptions: snapshot === undefined ? [] : ["--snapshot-blob", snapshot],
      },
      folder: this.#folder,
      readable: snapshot === undefined ? [] : [snapshot],
      confinement,
      limits: { dataBytes: memoryBytes + OVERHEAD_BYTES, fileBytes: FILE_BYTES },
      env: {},
    });
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-KEPT_STDERR_CHARS);
    });
    this.#child.on("message", (reply) => this.#hear(reply as TranslatorReply));
    this.#child.on("error", (error) => this.#onExit(error));
    this.#child.on("exit", (code, signal) => this.#onExit(this.#reasonOf(code, signal)));
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get alive(): boolean {
    return this.#death === undefined;
  }

  /** Whether somebody else ended it, in the middle of whatever it did: the text was not why. */
  get isLost(): boolean {
    return this.#isLost;
  }

  /** What it held in memory after its last text. */
  get rssBytes(): number {
    return this.#rssBytes;
  }

  /** Resolves once it takes texts; rejects when it does not start. */
  async ready(): Promise<void> {
    const late = new Error(`the translator was not ready after ${START_TIMEOUT_MS} ms`);
    const timer = this.#options.clock.after(START_TIMEOUT_MS, () => this.kill(late));
    try {
      await this.#next();
    } finally {
      timer.cancel();
    }
  }

  /** Sends a message and waits for the answer. Rejects with why the process ended. */
  async ask(message: TranslatorMessage): Promise<TranslatorAnswer> {
    const next = this.#next();
    if (this.alive) this.#child.send(message, (error) => error !== null && this.#lose(error));
    const answer = await next;
    if (answer.kind === "ready") throw new Error("the translator is ready twice");
    return answer;
  }

  /** Ends the process at once; what waits for it rejects with `reason`. Harmless when it is dead already. */
  kill(reason: Error): void {
    this.#die(reason);
    this.#child.kill("SIGKILL");
  }

  /** Resolves when it takes no text any more. */
  ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** Resolves when the process is gone and its folder is deleted. */
  exited(): Promise<void> {
    return this.#exited.promise;
  }

  #hear(reply: TranslatorReply): void {
    this.#rssBytes = reply.rssBytes;
    this.#waiting?.resolve(reply);
    this.#waiting = undefined;
  }

  #next(): Promise<TranslatorReply> {
    this.#waiting = Promise.withResolvers<TranslatorReply>();
    if (this.#death !== undefined) this.#waiting.reject(this.#death);
    return this.#waiting.promise;
  }

  #lose(reason: Error): void {
    if (this.#death === undefined) this.#isLost = true;
    this.kill(reason);
  }

  #die(reason: Error): void {
    this.#death ??= reason;
    this.#waiting?.reject(reason);
    this.#waiting = undefined;
    this.#ended.resolve();
  }

  #onExit(reason: Error): void {
    this.#die(reason);
    rm(this.#folder, { recursive: true, force: true })
      .catch((error: unknown) => this.#options.log.error({ err: error }, "cannot delete the folder of the translator"))
      .finally(() => this.#exited.resolve());
  }

  #reasonOf(code: number | null, signal: NodeJS.Signals | null): Error {
    if (this.#death !== undefined) return this.#death;
    const { log, memoryBytes } = this.#options;
    log.warn({ code, signal, stderr: this.#stderr }, "the translator of KQL died");
    if (OUT_OF_MEMORY.has(signal) || code === 134) return budgetError("memory_bytes", memoryBytes, memoryBytes);
    this.#isLost = true;
    return new EngineError("query_failed", `the translator of KQL ended with ${signal ?? `code ${code}`}`);
  }
}
