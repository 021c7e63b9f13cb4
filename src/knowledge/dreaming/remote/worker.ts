import { z } from "zod";
import { Backoff } from "../../../core/backoff.ts";
import { sleep, type Clock } from "../../../core/clock.ts";
import { EngineError, messageOf } from "../../../core/errors.ts";
import type { Log } from "../../../core/log.ts";
import type { Random } from "../../../core/random.ts";
import { JobFailure, type JobHandler, type RunningJob } from "../../../fabric/handler.ts";
import { holdOf, type Hold } from "../../../fabric/job.ts";
import type { RemotePort } from "../../../fabric/remote-port.ts";
import { isPassing } from "../../../fabric/runner-failure.ts";
import type { OpenedEngine } from "../../agent/engines/engine.ts";
import { toConfig, type EngineFields } from "../../agent/engines/fields.ts";
import { openEngine } from "../../agent/engines/open-engine.ts";
import { checkKey, operatorKeyOf, targetOf, type ProviderSettings } from "../../agent/engines/target.ts";
import { askModel } from "../ask-model.ts";
import { DREAM_JOB } from "../dream-job.ts";
import { DREAMING_LIMITS } from "../limits.ts";
import { answerPages, type DreamAnswer, type DreamPages, type DreamResult, type Question } from "../loop.ts";
import { applyAnswer, nextAnswer, requestOf, type ApplyAnswer } from "./wire.ts";

export type DreamWorkerDeps = {
  port: Pick<RemotePort, "ofJob" | "credential">;
  /** Of the operator of this worker. */
  settings: ProviderSettings;
  clock: Clock;
  random: Random;
  log: Log;
};

/** A page of events is a query; and the last answer is committed before it is answered. */
const CALL_MS = 120_000;
const RETRY = { firstMs: 200, mostMs: 10_000 } as const;
/** A server that is away for longer than this, or fails each time, is another attempt's. */
const TRIES = 20;

const NOTHING = { input_tokens: 0, output_tokens: 0, total_tokens: 0 };

/**
 * Runs dreams on a worker: asks the server for questions, has the model answer them with the key of the engine, and sends
 * what it proposes. The server reads, checks and writes; the worker sees the questions of its own jobs and nothing else.
 */
export function remoteDreamHandler(deps: DreamWorkerDeps): JobHandler {
  return { kind: DREAM_JOB.name, run: (job) => dream(deps, job) };
}

async function dream(deps: DreamWorkerDeps, job: RunningJob): Promise<DreamResult> {
  const { clock } = deps;
  const server = new HeldJob(deps, job);
  let opened: OpenedEngine | undefined;
  return await answerPages(new RemotePages(server), async (question) => {
    try {
      opened ??= await engineFor(question.engine, deps.settings, server);
    } catch (error) {
      return notConfigured(error);
    }
    return await askModel(opened, question, { clock, stop: job.signal });
  });
}

/** With the key that the engine names, or that of this worker's operator; at the addresses that this operator lists. */
async function engineFor(fields: EngineFields, settings: ProviderSettings, server: HeldJob): Promise<OpenedEngine> {
  const { kind: chosen, ...rest } = toConfig(fields);
  // Its program is that of a server's operator, and the worker's may not have one.
  if (chosen === "cli") throw new EngineError("not_configured", "the engine `cli` answers on servers alone");
  const config = { ...rest, kind: chosen };
  const target = await targetOf(config, settings, async ({ kind, credentialId }) => {
    const key = credentialId === null ? operatorKeyOf(kind, settings) : await server.key(credentialId);
    if (key !== undefined) checkKey(key);
    return key;
  });
  return await openEngine(config, target);
}

/** The server writes it down as the end of the run. Throws what is about anything else. */
function notConfigured(error: unknown): DreamAnswer {
  if (!(error instanceof EngineError) || error.code !== "not_configured") throw error;
  const message = `on the worker: ${error.message}`;
  return { usage: NOTHING, failure: { code: "not_configured", message, retryable: false, isOfContent: false } };
}

