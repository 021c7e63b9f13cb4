import type { Clock, TimerHandle } from "../../core/clock.ts";
import {
  WEBSOCKET_CLOSE,
  WEBSOCKET_LIMITS,
  WebSocketClosedError,
  type WebSocketClosing,
  type WebSocketConnection,
  type WebSocketLimits,
  type WebSocketMessage,
} from "./websocket.ts";

/** A connection as a library has it. None of these is called after `ended`. */
export interface WebSocketWire {
  readonly bufferedBytes: number;
  /** Sends it, or keeps it until it can be sent. */
  send(message: WebSocketMessage): void;
  ping(): void;
  /** Sends a close frame, and ends the connection when the other side answers it. */
  close(code: number, reason: string): void;
  terminate(): void;
  /** Stops reading; what is under way still comes. False where the library cannot. */
  pause(): boolean;
  resume(): void;
}

/** Beyond it a sender waits, until half of it is left. */
const SEND_HIGH_WATER_BYTES = 256 * 1024;
/** Beyond it the connection is not read, until half of it is left. */
const RECEIVE_HIGH_WATER_BYTES = 256 * 1024;
const MAX_REASON_BYTES = 123;
const MESSAGE_BYTES = 64;
/** How long the other side has to answer a close frame. */
const CLOSE_TIMEOUT_MS = 3_000;
const OVER: IteratorReturnResult<undefined> = { done: true, value: undefined };

/** The part of a connection that is the same for all libraries, between its wire and its user. */
export class OpenWebSocket implements WebSocketConnection {
  readonly protocol: string;
  readonly closed: Promise<WebSocketClosing>;
  readonly #wire: WebSocketWire;
  readonly #clock: Clock;
  readonly #limits: WebSocketLimits;
  readonly #abort = new AbortController();
  readonly #closed = Promise.withResolvers<WebSocketClosing>();
  readonly #pulse: TimerHandle;
  #waiting: WebSocketMessage[] = [];
  #waitingBytes = 0;
  #isPaused = false;
  #wakeReader: (() => void) | undefined;
  #wakeSenders: (() => void)[] = [];
  /** What this side, or else the other, said first. */
  #closing: WebSocketClosing | undefined;
  #ended: WebSocketClosing | undefined;
  #closeTimer: TimerHandle | undefined;
  #heardAtMs: number;
  #pingedAtMs: number;

