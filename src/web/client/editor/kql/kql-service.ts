import { toast } from "../../base/announce.ts";
import { clock } from "../../base/clock.ts";
import type { Table } from "../../base/schema.ts";
import { scriptUrl } from "../../base/trusted-types.ts";
// oxlint-disable-next-line import/default -- Vite makes it: see results/worker-address.d.ts
import workerAddress from "./kql-worker.ts?worker&url";
import type { KqlAnswers, KqlAsk, KqlTold } from "./kql-protocol.ts";
import { KqlSchemas } from "./kql-schemas.ts";

/** What a text is read against; without tables, where the schema is not there, nothing is said of its names. */
export type KqlContext = { tables: readonly Table[] | undefined; isScript: boolean };

type Question<K extends keyof KqlAnswers> = K extends "problems"
  ? { kind: K; text: string }
  : { kind: K; text: string; at: number };

/** The service is 0.6 MB, and reads a first text for a second or two. */
const START_MS = 60_000;
/** A text that takes longer holds up all others. */
const ANSWER_MS = 10_000;

/** The language service of KQL in its worker, for all editors of the page; it lives as long as the page. */
class KqlService {
  #worker: Worker | undefined;
  #state: "idle" | "starting" | "ready" | "off" = "idle";
  #hasSpoken = false;
  #asked = 0;
  #cancelStart: () => void = () => {};
  readonly #schemas = new KqlSchemas();
  readonly #waiting = new Map<number, { resolve: (value: unknown) => void; cancel: () => void }>();
  readonly #listeners = new Set<() => void>();

  get isReady(): boolean {
    return this.#state === "ready";
  }

  /** Loads it, unless it is there or has failed. */
  start(): void {
    if (this.#state !== "idle") return;
    this.#state = "starting";
    this.#cancelStart = clock.after(START_MS, () => this.#turnOff("it did not load in time"));
    try {
      this.#worker = new Worker(scriptUrl(new URL(workerAddress, location.href)), { type: "module" });
    } catch (error) {
      this.#turnOff(error instanceof Error ? error.message : String(error));
      return;
    }
    this.#worker.addEventListener("message", ({ data }: MessageEvent<KqlTold>) => this.#hear(data));
    this.#worker.addEventListener("error", ({ message }) => {
      this.#turnOff(message || "it could not be loaded");
    });
  }

  /** Calls `listener` when the service is there. Returns what ends that. */
  onReady(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Undefined where there is no answer: the service is off, or this text is beyond it. */
  async ask<K extends keyof KqlAnswers>(
    question: Question<K>,
    { tables, isScript }: KqlContext,
  ): Promise<KqlAnswers[K] | undefined> {
    this.start();
    if (this.#worker === undefined || this.#state === "off") return undefined;
    const ask = ++this.#asked;
    const { schema, messages } = this.#schemas.prepare(tables, question.text);
    for (const message of messages) this.#tell(message);
    const answer = new Promise<unknown>((resolve) => {
      const cancel = this.isReady ? this.#deadline() : () => {};
      this.#waiting.set(ask, { resolve, cancel });
    });
    this.#tell({ ...question, schema, isScript, ask });
    return (await answer) as KqlAnswers[K] | undefined;
  }

  #tell(message: KqlAsk): void {
    this.#worker?.postMessage(message);
  }

  #hear(told: KqlTold): void {
    switch (told.kind) {
      case "ready":
        this.#state = "ready";
        this.#cancelStart();
        for (const one of this.#waiting.values()) one.cancel = this.#deadline();
        for (const listener of this.#listeners) listener();
        return;
      case "answer":
        this.#settle(told.ask, told.value);
        return;
      case "failed":
        this.#speak(`KQL completion failed for this text: ${told.message}`);
        this.#settle(told.ask, undefined);
        return;
    }
  }

  #deadline(): () => void {
    return clock.after(ANSWER_MS, () => this.#turnOff("it did not answer in time"));
  }

  #settle(ask: number, value: unknown): void {
    const waiting = this.#waiting.get(ask);
    this.#waiting.delete(ask);
    waiting?.cancel();
    waiting?.resolve(value);
  }

  #turnOff(reason: string): void {
    if (this.#state === "off") return;
    this.#state = "off";
    this.#cancelStart();
    this.#worker?.terminate();
    this.#worker = undefined;
    for (const ask of this.#waiting.keys()) this.#settle(ask, undefined);
    this.#speak(`KQL completion is off: ${reason}. Queries run as before; reload the page to try again.`);
  }

  /** Once: whoever types need not read it at every key. */
  #speak(text: string): void {
    if (this.#hasSpoken) return;
    this.#hasSpoken = true;
    toast(text, "bad");
  }
}

export const kqlService = new KqlService();
