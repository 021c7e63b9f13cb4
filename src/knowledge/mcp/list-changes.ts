import type { ServerEvent, ServerEventBus } from "@modelcontextprotocol/server";
import { type Caller } from "../../auth/caller.ts";
import type { Clock, TimerHandle } from "../../core/clock.ts";
import { EngineError, messageOf, type ErrorCode } from "../../core/errors.ts";
import type { Log } from "../../core/log.ts";
import { VERSION } from "../../core/version.ts";
import type { Signals } from "../../db/signals.ts";
import type { ServerSentEvent } from "../../server/server-sent-events.ts";
import { MCP_LIMITS } from "./limits.ts";

/** Nodes tell each other of which version they are: each version has its tools. */
const TOPIC = "mcp_tools";
/** How often the reader of each stream is checked. */
const CHECK_MS = 30_000;
const REFUSALS = new Set<ErrorCode>(["unauthorized", "forbidden"]);

export type StreamRequest = {
  caller: Caller;
  /** Who the same request is from now; rejects when it would be refused. */
  authenticateAgain: () => Promise<Caller>;
};

/**
 * The streams of one node on which clients hear that the list of tools has changed: a node of another version has started
 * (a load balancer may send their next request there), the catalog cannot say whether one has, or the role of the caller
 * has changed. A stream ends when its token may no longer read, and when the server drains.
 */
export class ListChanges {
  readonly #signals: Signals;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #open = new Set<ListStream>();
  readonly #listeners = new Set<(event: ServerEvent) => void>();
  readonly #stopListening: () => void;
  #check: TimerHandle | undefined;
  #isClosed = false;

  constructor({ signals, clock, log }: { signals: Signals; clock: Clock; log: Log }) {
    this.#signals = signals;
    this.#clock = clock;
    this.#log = log;
    this.#stopListening = signals.listen(TOPIC, (version) => {
      if (version !== VERSION) this.#tellAll();
    });
  }

  /** How the library hears of changes, for clients of 2026-07-28 and later. */
  readonly bus: ServerEventBus = {
    publish: () => this.#tellAll(),
    subscribe: (listener) => {
      this.#listeners.add(listener);
      return () => void this.#listeners.delete(listener);
    },
  };

  get count(): number {
    return this.#open.size;
  }

  /** Says of which version this node is. Best effort: whoever misses it has the old list until the next connection. */
  async announce(): Promise<void> {
    await this.#signals.send(TOPIC, VERSION).catch((error: unknown) => {
      this.#log.debug(
        { reason: messageOf(error) },
        "other nodes were not told which version of MCP tools this one offers",
      );
    });
  }

  /** Throws `too_many_requests`, and `unavailable` while the server drains. */
  open(request: StreamRequest): ListStream {
    if (this.#isClosed) throw new EngineError("unavailable", "the server is draining");
    const { caller } = request;
    const own = [...this.#open].filter((stream) => isSame(stream.caller, caller)).length;
    // While authentication is off nobody can be told from others.
    const isOver = caller.kind !== "anonymous" && own >= MCP_LIMITS.streamsPerCaller;
    if (isOver || this.#open.size >= MCP_LIMITS.streams) {
      const headers = { "Retry-After": "5" };
      throw new EngineError("too_many_requests", "there are too many streams of list changes open", { headers });
    }
    const stream = new ListStream(request, () => {
      this.#open.delete(stream);
      if (this.#open.size === 0) this.#check?.cancel();
    });
    this.#open.add(stream);
    if (this.#open.size === 1) this.#checkLater();
    return stream;
  }

  /** Clients come again, to another node. */
  endStreams(): void {
    this.#isClosed = true;
    for (const stream of this.#open) stream.end();
  }

  close(): void {
    this.endStreams();
    this.#stopListening();
  }

  #tellAll(): void {
    for (const stream of this.#open) stream.tell();
    for (const listener of this.#listeners) listener({ kind: "tools_list_changed" });
  }

  #checkLater(): void {
    const check = async () => {
      await Promise.all([...this.#open].map((stream) => this.#checkReader(stream)));
      if (this.#open.size > 0) this.#checkLater();
    };
    this.#check?.cancel();
    this.#check = this.#clock.after(CHECK_MS, () => void check(), { background: true });
  }

  async #checkReader(stream: ListStream): Promise<void> {
    try {
      const before = stream.caller.role;
      stream.caller = await stream.authenticateAgain();
      if (stream.caller.role !== before) this.#tellAll();
    } catch (error) {
      // What cannot be known now is asked again.
      if (error instanceof EngineError && REFUSALS.has(error.code)) stream.end();
      else this.#log.debug({ reason: messageOf(error) }, "the reader of a stream of list changes could not be checked");
    }
  }
}

function isSame(a: Caller, b: Caller): boolean {
  return a.kind === b.kind && a.subject === b.subject;
}

/** One open stream: an iterator of events, at most one of which waits. */
export class ListStream implements AsyncIterator<ServerSentEvent> {
  caller: Caller;
  readonly authenticateAgain: () => Promise<Caller>;
  /** Aborted when it ends. */
  readonly ended: AbortSignal;
  readonly #ending = new AbortController();
  readonly #onEnd: () => void;
  #hasChange = false;
  #wake: (() => void) | undefined;

  constructor({ caller, authenticateAgain }: StreamRequest, onEnd: () => void) {
    this.caller = caller;
    this.authenticateAgain = authenticateAgain;
    this.ended = this.#ending.signal;
    this.#onEnd = onEnd;
  }

  tell(): void {
    this.#hasChange = true;
    this.#wake?.();
  }

  end(): void {
    if (this.ended.aborted) return;
    this.#ending.abort();
    this.#onEnd();
    this.#wake?.();
  }

  async next(): Promise<IteratorResult<ServerSentEvent>> {
    while (!this.#hasChange && !this.ended.aborted) {
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    if (this.ended.aborted) return { done: true, value: undefined };
    this.#hasChange = false;
    return { done: false, value: { data: { jsonrpc: "2.0", method: "notifications/tools/list_changed" } } };
  }

  async return(): Promise<IteratorResult<ServerSentEvent>> {
    this.end();
    return { done: true, value: undefined };
  }
}
