import { z } from "zod";
import { EngineError } from "../../../core/errors.ts";
import type { HttpResponse } from "../../../io/http/http.ts";
import type { Followed } from "../events/follower.ts";
import type { SandboxEvents } from "../events/log.ts";
import type { LoggedEvent } from "../events/read-events.ts";
import { passingStreamEvent } from "../events/stream-event.ts";
import { preferredType } from "../../../server/negotiate.ts";
import { defineRoute } from "../../../server/route.ts";
import { eventStream } from "../../../server/server-sent-events.ts";
import type { SandboxDeps } from "./deps.ts";
import { lastEventIdHeader, messageOf } from "./stream.ts";

/** What a sandbox writes: its console, provisioning scripts, and commands that are run with `log`. */

const TEXT = "text/plain";
const NDJSON = "application/x-ndjson";
const EVENTS = "text/event-stream";
const DEFAULT_TAIL = 100;
const MOST_TAIL = 10_000;

export const sandboxLogsRoute = defineRoute({
  role: "read",
  tag: "Sandboxes",
  method: "GET",
  path: "/api/v1/sandboxes/{id}/logs",
  summary: "The lines that a sandbox writes",
  description:
    "The newest `tail` lines, oldest first, and with `follow=true` those that come, until the sandbox is deleted. As " +
    "text each line is one; as NDJSON it is `{seq, timestamp, stream, line}`; as server-sent events it is the `log_line` " +
    "event of the sandbox's stream, and `Last-Event-ID` goes on after a line, in the place of `tail`; an `id` without an " +
    "event comes first, for those that lose the connection before the first line.",
  params: z.object({ id: z.string() }),
  query: z.object({
    follow: z
      .enum(["true", "false"])
      .optional()
      .transform((text) => text === "true")
      .describe("Whether to go on with lines as they come."),
    tail: z
      .string()
      .regex(/^\d{1,5}$/, `accepted are integers from 0 to ${MOST_TAIL}`)
      .transform(Number)
      .refine((count) => count <= MOST_TAIL, `accepted are integers from 0 to ${MOST_TAIL}`)
      .optional()
      .describe(`Lines of the past, at most; ${DEFAULT_TAIL} unless given.`),
  }),
  headers: lastEventIdHeader,
  responses: [
    { status: 200, description: "Lines.", type: TEXT },
    { status: 200, description: "A JSON object for each line.", type: NDJSON },
    { status: 200, description: "Server-sent events.", type: EVENTS },
  ],
  errors: ["sandbox_not_found", "rate_limited", "not_acceptable"],
  handler:
    ({ sandboxes, events, clock }: SandboxDeps) =>
    async ({ request, caller, params: { id }, query, headers }) => {
      await sandboxes.get(id, caller);
      const type = preferredType([TEXT, NDJSON, EVENTS], request.header("accept"));
      const lines = new Lines(events, id, {
        tail: query.tail ?? DEFAULT_TAIL,
        isFollowed: query.follow,
        afterSeq: type === EVENTS && query.follow ? headers["last-event-id"] : undefined,
      });
      await lines.open();
      if (type === TEXT) return streamed(`${TEXT}; charset=utf-8`, new LineBody(lines, ({ data }) => textOf(data)));
      if (type === NDJSON) return streamed(NDJSON, new LineBody(lines, jsonOf));
      const passing = (kind: string, data = {}) => ({
        data: passingStreamEvent(id, { type: kind, data, atMs: clock.nowMs() }),
      });
      return eventStream({
        events: {
          next: async () => {
            const item = await lines.take();
            return item === undefined
              ? { done: true, value: undefined }
              : { done: false, value: messageOf(item, passing) };
          },
          return: () => lines.return(),
        },
        clock,
        heartbeat: () => passing("keepalive"),
        beginsAfter: lines.beginsAfter?.toString(),
      });
    },
});

type Asked = { tail: number; isFollowed: boolean; afterSeq: number | undefined };

/** Lines of the past, then those that come. */
class Lines {
  readonly #events: SandboxEvents;
  readonly #id: string;
  readonly #asked: Asked;
  #past: readonly LoggedEvent[] = [];
  #told = 0;
  #beginsAfter: number | undefined;
  #followed: AsyncIterator<Followed> | undefined;

  constructor(events: SandboxEvents, id: string, asked: Asked) {
    this.#events = events;
    this.#id = id;
    this.#asked = asked;
  }

  async open(): Promise<void> {
    const { tail, isFollowed, afterSeq } = this.#asked;
    if (afterSeq !== undefined) {
      this.#followed = await this.#events.follow(this.#id, { afterSeq });
      return;
    }
    const { lines, upToSeq } = await this.#events.tail(this.#id, tail);
    this.#past = lines;
    const [first] = lines;
    this.#beginsAfter = first === undefined ? upToSeq : first.seq - 1;
    if (isFollowed) this.#followed = await this.#events.follow(this.#id, { afterSeq: upToSeq });
  }

  /** The number of an event: all that comes was after it. Undefined where the client has said it. */
  get beginsAfter(): number | undefined {
    return this.#beginsAfter;
  }

  /** All lines of the past that were not taken yet. */
  takePast(): readonly LoggedEvent[] {
    const past = this.#past.slice(this.#told);
    this.#told = this.#past.length;
    return past;
  }

  /** The next line, or what is to be said about the stream; undefined at its end. */
  async take(): Promise<Followed | undefined> {
    const event = this.#past[this.#told];
    if (event !== undefined) {
      this.#told++;
      return { type: "event", event };
    }
    this.#past = [];
    for (;;) {
      const step = await this.#followed?.next();
      if (step === undefined || step.done === true) return undefined;
      if (step.value.type !== "event" || step.value.event.type === "log_line") return step.value;
    }
  }

  async return(): Promise<IteratorReturnResult<undefined>> {
    await this.#followed?.return?.();
    return { done: true, value: undefined };
  }
}

/** By hand, for a generator that waits for a line cannot be told to end. */
class LineBody implements AsyncIterableIterator<Uint8Array> {
  readonly #lines: Lines;
  readonly #format: (event: LoggedEvent) => string;

  constructor(lines: Lines, format: (event: LoggedEvent) => string) {
    this.#lines = lines;
    this.#format = format;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Uint8Array>> {
    const past = this.#lines.takePast();
    if (past.length > 0) return { done: false, value: this.#encode(past) };
    const item = await this.#lines.take();
    if (item === undefined) return { done: true, value: undefined };
    // Lines alone cannot say it: a connection that breaks shows that some are missing.
    if (item.type !== "event") throw new EngineError("unavailable", "the lines go on: ask for them again");
    return { done: false, value: this.#encode([item.event]) };
  }

  return(): Promise<IteratorResult<Uint8Array>> {
    return this.#lines.return();
  }

  #encode(events: readonly LoggedEvent[]): Uint8Array {
    return Buffer.from(events.map((event) => `${this.#format(event)}\n`).join(""));
  }
}

function streamed(type: string, body: AsyncIterable<Uint8Array>): HttpResponse {
  return {
    status: 200,
    headers: { "Content-Type": type, "Cache-Control": "no-store", "X-Accel-Buffering": "no" },
    body,
  };
}

/** One line, whatever was written. */
function textOf({ line }: LoggedEvent["data"]): string {
  return String(line).replaceAll(/[\r\n]+/g, " ");
}

function jsonOf({ seq, atMs, data: { stream, line } }: LoggedEvent): string {
  return JSON.stringify({ seq, timestamp: new Date(atMs).toISOString(), stream, line });
}
