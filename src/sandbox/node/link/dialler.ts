import { backoffMs } from "../../../core/backoff.ts";
import { pause, type Clock } from "../../../core/clock.ts";
import { messageOf } from "../../../core/errors.ts";
import type { Log } from "../../../core/log.ts";
import type { Random } from "../../../core/random.ts";
import { dialWebSocket } from "../../../io/http/client/websocket-client.ts";
import type { WebSocketConnection } from "../../../io/http/websocket.ts";
import type { NodeCallHandler } from "../../contract/link/calls.ts";
import { LINK_LIMITS, LINK_PATH, LINK_PROTOCOL } from "../../contract/link/link.ts";
import { serveCalls } from "./link-server.ts";

export type DiallerOptions = {
  /** Answers the calls of the control plane. */
  handler: NodeCallHandler;
  /** Is told of a sandbox whose desired state has changed. */
  onDesiredState: (sandboxId: string) => void;
  /** The worker's token. */
  token: string;
  userAgent: string;
  /** Dialled as long as no gateway is known that can be reached: the address that the node was configured with. */
  fallbackUrl?: string;
  /** Throws for a gateway that this node will not send its token to. */
  checkUrl: (url: string) => void;
  clock: Clock;
  random: Random;
  log: Log;
};

const CONNECT_TIMEOUT_MS = 5_000;
const ANSWER_TIMEOUT_MS = 10_000;
/** Between two tries, at first; and, having doubled each time, at most. */
const RETRY = { firstMs: 250, mostMs: 5_000 } as const;
/** A connection that lasted so long was a good one. */
const GOOD_MS = 10_000;

/** Keeps one connection from this node to each gateway. */
export class Dialler {
  readonly #options: DiallerOptions;
  readonly #lines = new Map<string, Line>();
  #stopped = false;

  constructor(options: DiallerOptions) {
    this.#options = options;
  }

  /** Gateways that this node is connected to. */
  get connected(): number {
    return [...this.#lines.values()].filter((line) => line.isOpen).length;
  }

  /** These are the gateways from here on. The connection to one that is not among them any more is closed. */
  dial(urls: readonly string[]): void {
    if (this.#stopped) return;
    const wanted = new Set(this.#reachable(urls));
    for (const [url, line] of this.#lines) {
      if (wanted.has(url)) continue;
      this.#lines.delete(url);
      line.stop();
    }
    for (const url of wanted) {
      if (!this.#lines.has(url)) this.#lines.set(url, new Line(url, this.#options));
    }
  }

  /** A process that listens on the loopback of another machine says so, and means its own. */
  #reachable(urls: readonly string[]): readonly string[] {
    const { fallbackUrl } = this.#options;
    if (fallbackUrl === undefined) return urls;
    const others = isLoopback(fallbackUrl) ? urls : urls.filter((url) => !isLoopback(url));
    return others.length === 0 ? [fallbackUrl] : others;
  }

  /** Closes every connection; calls under way fail. */
  stop(): void {
    this.#stopped = true;
    for (const line of this.#lines.values()) line.stop();
    this.#lines.clear();
  }
}

function isLoopback(url: string): boolean {
  const { hostname } = new URL(url);
  return hostname === "localhost" || hostname === "[::1]" || hostname.startsWith("127.");
}

/** The connection to one gateway, opened again whenever it is lost. */
class Line {
  readonly #url: string;
  readonly #options: DiallerOptions;
  readonly #stopping = new AbortController();
  #connection: WebSocketConnection | undefined;
  /** Whether it was said that the gateway is not reached. */
  #isMissed = false;

  constructor(url: string, options: DiallerOptions) {
    this.#url = url;
    this.#options = options;
    void this.#run();
  }

  get isOpen(): boolean {
    return this.#connection !== undefined;
  }

  stop(): void {
    this.#stopping.abort();
    this.#connection?.close();
  }

  async #run(): Promise<void> {
    const { clock, random } = this.#options;
    const { signal } = this.#stopping;
    let failures = 0;
    while (!signal.aborted) {
      const sinceMs = clock.monotonicMs();
      await this.#hold();
      failures = clock.monotonicMs() - sinceMs >= GOOD_MS ? 0 : failures + 1;
      // Nodes that lost the same gateway do not come back all at once.
      await pause(clock, backoffMs(RETRY, failures, random, 1), signal);
    }
  }

  /** Opens the connection and answers calls for as long as it lasts. Never rejects. */
  async #hold(): Promise<void> {
    const { handler, onDesiredState, log } = this.#options;
    try {
      const connection = await this.#open();
      this.#connection = connection;
      if (this.#stopping.signal.aborted) connection.close();
      log.info({ gateway: this.#url }, "connected to the control plane");
      this.#isMissed = false;
      await serveCalls(connection, { handler, onDesiredState, log });
    } catch (error) {
      if (!this.#isMissed && !this.#stopping.signal.aborted) {
        log.warn({ gateway: this.#url, reason: messageOf(error) }, "no connection to the control plane; trying on");
      }
      this.#isMissed = true;
    } finally {
      this.#connection = undefined;
    }
  }

  async #open(): Promise<WebSocketConnection> {
    const { token, userAgent, checkUrl, clock } = this.#options;
    checkUrl(this.#url);
    const { origin, pathname } = new URL(this.#url);
    const dialled = await dialWebSocket({
      origin,
      path: pathname.replace(/\/$/, "") + LINK_PATH,
      headers: { authorization: `Bearer ${token}`, "user-agent": userAgent },
      protocols: [LINK_PROTOCOL],
      limits: LINK_LIMITS,
      connectTimeoutMs: CONNECT_TIMEOUT_MS,
      answerTimeoutMs: ANSWER_TIMEOUT_MS,
      isUnmasked: origin.startsWith("https:"),
      signal: this.#stopping.signal,
      clock,
    });
    if (dialled.kind === "open") return dialled.connection;
    if (dialled.kind !== "refused") throw dialled.error;
    throw new Error(`it answered ${dialled.status}: ${Buffer.from(dialled.body).toString().slice(0, 500)}`);
  }
}
