import type { Clock, TimerHandle } from "../../core/clock.ts";
import { EngineError, messageOf } from "../../core/errors.ts";
import type { Log } from "../../core/log.ts";
import type { Metrics } from "../../core/metrics.ts";
import { WaitingLine } from "../../core/waiting-line.ts";
import type { Confinement } from "../../io/confinement/confinement.ts";
import { Watchdog } from "../budgets/watchdog.ts";
import type { KqlFailure, KqlNames, KqlRequest, KqlTranslation } from "../kql/contract.ts";
import { TRANSLATOR_METRICS } from "./metrics.ts";
import type { TranslatorAnswer, TranslatorMessage } from "./protocol.ts";
import { StartupSnapshot } from "./startup-snapshot.ts";
import { TranslatorProcess } from "./translator-process.ts";

/**
 * Translates KQL into SQL, in one process that is kept: the library takes 140 MB and over a second to be ready, too much
 * for every query process. It starts with the first text, and serves all callers, one text at a time; the others wait in
 * a line that is bounded in length and in time. What a text can do to it is bounded as for a query process: memory by the
 * kernel and the watchdog, files and sockets by the confinement, time by the query's own and by a limit on top. A process
 * that a text brought down is replaced at once, and the text is not tried again.
 */
export type TranslatorOptions = {
  log: Log;
  clock: Clock;
  metrics: Metrics;
  confinement: Confinement;
  tempDir: string;
  /** For the start-up snapshot. */
  snapshotDir: string;
  /** What one query may take. */
  memoryBytes: number;
  retryAfterSecs: number;
  maxQueued?: number;
  maxWaitMs?: number;
  /** What one text may take, whatever its query may. */
  maxTextMs?: number;
  /** How long a text may go on that nobody waits for any more, before its process is killed. */
  cancelGraceMs?: number;
  /** After the start of a process without a start-up snapshot, one is built that much later. */
  snapshotDelayMs?: number;
};

/** What holds for one text. */
export type TextBounds = {
  /** Aborted when the query's time is up, or its client left. */
  signal: AbortSignal;
  /** What its query may take. */
  memoryBytes: number;
};

export interface Translator {
  /** Starts the process, so that the first text need not wait for it. */
  warm(): void;
  /** What the text says about tables. Rejects with `EngineError`, or the signal's reason. */
  names(text: string, bounds: TextBounds): Promise<KqlNames>;
  /** Rejects as `names` does. */
  translate(request: KqlRequest, bounds: TextBounds): Promise<KqlTranslation>;
  /** Of the process, for tests and diagnostics. */
  pid(): number | undefined;
  close(): Promise<void>;
}

const DEFAULT_MAX_QUEUED = 256;
const DEFAULT_MAX_WAIT_MS = 10_000;
/** All others wait meanwhile. Texts that people write take milliseconds. */
const DEFAULT_MAX_TEXT_MS = 10_000;
/** Starting another process takes longer than most texts do. */
const DEFAULT_CANCEL_GRACE_MS = 1_000;
/** Building takes three seconds of a processor, which the first queries need. */
const DEFAULT_SNAPSHOT_DELAY_MS = 5_000;
/** A process that holds more than this after a text makes room for a fresh one. */
const MAX_IDLE_RSS_BYTES = 768 * 1024 * 1024;
/** Of a text whose process somebody else ended. */
const MAX_LOSSES = 1;

export function createTranslator(options: TranslatorOptions): Translator {
  return new OneTranslator(options);
}

class OneTranslator implements Translator {
  readonly #options: TranslatorOptions;
  readonly #line: WaitingLine<symbol, void>;
  readonly #watchdog: Watchdog;
  readonly #snapshot: StartupSnapshot;
  /** Those that were started and are not gone. */
  readonly #processes = new Set<TranslatorProcess>();
  #current: TranslatorProcess | undefined;
  #starting: Promise<TranslatorProcess> | undefined;
  #isTaken = false;
  #snapshotTimer: TimerHandle | undefined;
  #isClosed = false;

