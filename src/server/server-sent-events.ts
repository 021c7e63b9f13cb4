import type { Clock } from "../core/clock.ts";
import type { HttpResponse } from "../io/http/http.ts";
import type { RouteResponse } from "./route.ts";

/**
 * One event of a stream (WHATWG HTML §9.2): a client that names the `id` of its last one goes on after it. Without
 * `event` it is a `message`.
 */
export type ServerSentEvent =
  | { event?: string; id?: string; data: unknown }
  /** No event: where the stream is. A client that loses the connection names it all the same. */
  | { position: string };

/** Data that is JSON already, without line breaks. */
export class JsonText {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

export type EventStreamOptions = {
  /** Given up by `return()`, also while a `next()` is under way: then that resolves at once. */
  events: AsyncIterator<ServerSentEvent>;
  clock: Clock;
  /** An event for every 15 s, whatever else comes, in the place of comments. */
  heartbeat?: () => ServerSentEvent;
  /** Where it begins: the `id` of a client that loses the connection before an event with one has come. */
  beginsAfter?: string | undefined;
};

/** Proxies close connections on which nothing comes, mostly after a minute. */
const KEEP_ALIVE_MS = 15_000;
/** When a client that lost the connection comes again. */
const RETRY_MS = 1_000;

/** An answer with an event for each that comes, and a comment where none comes for 15 s. It ends when they end. */
export function eventStream(options: EventStreamOptions): HttpResponse {
  return {
    status: 200,
    headers: {
      "Content-Type": "text/event-stream; charset=utf-8",
      "Cache-Control": "no-store",
      // What nginx would hold back comes at once.
      "X-Accel-Buffering": "no",
    },
    body: new EventBody(options),
  };
}

/** What a row says of such an answer. */
export function eventStreamResponse(description: string): RouteResponse {
  return { status: 200, description, type: "text/event-stream" };
}

class EventBody implements AsyncIterableIterator<Uint8Array> {
  readonly #events: AsyncIterator<ServerSentEvent>;
  readonly #clock: Clock;
  readonly #heartbeat: (() => ServerSentEvent) | undefined;
  #next: Promise<IteratorResult<ServerSentEvent>> | undefined;
  readonly #beginsAfter: string | undefined;
  #hasBegun = false;
  #beatsAtMs: number;

  constructor({ events, clock, heartbeat, beginsAfter }: EventStreamOptions) {
    this.#events = events;
    this.#beginsAfter = beginsAfter;
    this.#clock = clock;
    this.#heartbeat = heartbeat;
    this.#beatsAtMs = clock.monotonicMs() + KEEP_ALIVE_MS;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Uint8Array>> {
    if (!this.#hasBegun) {
      // The client learns at once that it is heard.
      this.#hasBegun = true;
      const id = this.#beginsAfter === undefined ? "" : `id: ${this.#beginsAfter}\n`;
      return { done: false, value: Buffer.from(`${id}retry: ${RETRY_MS}\n\n`) };
    }
    this.#next ??= this.#events.next();
    const waitMs = this.#beatsAtMs - this.#clock.monotonicMs();
    const step = waitMs <= 0 ? undefined : await this.#within(this.#next, waitMs);
    if (step === undefined) return { done: false, value: this.#beat() };
    this.#next = undefined;
    if (step.done === true) return { done: true, value: undefined };
    // Comments are for silence alone.
    if (this.#heartbeat === undefined) this.#beatsAtMs = this.#clock.monotonicMs() + KEEP_ALIVE_MS;
    return { done: false, value: encode(step.value) };
  }

  async return(): Promise<IteratorResult<Uint8Array>> {
    await this.#events.return?.();
    return { done: true, value: undefined };
  }

  #beat(): Uint8Array {
    this.#beatsAtMs = this.#clock.monotonicMs() + KEEP_ALIVE_MS;
    return this.#heartbeat === undefined ? Buffer.from(": keep-alive\n\n") : encode(this.#heartbeat());
  }

  /** Undefined when it takes longer. */
  async #within<T>(promise: Promise<T>, timeoutMs: number): Promise<T | undefined> {
    const silence = Promise.withResolvers<undefined>();
    const timer = this.#clock.after(timeoutMs, () => silence.resolve(undefined), { background: true });
    try {
      return await Promise.race([promise, silence.promise]);
    } finally {
      timer.cancel();
    }
  }
}

/** JSON has no line breaks, so each field is one line. */
function encode(sent: ServerSentEvent): Buffer {
  if ("position" in sent) return Buffer.from(`id: ${sent.position}\nretry: ${RETRY_MS}\n\n`);
  const { event, id, data } = sent;
  const kind = event === undefined ? "" : `event: ${event}\n`;
  const named = id === undefined ? "" : `id: ${id}\n`;
  return Buffer.from(`${kind}${named}data: ${data instanceof JsonText ? data.text : JSON.stringify(data)}\n\n`);
}

/** The same iterator with each value changed. */
export function mapEvents<T>(
  events: AsyncIterator<T>,
  toEvent: (value: T) => ServerSentEvent,
): AsyncIterator<ServerSentEvent> {
  return {
    next: async () => {
      const step = await events.next();
      return step.done === true ? { done: true, value: undefined } : { done: false, value: toEvent(step.value) };
    },
    return: async () => {
      await events.return?.();
      return { done: true, value: undefined };
    },
  };
}
