import type { ModelMessage, ToolModelMessage } from "ai";
import { sleep, type Clock, type TimerHandle } from "../../../core/clock.ts";
import { untilAborted } from "../../../core/concurrency.ts";
import type { Log } from "../../../core/log.ts";
import type { OpenedEngine } from "../engines/engine.ts";
import { AGENT_LIMITS } from "../limits.ts";
import type { AgentMetrics } from "../metrics.ts";
import type { KnownAddresses } from "./addresses.ts";
import { AnswerText } from "./answer-text.ts";
import { EventQueue } from "./event-queue.ts";
import type { NumberedEvent, RunEvent, Usage } from "./events.ts";
import type { Fence } from "../engines/fence.ts";
import { modelStep, type AskedCall, type StepResult } from "./model-step.ts";
import type { Prompt } from "./prompt.ts";
import { failureOf, RunStopped, statusOf, type RunFailure } from "./run-end.ts";
import type { RunEnd, RunStore } from "./run-store.ts";
import { badCall, type RunTools, type ToolOutcome } from "./tools.ts";

export type RunDeps = {
  store: Pick<RunStore, "append" | "finish">;
  clock: Clock;
  log: Log;
  metrics: AgentMetrics;
};

/** What a run is about, and how it begins. */
export type RunStart = {
  runId: string;
  sessionId: string;
  database: string;
  includeThinking: boolean;
  /** As it is stored; undefined where there is none. */
  engine: { kind: string; model: string } | undefined;
  /** Everything that may fail or wait: it is a part of the run. */
  prepare: (signal: AbortSignal) => Promise<Prepared>;
  /** When it was admitted, on the monotonic clock. */
  admittedMs: number;
  /** Called once, when nothing of it is left; without an answer where it failed. */
  onEnd: (end: { answer: string | undefined }) => void;
};

export type Prepared = {
  engine: OpenedEngine;
  prompt: Prompt;
  tools: RunTools;
  fence: Fence;
  known: KnownAddresses;
};

/** Deltas that come faster are sent together. */
const DELTA_MS = 25;
/** How often what has happened is stored. */
const STORE_MS = 100;
/** A provider that wants to be left alone for longer is not asked again. */
const MAX_RETRY_MS = 5_000;
const DEFAULT_RETRY_MS = 500;
/** Of a run that is over: how long the store may take until its client is told all the same. */
const FINISH_MS = 300;
const FINISH_MS_UNHURRIED = 10_000;
const FINISH_AGAIN_MS = 500;

/** One question on its way to an answer: the model and the tools in turn, until the model has no more calls. */
export class AgentRun {
  readonly #deps: RunDeps;
  readonly #start: RunStart;
  readonly #queue: EventQueue<NumberedEvent>;
  readonly #stop = new AbortController();
  readonly #log: RunLog;
  readonly #timer: TimerHandle;
  #usage: Usage = { input_tokens: 0, output_tokens: 0, total_tokens: 0 };
  #toolCalls = 0;
  #outputBytes = 0;
  #hasSaid = false;
  #answer = "";
  #shown: { answer: AnswerText; thinking: AnswerText } | undefined;
  #deltas: Deltas;
  #prepared: Prepared | undefined;