  constructor(options: TranslatorOptions) {
    this.#options = options;
    this.#line = new WaitingLine(options.clock);
    this.#watchdog = new Watchdog(options);
    this.#snapshot = new StartupSnapshot({ ...options, folder: options.snapshotDir });
    TRANSLATOR_METRICS.of(options.metrics).kqlWaiting.watch({}, () => this.#line.size);
  }

  warm(): void {
    this.#ready().catch((error: unknown) => this.#options.log.error({ err: error }, "the KQL translator cannot start"));
  }

  async names(text: string, bounds: TextBounds): Promise<KqlNames> {
    const answer = await this.#ask({ kind: "names", text }, bounds);
    if (answer.kind !== "names") throw outOfTurn(answer);
    return answer.names;
  }

  async translate(request: KqlRequest, bounds: TextBounds): Promise<KqlTranslation> {
    const answer = await this.#ask({ kind: "translate", request }, bounds);
    if (answer.kind !== "translation") throw outOfTurn(answer);
    return answer.translation;
  }

  pid(): number | undefined {
    return this.#current?.pid;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#snapshotTimer?.cancel();
    const stopping = new EngineError("unavailable", "the server is stopping");
    for (const waiter of this.#line.keys()) this.#line.refuse(waiter, stopping);
    const processes = [...this.#processes];
    for (const one of processes) one.kill(stopping);
    await Promise.all([...processes.map((one) => one.exited()), this.#snapshot.close()]);
  }

  /** The turn ends with the work on the text, which may be after whoever asked has left. */
  async #ask(message: TranslatorMessage, bounds: TextBounds): Promise<TranslatorAnswer> {
    await this.#takeTurn(bounds.signal);
    const work = this.#work(message, bounds).finally(() => this.#endTurn());
    const answer = await unlessAborted(work, bounds.signal);
    if (answer.kind === "refused") throw new KqlRefusal(answer.failure);
    if (answer.kind !== "failed") return answer;
    this.#options.log.error({ failure: answer.message }, "the translation of a KQL query failed");
    throw new EngineError("query_failed", "the translation of this query failed: this is a bug of ours");
  }

  async #takeTurn(signal: AbortSignal): Promise<void> {
    const { maxQueued = DEFAULT_MAX_QUEUED, maxWaitMs = DEFAULT_MAX_WAIT_MS } = this.#options;
    signal.throwIfAborted();
    if (this.#isTaken && this.#line.size >= maxQueued) throw this.#busy();
    if (this.#isTaken) {
      await this.#line.wait(Symbol("text"), { signal, timeoutMs: maxWaitMs, onTimeout: () => this.#busy() });
    }
    this.#isTaken = true;
  }

  #endTurn(): void {
    const next = this.#line.keys().next().value;
    if (next === undefined) this.#isTaken = false;
    else this.#line.serve(next, undefined);
  }

  #busy(): EngineError {
    return new EngineError("too_many_requests", "too many KQL queries are being translated; try again later", {
      headers: { "Retry-After": String(this.#options.retryAfterSecs) },
    });
  }

  async #work(message: TranslatorMessage, bounds: TextBounds): Promise<TranslatorAnswer> {
    const { log, clock, metrics } = this.#options;
    for (let losses = 0; ; losses++) {
      const child = await this.#ready();
      bounds.signal.throwIfAborted();
      const startedMs = clock.monotonicMs();
      try {
        return await this.#supervised(child, message, bounds);
      } catch (error) {
        if (!child.isLost || losses >= MAX_LOSSES) throw error;
        log.warn({ err: error }, "a KQL query is translated again");
      } finally {
        const seconds = (clock.monotonicMs() - startedMs) / 1000;
        TRANSLATOR_METRICS.of(metrics).kqlDuration.observe({ stage: message.kind }, seconds);
      }
    }
  }

  async #supervised(
    child: TranslatorProcess,
    message: TranslatorMessage,
    { signal, memoryBytes }: TextBounds,
  ): Promise<TranslatorAnswer> {
    const { clock, maxTextMs = DEFAULT_MAX_TEXT_MS, cancelGraceMs = DEFAULT_CANCEL_GRACE_MS } = this.#options;
    const watch = this.#watchdog.watch(child, memoryBytes);
    const timers = [clock.after(maxTextMs, () => child.kill(tooSlow(maxTextMs)))];
    const onAbort = (): void => {
      timers.push(clock.after(cancelGraceMs, () => child.kill(signal.reason as Error)));
    };
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      return await child.ask(message);
    } finally {
      watch.stop();
      for (const timer of timers) timer.cancel();
      signal.removeEventListener("abort", onAbort);
      if (child.rssBytes > MAX_IDLE_RSS_BYTES) child.kill(new Error("the translator grew too large"));
    }
  }

  #ready(): Promise<TranslatorProcess> {
    if (this.#isClosed) return Promise.reject(new EngineError("unavailable", "the server is stopping"));
    if (this.#current?.alive === true) return Promise.resolve(this.#current);
    this.#starting ??= this.#start().finally(() => (this.#starting = undefined));
    return this.#starting;
  }

  /** From a snapshot where there is one; from one that does not work, without. */
  async #start(): Promise<TranslatorProcess> {
    const snapshot = await this.#snapshot.find();
    if (snapshot !== undefined) {
      try {
        return await this.#startFrom(snapshot);
      } catch (error) {
        if (this.#isClosed) throw error;
        await this.#snapshot.discard(snapshot, messageOf(error));
      }
    }
    const child = await this.#startFrom(undefined).catch((error: unknown) => {
      throw new EngineError("unavailable", `the KQL translator does not start: ${messageOf(error)}`, { cause: error });
    });
    const { clock, snapshotDelayMs = DEFAULT_SNAPSHOT_DELAY_MS } = this.#options;
    this.#snapshotTimer ??= clock.after(snapshotDelayMs, () => void this.#snapshot.build(), { background: true });
    return child;
  }