  constructor(wire: WebSocketWire, protocol: string, options: { clock: Clock; limits?: Partial<WebSocketLimits> }) {
    const { clock, limits } = options;
    this.#wire = wire;
    this.protocol = protocol;
    this.#clock = clock;
    this.#limits = { ...WEBSOCKET_LIMITS, ...limits };
    this.closed = this.#closed.promise;
    this.#heardAtMs = clock.monotonicMs();
    this.#pingedAtMs = this.#heardAtMs;
    const { pingEveryMs, deadAfterMs } = this.#limits;
    this.#pulse = clock.every(Math.max(10, Math.min(pingEveryMs, deadAfterMs) / 4), () => this.#beat());
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get bufferedBytes(): number {
    return this.#ended === undefined ? this.#wire.bufferedBytes : 0;
  }

  async send(message: WebSocketMessage): Promise<void> {
    this.#throwIfClosing();
    this.#wire.send(message);
    if (this.#wire.bufferedBytes < SEND_HIGH_WATER_BYTES) return;
    await new Promise<void>((resolve) => this.#wakeSenders.push(resolve));
    this.#throwIfClosing();
  }

  messages(): AsyncIterableIterator<WebSocketMessage> {
    const iterator: AsyncIterableIterator<WebSocketMessage> = {
      [Symbol.asyncIterator]: () => iterator,
      next: () => this.#next(),
      return: async () => {
        this.close();
        this.#drop();
        return OVER;
      },
    };
    return iterator;
  }

  close(code: number = WEBSOCKET_CLOSE.normal, reason = ""): void {
    if (this.#closing !== undefined) return;
    const cut = cutToBytes(reason, MAX_REASON_BYTES);
    this.#begin({ code, reason: cut });
    this.#closeTimer = this.#clock.after(CLOSE_TIMEOUT_MS, () => this.terminate(), { background: true });
    // The answer to the close frame comes behind what the other side has sent before.
    this.#drop();
    this.#wire.close(code, cut);
  }

  terminate(): void {
    if (this.#ended !== undefined) return;
    this.#begin({ code: WEBSOCKET_CLOSE.broken, reason: "" });
    this.#drop();
    this.#wire.terminate();
  }

  /** A message has come. The wire gives it away. */
  received(message: WebSocketMessage): void {
    this.heard();
    // Nobody takes it any more.
    if (this.#closing !== undefined) return;
    const { maxMessageBytes, maxWaitingBytes } = this.#limits;
    if (sizeOf(message) > maxMessageBytes) {
      this.close(WEBSOCKET_CLOSE.tooBig, `messages have at most ${maxMessageBytes} bytes`);
      return;
    }
    this.#waiting.push(message);
    this.#waitingBytes += costOf(message);
    this.#wake();
    if (this.#waitingBytes < RECEIVE_HIGH_WATER_BYTES) return;
    if (!this.#isPaused) this.#isPaused = this.#wire.pause();
    if (!this.#isPaused && this.#waitingBytes > maxWaitingBytes) {
      this.close(WEBSOCKET_CLOSE.refused, "more was sent than is read here");
    }
  }

  /** The other side lives. */
  heard(): void {
    this.#heardAtMs = this.#clock.monotonicMs();
  }

  /** The kernel has taken more of what was sent. */
  drained(): void {
    if (this.#wakeSenders.length === 0 || this.#wire.bufferedBytes > SEND_HIGH_WATER_BYTES / 2) return;
    this.#releaseSenders();
  }

  /** The connection is over. */
  ended(code: number, reason: string): void {
    if (this.#ended !== undefined) return;
    this.#begin({ code, reason });
    this.#ended = this.#closing ?? { code, reason };
    this.#pulse.cancel();
    this.#closeTimer?.cancel();
    this.#closed.resolve(this.#ended);
  }

  #begin(closing: WebSocketClosing): void {
    if (this.#closing !== undefined) return;
    this.#closing = closing;
    this.#abort.abort(new WebSocketClosedError(closing));
    this.#releaseSenders();
    this.#wake();
  }

  async #next(): Promise<IteratorResult<WebSocketMessage, undefined>> {
    for (;;) {
      const message = this.#waiting.shift();
      if (message !== undefined) {
        this.#took(costOf(message));
        return { done: false, value: message };
      }
      if (this.#closing !== undefined) {
        if (this.#closing.code === WEBSOCKET_CLOSE.broken) throw new WebSocketClosedError(this.#closing);
        return OVER;
      }
      await new Promise<void>((resolve) => {
        this.#wakeReader = resolve;
      });
    }
  }

  #took(sizeBytes: number): void {
    this.#waitingBytes -= sizeBytes;
    if (this.#isPaused && this.#waitingBytes < RECEIVE_HIGH_WATER_BYTES / 2) this.#unpause();
  }

  #drop(): void {
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#unpause();
  }

  #unpause(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    // Who was not read could not be heard.
    this.heard();
    if (this.#ended === undefined) this.#wire.resume();
  }

  #beat(): void {
    const nowMs = this.#clock.monotonicMs();
    const { pingEveryMs, deadAfterMs } = this.#limits;
    if (!this.#isPaused && nowMs - this.#heardAtMs >= deadAfterMs) this.terminate();
    else if (this.#closing === undefined && nowMs - this.#pingedAtMs >= pingEveryMs) {
      this.#pingedAtMs = nowMs;
      this.#wire.ping();
    }
  }

  #throwIfClosing(): void {
    if (this.#closing !== undefined) throw new WebSocketClosedError(this.#closing);
  }

  #wake(): void {
    const wake = this.#wakeReader;
    this.#wakeReader = undefined;
    wake?.();
  }

  #releaseSenders(): void {
    for (const wake of this.#wakeSenders.splice(0)) wake();
  }
}

/** What a message takes while it waits: a million empty ones are not nothing. */
function costOf(message: WebSocketMessage): number {
  return MESSAGE_BYTES + sizeOf(message);
}

function sizeOf(message: WebSocketMessage): number {
  return typeof message === "string" ? Buffer.byteLength(message) : message.length;
}

function cutToBytes(text: string, maxBytes: number): string {
  if (Buffer.byteLength(text) <= maxBytes) return text;
  // A character that was cut in two is left out.
  return Buffer.from(text)
    .subarray(0, maxBytes)
    .toString()
    .replace(/\ufffd+$/, "");
}
