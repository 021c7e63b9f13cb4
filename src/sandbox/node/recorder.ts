import type { TimerHandle } from "../../core/clock.ts";
import { untilAborted } from "../../core/concurrency.ts";
import type { Hold } from "../../fabric/job.ts";
import { isLeaseLost } from "../../fabric/refusals.ts";
import type { NewSandboxEvent } from "../contract/event.ts";
import type { TurnReport } from "../contract/turn.ts";
import type { SandboxState } from "../contract/states.ts";
import type { ControlPort, SandboxBatch, SandboxOrder } from "../contract/control-port.ts";
import { untilAnswered, type RetryOptions } from "./retry.ts";

export type RecorderOptions = RetryOptions & {
  control: Pick<ControlPort, "record">;
  hold: Hold;
  /** Batches have higher numbers than this one. */
  lastBatch: number;
  /** Of the order that the holder has: answers need not repeat its turns. */
  knownVersion?: () => number | undefined;
  /** Every answer has the order as it is then. */
  onOrder: (order: SandboxOrder) => void;
  onLost: (error: unknown) => void;
};

/** What is said beside events, at a place among them. */
type Statement = {
  state?: { to: SandboxState; reason?: string };
  removed?: true;
  stats?: Readonly<Record<string, number>>;
  turns?: readonly TurnReport[];
};
type Item = NewSandboxEvent | { statement: Statement; settled: PromiseWithResolvers<void> };

const BATCH_EVENTS = 200;
const BATCH_AFTER_MS = 50;
/** Lines of output beyond these are not kept: a sandbox that floods its console gets no memory of the node for it. */
const QUEUED_EVENTS = 4_000;
const QUEUED_LINE_CHARS = 1024 * 1024;
/** A longer line becomes several where JSON makes it too large for one event: six bytes for a control character. */
const PIECE_CHARS = 10_000;
const MOST_LINE_BYTES = 60 * 1024;

/**
 * What a node says about one sandbox, in the order in which it happened: collected for a moment, written in batches one
 * after the other, each until it is written. A batch whose answer was lost is sent again under its number.
 */
export class Recorder {
  readonly #options: RecorderOptions;
  readonly #items: Item[] = [];
  #timer: TimerHandle | undefined;
  #writing: Promise<void> | undefined;
  #batch: number;
  /** Of lines that wait. */
  #lineChars = 0;
  #droppedLines = 0;
  /** Events of sessions that wait. */
  #waitingOfSessions = 0;
  /** Resolves when some of what waits is on its way. */
  #taken = Promise.withResolvers<void>();

