import { passingStreamEvent, type StreamEvent } from "../events/stream-event.ts";
import type { ExecNews } from "../exec/exec-reader.ts";
import type { ServerSentEvent } from "../../../server/server-sent-events.ts";

/** When a client may come again that is sent to another server. */
const RECONNECT_AFTER_MS = 1_000;

type Place = { stdout: number; stderr: number };
export type ExecPlace = Place & { isOver: boolean };

export const EXEC_PLACE = /^(\d{1,15})-(\d{1,15})(-end)?$/;

/** The place in the output of a command that an `id` names. */
export function execPlaceOf(id: string): ExecPlace {
  const [, stdout, stderr, end] = EXEC_PLACE.exec(id) ?? [];
  return { stdout: Number(stdout), stderr: Number(stderr), isOver: end !== undefined };
}

export type ExecMessagesOptions = {
  sandboxId: string;
  execId: string;
  news: AsyncGenerator<ExecNews>;
  nowMs: () => number;
  /** Aborted by this when the news are given up. */
  reading: AbortController;
  /** Aborted when this server sends its clients elsewhere. */
  closing: AbortSignal;
  /** Told when the client leaves before the end. */
  onLeft: () => Promise<void>;
};

/**
 * What a command does as messages for its client. By hand, for a generator that waits cannot be told to end: here that
 * ends what it waits for.
 */
export class ExecMessages implements AsyncIterator<ServerSentEvent> {
  readonly #options: ExecMessagesOptions;
  readonly #onClosing: () => void;
  #hasBegun = false;
  #isOver = false;

  constructor(options: ExecMessagesOptions) {
    this.#options = options;
    const { closing, reading } = options;
    this.#onClosing = () => reading.abort();
    closing.addEventListener("abort", this.#onClosing, { once: true });
    if (closing.aborted) reading.abort();
  }

  async next(): Promise<IteratorResult<ServerSentEvent>> {
    const { execId, news, closing } = this.#options;
    if (!this.#hasBegun) {
      this.#hasBegun = true;
      return this.#say("connected", { exec_id: execId });
    }
    if (this.#isOver) return { done: true, value: undefined };
    const step = await news.next();
    if (step.done !== true) return this.#tell(step.value);
    this.#end();
    if (closing.aborted) return this.#say("reconnect", { after_ms: RECONNECT_AFTER_MS });
    return { done: true, value: undefined };
  }

  async return(): Promise<IteratorResult<ServerSentEvent>> {
    if (!this.#isOver) {
      this.#end();
      this.#options.reading.abort();
      await this.#options.news.return(undefined);
      await this.#options.onLeft();
    }
    return { done: true, value: undefined };
  }

  /** One that comes every 15 s. */
  keepalive(): ServerSentEvent {
    return { data: this.#event("keepalive", {}) };
  }

  #end(): void {
    this.#isOver = true;
    this.#options.closing.removeEventListener("abort", this.#onClosing);
  }

  #tell(news: ExecNews): IteratorResult<ServerSentEvent> {
    if (news.type === "broken") {
      this.#end();
      return this.#say("error", { code: news.error.code, message: news.error.message });
    }
    const { event, had } = news;
    const place = `${had.stdout}-${had.stderr}`;
    if (event.type === "exit") {
      this.#end();
      const { exit_code, signal, timed_out } = event;
      return this.#say("exit", { exit_code, signal, timed_out }, `${place}-end`);
    }
    if (event.type === "skipped") {
      const { stream, bytes } = event;
      const message = `${bytes} bytes of ${stream} are no longer there`;
      return this.#say("error", { code: "output_lost", message, stream, bytes }, place);
    }
    const { type, data, encoding } = event;
    return this.#say(type, encoding === undefined ? { text: data } : { data, encoding }, place);
  }

  #say(type: string, data: StreamEvent["data"], id?: string): IteratorResult<ServerSentEvent> {
    const event = this.#event(type, data);
    if (id === undefined) return { done: false, value: { data: event } };
    return { done: false, value: { id, data: { ...event, id } } };
  }

  #event(type: string, data: StreamEvent["data"]): StreamEvent {
    const { sandboxId, nowMs } = this.#options;
    return passingStreamEvent(sandboxId, { type, data, atMs: nowMs() });
  }
}