  async #startFrom(snapshot: string | undefined): Promise<TranslatorProcess> {
    if (this.#isClosed) throw new EngineError("unavailable", "the server is stopping");
    const { log, metrics } = this.#options;
    const child = new TranslatorProcess({ ...this.#options, snapshot });
    this.#processes.add(child);
    void child.exited().then(() => this.#processes.delete(child));
    await child.ready();
    TRANSLATOR_METRICS.of(metrics).kqlStarts.inc({ type: snapshot === undefined ? "sources" : "snapshot" });
    this.#current = child;
    // One that was ready is replaced as soon as it is gone: the next text need not wait for it.
    void child.ended().then(() => {
      if (!this.#isClosed) this.warm();
    });
    log.debug({ pid: child.pid, snapshot }, "the KQL translator is ready");
    return child;
  }
}

/** The work goes on without whoever asked for it. */
async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const stopped = Promise.withResolvers<never>();
  const onAbort = (): void => stopped.reject(signal.reason as Error);
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    return await Promise.race([work, stopped.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
    // Whoever left does not hear how it ended.
    work.catch(() => {});
  }
}

/** Of the text, with the place in it. */
export class KqlRefusal extends EngineError {
  /** Of what is meant from that place on; undefined where that is not said. */
  readonly length: number | undefined;

  constructor({ code, message, length, ...details }: KqlFailure) {
    super(code, message, details);
    this.length = length;
  }
}

function tooSlow(maxTextMs: number): EngineError {
  const budget = { name: "wall_clock_ms", used: maxTextMs, allowed: maxTextMs };
  return new EngineError("budget_exceeded", `the query takes more than ${maxTextMs} ms to be translated`, {
    headers: { "X-Engine-Budget-Limit": `wall_clock_ms=${maxTextMs}` },
    budget,
  });
}

function outOfTurn({ kind }: TranslatorAnswer): Error {
  return new EngineError("query_failed", `the translator answered ${kind} out of turn`);
}