  constructor(start: RunStart, deps: RunDeps) {
    this.#deps = deps;
    this.#start = start;
    this.#queue = new EventQueue(() => this.stop(new RunStopped("cancelled", "the client left")));
    this.#log = new RunLog(start.runId, this.#queue, deps, () => {
      this.stop(new RunStopped("interrupted", "another node ended the run", { retryable: true }));
    });
    this.#deltas = new Deltas(deps.clock, (event) => this.#emit(event));
    const leftMs = AGENT_LIMITS.runMs - (deps.clock.monotonicMs() - start.admittedMs);
    const tooLong = new RunStopped("timeout", `the run took longer than ${AGENT_LIMITS.runMs / 1_000} s`);
    this.#timer = deps.clock.after(Math.max(0, leftMs), () => this.stop(tooLong), { background: true });
  }

  /** For its client; giving it up ends the run. */
  get events(): AsyncIterator<NumberedEvent, undefined> {
    return this.#queue;
  }

  stop(reason: RunStopped): void {
    this.#stop.abort(reason);
  }

  /** Never rejects. */
  async run(): Promise<void> {
    const { runId, sessionId, database, engine = null, onEnd } = this.#start;
    this.#emit({ event: "session", data: { sessionId } });
    const limits = { wall_clock_ms: AGENT_LIMITS.runMs, tool_calls: AGENT_LIMITS.toolCalls };
    this.#emit({ event: "run_started", data: { run_id: runId, session_id: sessionId, database, engine, limits } });
    let failure: RunFailure | undefined;
    try {
      await this.#work();
    } catch (error) {
      failure = failureOf(error);
      if (!failure.isExpected) this.#deps.log.error({ err: error, runId }, "a run of the agent failed");
    }
    // What the engine has left running goes at once, whatever the store takes.
    const ended = this.#prepared?.engine.end();
    try {
      await this.#finish(failure);
    } catch (error) {
      this.#deps.log.error({ err: error, runId }, "the end of a run could not be stored");
    } finally {
      this.#timer.cancel();
      this.#log.stop();
      this.#stop.abort(new RunStopped("cancelled", "the run is over"));
      this.#queue.end();
      await ended;
      onEnd({ answer: failure === undefined ? this.#answer : undefined });
    }
  }

  get #signal(): AbortSignal {
    return this.#stop.signal;
  }

  async #work(): Promise<void> {
    const prepared = await untilAborted(this.#start.prepare(this.#signal), this.#signal);
    this.#prepared = prepared;
    const { prompt } = prepared;
    const messages: ModelMessage[] = [...prompt.messages];
    for (;;) {
      const step = await this.#step(messages);
      this.#usage = added(this.#usage, step.usage);
      for (const { input } of step.calls) this.#count(JSON.stringify(input) ?? "");
      if (step.calls.length === 0) return;
      this.#partAnswer();
      const results = await untilAborted(this.#callAll(step.calls), this.#signal);
      messages.push(...withResults(step.messages, results));
    }
  }

  /** One request to the model. It is repeated once where nothing of its answer had come. */
  async #step(messages: readonly ModelMessage[]): Promise<StepResult> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#ask(messages);
      } catch (error) {
        const mayRepeat = error instanceof RunStopped && error.retryable && !this.#hasSaid && attempt === 1;
        if (!mayRepeat || this.#signal.aborted) throw error;
        const waitMs = error.retryAfterMs ?? DEFAULT_RETRY_MS;
        if (waitMs > MAX_RETRY_MS) throw error;
        await sleep(this.#deps.clock, waitMs, this.#signal);
      }
    }
  }

  async #ask(messages: readonly ModelMessage[]): Promise<StepResult> {
    const { engine, prompt, tools } = this.#ready();
    const { answer, thinking } = this.#texts();
    const ended = new AbortController();
    const signal = AbortSignal.any([this.#signal, ended.signal]);
    const request = { engine, instructions: prompt.instructions, messages, tools: tools.offered, signal };
    const step = modelStep(request, {
      onText: (text) => {
        this.#count(text);
        this.#say(answer.push(text));
      },
      onThinking: (text) => {
        this.#count(text);
        if (this.#start.includeThinking) this.#think(thinking.push(text));
      },
    });
    try {
      return await untilAborted(step, this.#signal);
    } finally {
      // What the provider still sends after an error is of no use; leaving the stream alone would not end its request.
      ended.abort();
      this.#think(thinking.end());
      this.#deltas.flush();
    }
  }

  /** What is said before and after a call of tools does not belong together. */
  #partAnswer(): void {
    const { answer } = this.#texts();
    if (this.#answer !== "" || !answer.isEmpty) this.#say(answer.push("\n\n"));
    this.#deltas.flush();
  }

  /** One for all of the run: two steps may each say a half of what must not be shown. */
  #texts(): { answer: AnswerText; thinking: AnswerText } {
    const { known } = this.#ready();
    this.#shown ??= { answer: new AnswerText(known), thinking: new AnswerText(known) };
    return this.#shown;
  }

  #think(text: string): void {
    if (text !== "") this.#deltas.add("thinking_delta", text);
  }

  #ready(): Prepared {
    if (this.#prepared === undefined) throw new Error("the run is not prepared");
    return this.#prepared;
  }

  #say(text: string): void {
    if (text === "") return;
    this.#answer += text;
    this.#deltas.add("answer_delta", text);
  }

  #count(text: string): void {
    this.#hasSaid = true;
    this.#outputBytes += Buffer.byteLength(text);
    if (this.#outputBytes <= AGENT_LIMITS.outputBytes) return;
    const stopped = new RunStopped("engine_failed", `the model said more than ${AGENT_LIMITS.outputBytes} bytes`);
    this.stop(stopped);
    throw stopped;
  }

  /** All calls of a step at once, as far as they are within the limit. */
  async #callAll(calls: readonly AskedCall[]): Promise<CallResult[]> {
    const left = AGENT_LIMITS.toolCalls - this.#toolCalls;
    const some = calls.slice(0, left);
    const results = Promise.all(some.map((call) => this.#call(call, ++this.#toolCalls)));
    if (some.length < calls.length) {
      await results;
      throw new RunStopped("tool_loop", `the model asked for more than ${AGENT_LIMITS.toolCalls} calls of tools`);
    }
    return await results;
  }

  async #call({ id, name, input, problem }: AskedCall, index: number): Promise<CallResult> {
    const { tools, known, fence } = this.#ready();
    const { clock, metrics } = this.#deps;
    const startedMs = clock.monotonicMs();
    this.#emit({ event: "tool_call", data: { id, name, input, index } });
    const outcome = problem === undefined ? await tools.call(name, input) : badCall(problem);
    this.#signal.throwIfAborted();
    const duration_ms = Math.round(clock.monotonicMs() - startedMs);
    metrics.tools.inc({ tool: tools.has(name) ? name : "unknown", outcome: outcome.result.ok ? "ok" : "refused" });
    // What an error says of a call, and addresses that the call itself has, are the model's own words.
    if (outcome.result.ok) known.learn(outcome.text, JSON.stringify(input));
    this.#emit({ event: "tool_result", data: { id, name, ...outcome.result, duration_ms } });
    return { id, name, text: fence.around(name, outcome.text), outcome };
  }

  #emit(event: RunEvent): void {
    this.#log.add(event);
  }

  async #finish(failure: RunFailure | undefined): Promise<void> {
    const { clock, metrics } = this.#deps;
    const { runId, sessionId, admittedMs } = this.#start;
    const citations = this.#prepared?.tools.citations ?? { queries: [], memories: [] };
    this.#say(this.#shown?.answer.end() ?? "");
    this.#deltas.flush();
    this.#answer = this.#answer.trimEnd();
    if (failure === undefined) {
      this.#emit({ event: "answer_final", data: { text: this.#answer, citations } });
    } else {
      const { code, message, retryable } = failure;
      this.#emit({ event: "run_error", data: { code, message, retryable } });
    }
    const status: RunEnd["status"] = failure === undefined ? "done" : statusOf(failure);
    const duration_ms = Math.round(clock.monotonicMs() - admittedMs);
    const common = { usage: this.#usage };
    const finished = { run_id: runId, status, duration_ms, tool_calls: this.#toolCalls, ...common };
    const end = {
      ...common,
      runId,
      sessionId,
      status,
      error: failure,
      answer: this.#answer === "" ? undefined : this.#answer,
      promptHash: this.#prepared?.prompt.hash,
      toolCalls: this.#toolCalls,
      queries: citations.queries,
    };
    const leftMs = AGENT_LIMITS.runMs - duration_ms;
    const withinMs = failure === undefined ? Math.max(FINISH_MS, Math.min(FINISH_MS_UNHURRIED, leftMs)) : FINISH_MS;
    metrics.runs.inc({ outcome: failure?.code ?? "done" });
    metrics.duration.observe(duration_ms / 1_000);
    metrics.tokens.inc({ kind: "input" }, this.#usage.input_tokens);
    metrics.tokens.inc({ kind: "output" }, this.#usage.output_tokens);
    await this.#log.finish(end, { event: "run_finished", data: finished }, withinMs);
  }
}

type CallResult = { id: string; name: string; text: string; outcome: ToolOutcome };

/**
 * What the model said with the answers to all of its calls. Those that were none have one of the library's already, in words
 * of its own.
 */
function withResults(said: readonly ModelMessage[], results: readonly CallResult[]): ModelMessage[] {
  const content: ToolModelMessage["content"] = results.map(({ id, name, text, outcome }) => ({
    type: "tool-result",
    toolCallId: id,
    toolName: name,
    output: outcome.result.ok ? { type: "text", value: text } : { type: "error-text", value: text },
  }));
  return [...said.filter(({ role }) => role !== "tool"), { role: "tool", content }];
}

function added(a: Usage, b: Usage): Usage {
  return {
    input_tokens: a.input_tokens + b.input_tokens,
    output_tokens: a.output_tokens + b.output_tokens,
    total_tokens: a.total_tokens + b.total_tokens,
  };
}

type DeltaKind = "thinking_delta" | "answer_delta";

/** Sends the first piece at once, and what comes within the next moments together. */
class Deltas {
  readonly #clock: Clock;
  readonly #emit: (event: RunEvent) => void;
  #text = "";
  #kind: DeltaKind = "answer_delta";
  #timer: TimerHandle | undefined;

  constructor(clock: Clock, emit: (event: RunEvent) => void) {
    this.#clock = clock;
    this.#emit = emit;
  }

  add(kind: DeltaKind, text: string): void {
    if (kind !== this.#kind) this.flush();
    this.#kind = kind;
    this.#text += text;
    if (this.#timer !== undefined) return;
    this.#send();
    this.#timer = this.#clock.after(DELTA_MS, () => this.#onTime(), { background: true });
  }

  flush(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#send();
  }

  #onTime(): void {
    this.#timer = undefined;
    this.#send();
  }

  #send(): void {
    const text = this.#text;
    this.#text = "";
    if (text !== "") this.#emit({ event: this.#kind, data: { text } });
  }
}

/** Numbers the events of a run, gives them to its client, and stores them as they happen. */
class RunLog {
  readonly #runId: string;
  readonly #queue: EventQueue<NumberedEvent>;
  readonly #deps: RunDeps;
  readonly #onLost: () => void;
  #seq = 0;
  #unstored: NumberedEvent[] = [];
  #storing: Promise<void> | undefined;
  #timer: TimerHandle;
  #isOver = false;

  constructor(runId: string, queue: EventQueue<NumberedEvent>, deps: RunDeps, onLost: () => void) {
    this.#runId = runId;
    this.#queue = queue;
    this.#deps = deps;
    this.#onLost = onLost;
    this.#timer = this.#later(STORE_MS, AGENT_LIMITS.leasePollMs);
  }

  add(event: RunEvent): void {
    const numbered = this.#numbered(event);
    this.#unstored.push(numbered);
    this.#queue.push(numbered);
  }

  /** Nothing more is stored, and the lease not extended. */
  stop(): void {
    this.#isOver = true;
    this.#timer.cancel();
  }

  /** The client is told of the end when it is stored, or when that takes too long. */
  async finish(end: RunEnd, last: RunEvent, withinMs: number): Promise<void> {
    this.#isOver = true;
    this.#timer.cancel();
    const numbered = this.#numbered(last);
    const stored = this.#storeEnd(end, numbered);
    const tooLate = Promise.withResolvers<undefined>();
    const timer = this.#deps.clock.after(withinMs, () => tooLate.resolve(undefined), { background: true });
    try {
      await Promise.race([stored, tooLate.promise]);
    } finally {
      timer.cancel();
      this.#queue.push(numbered);
      this.#queue.end();
    }
    await stored;
  }

  async #storeEnd(end: RunEnd, last: NumberedEvent): Promise<void> {
    await this.#storing;
    const events = [...this.#unstored.splice(0), last];
    const { clock, log, store } = this.#deps;
    const untilMs = clock.monotonicMs() + AGENT_LIMITS.leaseMs;
    for (;;) {
      try {
        if (!(await store.finish(end, events)))
          log.warn({ runId: this.#runId }, "another node had ended a run of the agent");
        return;
      } catch (error) {
        // Twice does no harm; when the lease is over, another node ends it.
        if (clock.monotonicMs() > untilMs) throw error;
        await sleep(clock, FINISH_AGAIN_MS);
      }
    }
  }

  #numbered(event: RunEvent): NumberedEvent {
    return { ...event, seq: ++this.#seq };
  }

  /** `quietMs`: how long the lease may wait where nothing happens. */
  #later(delayMs: number, quietMs: number): TimerHandle {
    return this.#deps.clock.after(delayMs, () => this.#tick(quietMs), { background: true });
  }

  #tick(quietMs: number): void {
    if (this.#isOver) return;
    const left = quietMs - STORE_MS;
    if (this.#unstored.length === 0 && left > 0) {
      this.#timer = this.#later(STORE_MS, left);
      return;
    }
    this.#storing = this.#store().finally(() => {
      this.#storing = undefined;
      if (!this.#isOver) this.#timer = this.#later(STORE_MS, AGENT_LIMITS.leasePollMs);
    });
  }

  async #store(): Promise<void> {
    const events = this.#unstored.splice(0);
    try {
      if (!(await this.#deps.store.append(this.#runId, events))) this.#onLost();
    } catch (error) {
      // They are stored with the next ones; twice does no harm.
      this.#unstored.unshift(...events);
      this.#deps.log.warn(
        { err: error, runId: this.#runId },
        "events of a run could not be stored; it will be tried again",
      );
    }
  }
}