  constructor(options: RecorderOptions) {
    this.#options = options;
    this.#batch = options.lastBatch;
    // What waits for an answer that cannot come is told so.
    options.signal.addEventListener("abort", () => this.#drop(options.signal.reason), { once: true });
  }

  /** Writes an event soon; of a session, where it is of one. */
  event(type: NewSandboxEvent["type"], data: NewSandboxEvent["data"], sessionId?: string): void {
    if (this.#options.signal.aborted) return;
    if (type !== "log_line") return this.#add(type, data, sessionId);
    for (const piece of piecesOf(data)) {
      const chars = charsOf(piece);
      if (this.#items.length >= QUEUED_EVENTS || this.#lineChars + chars > QUEUED_LINE_CHARS) this.#droppedLines++;
      else {
        this.#lineChars += chars;
        this.#add(type, piece, sessionId);
      }
    }
  }

  /** Lines that never came here; `why`: what they did instead. */
  linesLost(lines: number, why: string): void {
    this.event("error", { code: "lines_lost", message: `${lines} lines ${why}, and are lost`, lines });
  }

  #add(type: NewSandboxEvent["type"], data: NewSandboxEvent["data"], sessionId: string | undefined): void {
    this.#items.push({ type, atMs: this.#options.clock.nowMs(), data, sessionId });
    if (sessionId !== undefined) this.#waitingOfSessions++;
    if (this.#items.length >= BATCH_EVENTS) this.#writeNow();
    else this.#timer ??= this.#options.clock.after(BATCH_AFTER_MS, () => this.#writeNow());
  }

  /**
   * Resolves when it is written, with all events before it. Rejects as the control plane does: with `conflict`, say, when
   * the sandbox may not go there from the state that it has got into meanwhile.
   */
  async say(statement: Statement): Promise<void> {
    this.#options.signal.throwIfAborted();
    const settled = Promise.withResolvers<void>();
    this.#items.push({ statement, settled });
    this.#writeNow();
    await settled.promise;
  }

  /** Resolves when fewer than so many events of sessions wait. Rejects when nothing is written any more. */
  async room(events: number): Promise<void> {
    const { signal } = this.#options;
    signal.throwIfAborted();
    while (this.#waitingOfSessions >= events) await untilAborted(this.#taken.promise, signal);
  }

  /** Resolves when everything was written that was said before. Rejects when it cannot be any more. */
  async flush(): Promise<void> {
    this.#writeNow();
    while (this.#writing !== undefined) await untilAborted(this.#writing, this.#options.signal);
  }

  #writeNow(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#writing !== undefined || this.#items.length === 0) return;
    this.#writing = this.#writeAll().finally(() => {
      this.#writing = undefined;
      if (!this.#options.signal.aborted) this.#writeNow();
    });
  }

  /** Never rejects. */
  async #writeAll(): Promise<void> {
    while (this.#items.length > 0 && !this.#options.signal.aborted) {
      const { events, statement, settled } = this.#nextBatch();
      try {
        await this.#write({ number: ++this.#batch, events, ...statement });
        settled?.resolve();
      } catch (error) {
        if (this.#options.signal.aborted) settled?.reject(error);
        else await this.#refused(events, settled, error);
      }
    }
  }

  /** The control plane refused a batch for good. Its events are no reason: they are written without the statement. */
  async #refused(events: NewSandboxEvent[], settled: PromiseWithResolvers<void> | undefined, error: unknown) {
    const { log, hold } = this.#options;
    try {
      if (settled === undefined) throw error;
      if (events.length > 0) await this.#write({ number: ++this.#batch, events });
    } catch (reason) {
      if (!this.#options.signal.aborted) log.error({ err: reason, jobId: hold.jobId }, "events were refused");
    }
    settled?.reject(error);
  }

  #nextBatch(): { events: NewSandboxEvent[]; statement: Statement; settled?: PromiseWithResolvers<void> } {
    if (this.#droppedLines > 0) this.#tellOfDropped();
    this.#taken.resolve();
    this.#taken = Promise.withResolvers();
    const events: NewSandboxEvent[] = [];
    while (events.length < BATCH_EVENTS) {
      const item = this.#items.shift();
      if (item === undefined) break;
      if ("statement" in item) return { events, ...item };
      if (item.sessionId !== undefined) this.#waitingOfSessions--;
      if (item.type === "log_line") this.#lineChars -= charsOf(item.data);
      events.push(item);
    }
    return { events, statement: {} };
  }

  #tellOfDropped(): void {
    const lines = this.#droppedLines;
    const message = `${lines} lines came faster than they could be stored, and are lost`;
    this.#droppedLines = 0;
    this.#items.push({
      type: "error",
      atMs: this.#options.clock.nowMs(),
      data: { code: "lines_lost", message, lines },
    });
  }

  /** Until it is written, or never can be. */
  async #write(batch: SandboxBatch): Promise<void> {
    const { control, hold, onOrder, onLost, knownVersion } = this.#options;
    const known = knownVersion?.();
    const sent = known === undefined ? batch : { ...batch, knownVersion: known };
    try {
      onOrder(await untilAnswered("events of a sandbox", this.#options, () => control.record(hold, sent)));
    } catch (error) {
      if (isLeaseLost(error)) onLost(error);
      throw error;
    }
  }

  #drop(reason: unknown): void {
    this.#timer?.cancel();
    for (const item of this.#items.splice(0)) if ("statement" in item) item.settled.reject(reason);
  }
}

function charsOf({ line }: NewSandboxEvent["data"]): number {
  return typeof line === "string" ? line.length : 0;
}

/** A line as events that the control plane takes. */
function piecesOf(data: NewSandboxEvent["data"]): NewSandboxEvent["data"][] {
  const { line } = data;
  if (typeof line !== "string" || line.length <= PIECE_CHARS) return [data];
  if (Buffer.byteLength(JSON.stringify(line)) <= MOST_LINE_BYTES) return [data];
  const count = Math.ceil(line.length / PIECE_CHARS);
  return Array.from({ length: count }, (_, i) => ({
    ...data,
    line: line.slice(i * PIECE_CHARS, (i + 1) * PIECE_CHARS),
  }));
}
