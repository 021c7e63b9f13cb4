import { backoffMs } from "../../../core/backoff.ts";
import { sleep, type Clock } from "../../../core/clock.ts";
import { beginningOf } from "../../../core/cut-text.ts";
import { messageOf } from "../../../core/errors.ts";
import type { Random } from "../../../core/random.ts";
import type { MemoryMetrics } from "../metrics.ts";
import { EMBED_LIMITS } from "./limits.ts";
import { EmbedFailure, type EmbedKind, type EmbedProvider } from "./provider.ts";

export type EmbedderDeps = { provider: EmbedProvider; clock: Clock; random: Random; metrics: MemoryMetrics };

/** Vectors of texts, each of length 1: asks the provider within limits, and checks what it answers. */
export class Embedder {
  readonly #deps: EmbedderDeps;
  /** Of every vector of the model; 0 until there is one. */
  #dimensions = 0;

  constructor(deps: EmbedderDeps) {
    this.#deps = deps;
  }

  get model(): string {
    return this.#deps.provider.model;
  }

  /** Says how many dimensions stored vectors of the model have: others are refused from now on. */
  expect(dimensions: number): void {
    this.#dimensions ||= dimensions;
  }

  /** The vectors of memories, in their order; asks again while the provider is busy. Throws `EmbedFailure`. */
  async documents(texts: readonly string[], signal: AbortSignal): Promise<Float32Array[]> {
    const { clock, random } = this.#deps;
    const growth = { firstMs: EMBED_LIMITS.retryFirstMs, mostMs: EMBED_LIMITS.retryMostMs };
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#ask(texts, "document", EMBED_LIMITS.requestMs, signal);
      } catch (error) {
        const isLast = attempt >= EMBED_LIMITS.attempts || signal.aborted;
        if (!(error instanceof EmbedFailure) || error.kind !== "temporary" || isLast) throw error;
        const asked = Math.min(error.retryAfterMs ?? 0, EMBED_LIMITS.retryAfterMostMs);
        await sleep(clock, Math.max(asked, backoffMs(growth, attempt - 1, random)), signal);
      }
    }
  }

  /** The vector of a question, from one request. Throws `EmbedFailure`. */
  async question(text: string, signal: AbortSignal): Promise<Float32Array> {
    const [vector] = await this.#ask([text], "query", EMBED_LIMITS.questionMs, signal);
    if (vector === undefined) throw new EmbedFailure("unusable", "the provider answered with no vector");
    return vector;
  }

  async #ask(texts: readonly string[], kind: EmbedKind, limitMs: number, signal: AbortSignal): Promise<Float32Array[]> {
    const { provider, clock, metrics } = this.#deps;
    const startedMs = clock.monotonicMs();
    const late = new AbortController();
    const timer = clock.after(limitMs, () => late.abort(new Error(`no answer within ${limitMs} ms`)), {
      background: true,
    });
    try {
      const shortened = texts.map((text) => beginningOf(text, EMBED_LIMITS.textChars));
      const either = AbortSignal.any([late.signal, signal]);
      either.throwIfAborted();
      const answers = await unlessAborted(provider.embed(shortened, kind, either), either);
      return this.#checked(answers, texts.length);
    } catch (error) {
      metrics.embedFailures.inc();
      throw error;
    } finally {
      timer.cancel();
      metrics.embedDuration.observe({ kind }, (clock.monotonicMs() - startedMs) / 1_000);
    }
  }

  #checked(answers: readonly unknown[], count: number): Float32Array[] {
    if (answers.length !== count) {
      throw new EmbedFailure("unusable", `the provider answered with ${answers.length} vectors for ${count} texts`);
    }
    const vectors = answers.map(unitVector);
    const dimensions = this.#dimensions || (vectors[0]?.length ?? 0);
    const other = vectors.find(({ length }) => length !== dimensions);
    if (other !== undefined) {
      throw new EmbedFailure(
        "unusable",
        `the provider answered with ${other.length} dimensions, and ${this.model} has ${dimensions}: ` +
          "give another model another ENGINE_EMBED_MODEL_ID",
      );
    }
    this.#dimensions = dimensions;
    return vectors;
  }
}

/** A model in this process does not stop when nobody waits any more. */
async function unlessAborted<T>(answer: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(new EmbedFailure("temporary", messageOf(signal.reason)));
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([answer, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** Checks an answer and scales it to the length 1. */
function unitVector(answer: unknown): Float32Array {
  if (!isNumbers(answer) || answer.length === 0 || answer.length > EMBED_LIMITS.dimensions) {
    throw new EmbedFailure("unusable", "the provider answered with something that is not a vector");
  }
  let squares = 0;
  for (let i = 0; i < answer.length; i++) {
    const value: unknown = answer[i];
    if (typeof value !== "number") squares = Number.NaN;
    else squares += value * value;
  }
  const length = Math.sqrt(squares);
  if (!Number.isFinite(length) || length === 0) {
    throw new EmbedFailure("unusable", "the provider answered with a vector that is zero or not finite");
  }
  return Float32Array.from(answer, (value) => value / length);
}

function isNumbers(value: unknown): value is ArrayLike<number> {
  return Array.isArray(value) || value instanceof Float32Array;
}
