import type { Readable } from "node:stream";
import type { Dispatcher } from "undici";
import { EngineError, systemCodeOf } from "../../../core/errors.ts";
import { ReceivedBody } from "./received-body.ts";
import type { BodyAttempt, ReplayableBody } from "./replayable-body.ts";

/** A request as it goes to a peer. */
export type Outgoing = {
  method: string;
  /** With the query string. */
  path: string;
  /** Name, value, name, value…; values are Latin-1, byte for byte. Framing and `Host` are the client's own. */
  headers: readonly string[];
  body: ReplayableBody | undefined;
  /** Cancels the request, at whatever stage it is. */
  signal: AbortSignal;
};

export type Answer = { status: number; headers: readonly string[]; body: ReceivedBody };

/** What became of one try to have a peer answer. */
export type Try =
  | { kind: "answered"; answer: Answer }
  /** There was no connection, so nothing was sent. */
  | { kind: "unreachable"; error: Error }
  /** The connection broke before the answer; nobody knows what the peer did. */
  | { kind: "broken"; error: Error };

/** How a try ended in all. An answer is over with its last byte; `cut` is one that broke off before. */
export const ENDINGS = ["answered", "cut", "unreachable", "broken", "cancelled"] as const;

export type Ending = (typeof ENDINGS)[number];

/** Bytes of the bodies of one try. */
export type Passed = { outBytes: number; inBytes: number };

type OnEnd = (ending: Ending, passed: Passed) => void;

/**
 * Sends a request over a connection of the pool, which takes as much of the body as the peer does. `onEnd` is called
 * once, when the peer is done with it.
 * @returns as soon as the answer begins, or it is certain that it will not. Rejects with the reason of the signal, and with
 * `bad_request` for a request that HTTP has no room for.
 */
export function send(pool: Dispatcher, outgoing: Outgoing, onEnd: OnEnd): Promise<Try> {
  const exchange = new Exchange(outgoing, onEnd);
  exchange.start(pool);
  return exchange.result;
}

class Exchange implements Dispatcher.DispatchHandler {
  readonly #outgoing: Outgoing;
  readonly #onEnd: OnEnd;
  readonly #sending: BodyAttempt | undefined;
  readonly #outcome = Promise.withResolvers<Try>();
  #controller: Dispatcher.DispatchController | undefined;
  #received: ReceivedBody | undefined;
  #receivedBytes = 0;
  #ended = false;

  constructor(outgoing: Outgoing, onEnd: OnEnd) {
    this.#outgoing = outgoing;
    this.#onEnd = onEnd;
    this.#sending = outgoing.body?.attempt();
  }

  get result(): Promise<Try> {
    return this.#outcome.promise;
  }

  start(pool: Dispatcher): void {
    const { method, path, headers, signal } = this.#outgoing;
    signal.addEventListener("abort", this.#cancel);
    if (signal.aborted) {
      this.#cancel();
      return;
    }
    const options = { method, path, headers: [...headers], headersTimeout: 0, bodyTimeout: 0 };
    // The library takes any async iterable for a body; its types name fewer things.
    const body = (this.#sending ?? null) as unknown as Readable | null;
    pool.dispatch({ ...options, body }, this);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // Cancelled while it waited for the connection.
    if (this.#ended) controller.abort(reasonOf(this.#outgoing.signal));
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    // An interim answer (RFC 9110 §15.2) is between the peer and us.
    if (status < 200 || this.#ended) return;
    const headers = rawPairs(controller.rawHeaders);
    this.#sending?.hold();
    this.#received = new ReceivedBody({
      pause: () => controller.pause(),
      resume: () => controller.resume(),
      cancel: this.#cancel,
    });
    this.#outcome.resolve({ kind: "answered", answer: { status, headers, body: this.#received } });
  }

  onResponseData(_controller: Dispatcher.DispatchController, piece: Buffer): void {
    this.#receivedBytes += piece.length;
    this.#received?.push(piece);
  }

  onResponseEnd(): void {
    this.#received?.end();
    this.#end("answered");
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#ended) return;
    if (this.#received !== undefined) {
      this.#received.fail(error);
      this.#end("cut");
      return;
    }
    const code = systemCodeOf(error);
    if (code === "UND_ERR_INVALID_ARG" || code === "UND_ERR_NOT_SUPPORTED") {
      // The library refuses to send such a request; no peer has to do with it.
      this.#outcome.reject(new EngineError("bad_request", `the request cannot be passed on: ${error.message}`));
      this.#end("cancelled");
      return;
    }
    const kind = this.#controller === undefined ? "unreachable" : "broken";
    this.#outcome.resolve({ kind, error });
    this.#end(kind);
  }

  readonly #cancel = (): void => {
    if (this.#ended) return;
    const reason = reasonOf(this.#outgoing.signal);
    this.#end("cancelled");
    this.#received?.fail(reason);
    this.#outcome.reject(reason);
    this.#controller?.abort(reason);
  };

  #end(ending: Ending): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#outgoing.signal.removeEventListener("abort", this.#cancel);
    this.#sending?.stop();
    this.#onEnd(ending, { outBytes: this.#sending?.sentBytes ?? 0, inBytes: this.#receivedBytes });
  }
}

function reasonOf(signal: AbortSignal): Error {
  return signal.reason instanceof Error ? signal.reason : new Error("the request was cancelled");
}

/** What the parser saw, byte for byte: values as Latin-1. */
function rawPairs(raw: Dispatcher.DispatchController["rawHeaders"]): string[] {
  if (!Array.isArray(raw)) throw new TypeError("an answer without its raw headers");
  return raw.map((item) => (typeof item === "string" ? item : item.toString("latin1")));
}
