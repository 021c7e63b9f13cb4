import { systemClock, type Clock } from "../../core/clock.ts";
import { EngineError } from "../../core/errors.ts";
import type { HttpResponse } from "../../io/http/http.ts";
import { CallEndedError, type GrpcCall, type GrpcReply, type GrpcService } from "../../io/grpc/grpc.ts";
import { failureOf, type GrpcStatus } from "../../io/grpc/status.ts";
import type { Call } from "../route.ts";
import { messageFrame, requestMessage, trailerFrame } from "./web-frames.ts";

/** The media types of gRPC-web: those of the binary form, then of the text form. */
export const GRPC_WEB_TYPES = [
  "application/grpc-web+proto",
  "application/grpc-web",
  "application/grpc-web-text+proto",
  "application/grpc-web-text",
] as const;

export type WebOptions = {
  /** `package.Service/Method`, as the path of the request has it. */
  method: string;
  /** Most bytes of the request's message with its frame. */
  maxReceiveBytes: number;
  clock?: Clock;
};

/**
 * Answers a request of gRPC-web with what the service answers. Whatever becomes of the call, the answer is 200 and its
 * trailers, at the end of the body, have the status; what is refused before (no token) is answered as over HTTP.
 */
export async function answerOverWeb(service: GrpcService, call: Call, options: WebOptions): Promise<HttpResponse> {
  const { request, bodyType } = call;
  const isText = isTextType(bodyType);
  const answersText = isText || isTextType(request.header("accept") ?? "");
  const contentType = answersText ? "application/grpc-web-text+proto" : "application/grpc-web+proto";
  const headers = { "Content-Type": contentType, "Cache-Control": "no-store" };
  try {
    const handle = methodOf(service, options.method);
    const body = await request.body(isText ? base64Length(options.maxReceiveBytes) : options.maxReceiveBytes);
    const message = requestMessage(body, isText);
    const deadline = deadlineOf(request.header("grpc-timeout"), options.clock ?? systemClock);
    const reply = await handle(webCall(call, options, deadline), message).catch((error) => {
      deadline.cancel();
      throw error;
    });
    const frames = new WebFrames(reply, answersText, deadline.cancel);
    return { status: 200, headers: { ...reply.metadata, ...headers }, body: frames };
  } catch (error) {
    return { status: 200, headers, body: Buffer.concat(trailerFrame(failureOf(error), answersText)) };
  }
}

function isTextType(types: string): boolean {
  return types.includes("application/grpc-web-text");
}

function base64Length(sizeBytes: number): number {
  return Math.ceil(sizeBytes / 3) * 4;
}

function webCall({ request, requestId, clientAddress }: Call, { method }: WebOptions, deadline: Deadline): GrpcCall {
  return {
    path: `/${method}`,
    // The request has an id by now, and its call the same one.
    header: (name) => (name === "x-request-id" ? requestId : request.header(name)),
    headerNames: () => request.headerNames(),
    remoteAddress: clientAddress,
    signal: AbortSignal.any([request.signal, deadline.signal]),
  };
}

function methodOf({ name, methods }: GrpcService, path: string): GrpcService["methods"][string]["handle"] {
  const [, service, method = ""] = /^([^/]+)\/([^/]+)$/.exec(path) ?? [];
  const found = service === name && Object.hasOwn(methods, method) ? methods[method] : undefined;
  if (found !== undefined) return found.handle;
  throw new EngineError("method_not_allowed", `there is no method ${path.slice(0, 200)}`);
}

/** The frames of an answer. Not a generator: one that was never started would not give up the messages. */
class WebFrames implements AsyncIterableIterator<Uint8Array> {
  readonly #messages: AsyncIterator<Uint8Array>;
  readonly #isText: boolean;
  readonly #onEnd: () => void;
  #ready: Uint8Array[] = [];
  #isOver = false;

  constructor({ messages }: GrpcReply, isText: boolean, onEnd: () => void) {
    this.#messages = (messages instanceof Uint8Array ? one(messages) : messages)[Symbol.asyncIterator]();
    this.#isText = isText;
    this.#onEnd = onEnd;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Uint8Array>> {
    if (this.#ready.length === 0 && !this.#isOver) this.#ready = await this.#frame();
    const value = this.#ready.shift();
    return value === undefined ? { done: true, value: undefined } : { done: false, value };
  }

  async return(): Promise<IteratorResult<Uint8Array>> {
    this.#end();
    this.#ready = [];
    await this.#messages.return?.();
    return { done: true, value: undefined };
  }

  async #frame(): Promise<Uint8Array[]> {
    try {
      const step = await this.#messages.next();
      if (step.done !== true) return messageFrame(step.value, this.#isText);
    } catch (error) {
      return this.#last(failureOf(error));
    }
    return this.#last(undefined);
  }

  #last(failure: GrpcStatus | undefined): Uint8Array[] {
    this.#end();
    return trailerFrame(failure, this.#isText);
  }

  #end(): void {
    this.#isOver = true;
    this.#onEnd();
  }
}

async function* one(message: Uint8Array): AsyncGenerator<Uint8Array> {
  yield message;
}

const UNIT_MS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 };
const MAX_DELAY_MS = 2 ** 31 - 1;

/** Aborted when the time that a client gives a call is over, unless it is cancelled before. */
type Deadline = { signal: AbortSignal; cancel: () => void };

function deadlineOf(header: string | undefined, clock: Clock): Deadline {
  const controller = new AbortController();
  const { signal } = controller;
  if (header === undefined) return { signal, cancel: () => {} };
  const [, count, unit = ""] = /^(\d{1,8})([HMSmun])$/.exec(header) ?? [];
  if (count === undefined) throw new EngineError("invalid_header", "grpc-timeout is a number and one of H M S m u n");
  const delayMs = Math.min(Number(count) * (UNIT_MS[unit] ?? 0), MAX_DELAY_MS);
  const timer = clock.after(delayMs, () => controller.abort(new CallEndedError("deadline")), { background: true });
  return { signal, cancel: () => timer.cancel() };
}