type RemoteQuestion = Question & { engine: EngineFields };

/** The pages of a dream, as its server hands them out. */
class RemotePages implements DreamPages<RemoteQuestion> {
  readonly #server: HeldJob;

  constructor(server: HeldJob) {
    this.#server = server;
  }

  async next(): Promise<{ question: RemoteQuestion } | { result: DreamResult }> {
    const answer = await this.#server.post("dreaming/next", nextAnswer);
    const result = resultIn(answer);
    if (result !== undefined) return { result };
    const { question, engine } = answer;
    if (question === null || engine === null) throw incomprehensible("there is neither a question nor an end");
    const { position, instructions, content, max_output_tokens: maxOutputTokens, time_left_ms: timeLeftMs } = question;
    return { question: { position, instructions, content, maxOutputTokens, timeLeftMs, engine } };
  }

  async apply(position: string, answer: DreamAnswer): Promise<DreamResult | undefined> {
    let body = requestOf(position, answer);
    if (Buffer.byteLength(JSON.stringify(body)) > DREAMING_LIMITS.answerBytes) {
      const message = `the model proposed more than ${DREAMING_LIMITS.answerBytes} bytes`;
      const failure = { code: "context_too_large", message, retryable: false, isOfContent: true } as const;
      body = requestOf(position, { usage: answer.usage, failure });
    }
    return resultIn(await this.#server.post("dreaming/apply", applyAnswer, body));
  }
}

/** Throws `JobFailure` for a dream that has failed. */
function resultIn({ over, result, failure }: ApplyAnswer): DreamResult | undefined {
  if (failure !== null) {
    const { error, retryable, retry_after_ms: retryAfterMs } = failure;
    throw new JobFailure({ error, retryable, retryAfterMs: retryAfterMs ?? undefined });
  }
  if (!over) return undefined;
  if (result === null) throw incomprehensible("the dream is over without a result");
  return result;
}

/** A job that this worker holds: what it asks the server about it, again while the server is away for a moment. */
class HeldJob {
  readonly #deps: DreamWorkerDeps;
  readonly #hold: Hold;
  readonly #signal: AbortSignal;

  constructor(deps: DreamWorkerDeps, job: RunningJob) {
    this.#deps = deps;
    this.#hold = holdOf(job);
    this.#signal = job.signal;
  }

  async post<T extends z.ZodType>(path: string, schema: T, body?: unknown): Promise<z.output<T>> {
    const call = { body, timeoutMs: CALL_MS, signal: this.#signal };
    const answer = await this.#patiently(() => this.#deps.port.ofJob(this.#hold, path, call));
    const { data, error } = schema.safeParse(answer);
    if (data === undefined) throw incomprehensible(z.prettifyError(error ?? new z.ZodError([])));
    return data;
  }

  /** The key of a credential that the job names; undefined where it is gone, or not shared any more. It is not kept. */
  async key(id: string): Promise<string | undefined> {
    try {
      const value = await this.#patiently(() => this.#deps.port.credential(this.#hold, id));
      return apiKey.safeParse(value).data?.key.trim();
    } catch (error) {
      if (error instanceof EngineError && error.code === "not_found") return undefined;
      throw error;
    }
  }

  async #patiently<T>(call: () => Promise<T>): Promise<T> {
    const { clock, random, log } = this.#deps;
    const backoff = new Backoff({ random, ...RETRY });
    for (let i = 1; ; i++) {
      try {
        return await call();
      } catch (error) {
        this.#signal.throwIfAborted();
        const isFinal = error instanceof EngineError && error.code === "not_configured";
        if (isFinal || i >= TRIES || !isPassing(error)) throw error;
        log.debug({ jobId: this.#hold.jobId, reason: messageOf(error) }, "a request for a dream failed; trying again");
        await sleep(clock, backoff.next(), this.#signal);
      }
    }
  }
}

const apiKey = z.object({ kind: z.literal("api_key"), key: z.string() });

function incomprehensible(why: string): EngineError {
  return new EngineError("bad_request", `the control plane answered what this version does not understand: ${why}`);
}
