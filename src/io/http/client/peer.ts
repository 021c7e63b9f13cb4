import { isIP, type LookupFunction } from "node:net";
import { Pool } from "undici";
import { fullBackoffMs } from "../../../core/backoff.ts";
import type { Clock, TimerHandle } from "../../../core/clock.ts";
import { messageOf } from "../../../core/errors.ts";
import type { Log } from "../../../core/log.ts";
import type { Metrics } from "../../../core/metrics.ts";
import type { Random } from "../../../core/random.ts";
import { ENDINGS, send, type Ending, type Outgoing, type Passed, type Try } from "./exchange.ts";
import { WEBSOCKET_CLOSE } from "../websocket.ts";
import { dialWebSocket, type WebSocketDial, type WebSocketDialled } from "./websocket-client.ts";

/** How often, how long and how many times. */
export type PeerTimes = {
  /** Between two looks at `/health`, on average. */
  healthEveryMs: number;
  healthTimeoutMs: number;
  connectTimeoutMs: number;
  /** A peer is ejected after so many failures without a success between them. */
  ejectAfter: number;
  /** How long an ejected peer is left alone: at first, and, having doubled each time, at most. */
  ejectMs: number;
  maxEjectMs: number;
  /** A connection older than this is not used again, so that whoever balances behind an address gets a say. */
  connectionLifetimeMs: number;
  /** Names are looked up so often. */
  resolveEveryMs: number;
};

export const PEER_TIMES: PeerTimes = {
  healthEveryMs: 2_000,
  healthTimeoutMs: 2_000,
  connectTimeoutMs: 2_000,
  ejectAfter: 2,
  ejectMs: 1_000,
  // A peer that is back is found as soon as one that is gone is missed: the leases of nodes behind an edge do not wait.
  maxEjectMs: 2_000,
  connectionLifetimeMs: 60_000,
  resolveEveryMs: 5_000,
};

/** A request for a WebSocket, wherever it goes. */
export type PeerDial = Pick<WebSocketDial, "path" | "headers" | "protocols" | "limits" | "signal">;

/** What a peer needs of the world. */
export type PeerPorts = {
  /** What this kind of peers is called in metrics and the log: `query`, `ingest`. */
  upstream: string;
  clock: Clock;
  random: Random;
  log: Log;
  metrics: Metrics;
  times: PeerTimes;
};

/** Most requests in flight at one peer; beyond them it counts as not available. */
const MAX_IN_FLIGHT = 1_000;
/**
 * A socket says that it has room only when the kernel has taken all that was written, so that a piece of a body is
 * asked for when nobody reads the one before any more; see `replayable-body.ts`. Reading keeps its room, except over
 * TLS, where node has one setting for both.
 */
const UNBUFFERED = { highWaterMark: undefined, writableHighWaterMark: 1 };
const UNBUFFERED_TLS = { highWaterMark: 1 };
/** Shorter than any server waits for a next request, so that none closes a connection on which one is sent. */
export const PEER_KEEP_ALIVE_MS = 4_000;

/**
 * One address of one server, and what is known of it:
 *
 *   up ⇄ draining    as `GET /health` says; a draining peer finishes what it has and gets nothing new
 *   up → ejected     after `ejectAfter` failures in a row to connect or to be healthy
 *   ejected → up     once it is healthy; it is asked after a time that doubles with each failure
 *
 * A peer is taken to be up until something is known.
 */
export class Peer {
  /** Its address, for metrics and the log. */
  readonly name: string;
  readonly #ports: PeerPorts;
  readonly #healthPath: string;
  readonly #basePath: string;
  readonly #place: { origin: string; address: string };
  readonly #pool: Pool;
  readonly #labels: { upstream: string; peer: string };
  #state: "up" | "draining" | "ejected" = "up";
  #inFlight = 0;
  #failures = 0;
  #ejections = 0;
  #timer: TimerHandle | undefined;
  #stopped = false;

  /** @param baseUrl of the server; `address` is the one of its host that is meant. */
  constructor(ports: PeerPorts, baseUrl: string, address: string) {
    this.#ports = ports;
    const url = new URL(baseUrl);
    this.#basePath = url.pathname.replace(/\/$/, "");
    this.#place = { origin: url.origin, address };
    this.#healthPath = `${this.#basePath}/health`;
    this.name = hostOf(url) === address ? baseUrl : `${baseUrl} (${address})`;
    this.#labels = { upstream: ports.upstream, peer: this.name };
    this.#pool = new Pool(url.origin, {
      pipelining: 1,
      connect: {
        ...(url.protocol === "https:" ? UNBUFFERED_TLS : UNBUFFERED),
        lookup: always(address),
        timeout: ports.times.connectTimeoutMs,
      },
      allowH2: false,
      clientTtl: ports.times.connectionLifetimeMs,
      keepAliveTimeout: PEER_KEEP_ALIVE_MS,
      keepAliveMaxTimeout: PEER_KEEP_ALIVE_MS,
    });
    ports.metrics.edgeInFlight.set(this.#labels, 0);
    this.#show();
    this.#checkIn(this.#jittered(ports.times.healthEveryMs / 2));
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** Whether it may get a new request. */
  get usable(): boolean {
    return this.#state === "up" && this.#inFlight < MAX_IN_FLIGHT && !this.#stopped;
  }

  /** See `send` of `exchange.ts`. The path is below the peer's own. */
  async send(outgoing: Outgoing): Promise<Try> {
    this.#count(1);
    const onEnd = (ending: Ending, { outBytes, inBytes }: Passed): void => {
      this.#count(-1, ending);
      const { metrics, upstream } = this.#ports;
      metrics.edgeBytes.inc({ upstream, direction: "out" }, outBytes);
      metrics.edgeBytes.inc({ upstream, direction: "in" }, inBytes);
    };
    const result = await send(this.#pool, { ...outgoing, path: this.#basePath + outgoing.path }, onEnd);
    if (result.kind === "answered") this.#failures = 0;
    else if (result.kind === "unreachable") this.#failed(messageOf(result.error));
    return result;
  }

  /** Asks for a WebSocket, which is in flight until it is closed. See `dialWebSocket`; the path is below the peer's own. */
  async dial(request: PeerDial): Promise<WebSocketDialled> {
    const { clock, times } = this.#ports;
    const { origin, address } = this.#place;
    const lookup = always(address);
    const path = this.#basePath + request.path;
    const dial = { ...request, path, origin, connectTimeoutMs: times.connectTimeoutMs, lookup, clock };
    this.#count(1);
    let dialled: WebSocketDialled;
    try {
      dialled = await dialWebSocket(dial);
    } catch (error) {
      this.#count(-1, "cancelled");
      throw error;
    }
    if (dialled.kind === "unreachable") this.#failed(messageOf(dialled.error));
    else if (dialled.kind !== "broken") this.#failures = 0;
    if (dialled.kind !== "open") this.#count(-1, dialled.kind === "refused" ? "answered" : dialled.kind);
    else
      void dialled.connection.closed.then(({ code }) =>
        this.#count(-1, code === WEBSOCKET_CLOSE.broken ? "cut" : "answered"),
      );
    return dialled;
  }

  /** It said itself that it takes no more. */
  drains(): void {
    if (this.#state !== "up") return;
    this.#ports.log.info(this.#labels, "a peer is draining");
    this.#become("draining");
  }

  /** Takes no new requests, finishes those it has, and closes its connections. */
  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#timer?.cancel();
    await this.#pool.close();
    const { metrics } = this.#ports;
    for (const gauge of [metrics.edgeInFlight, metrics.edgePeerUsable]) gauge.remove(this.#labels);
    metrics.edgeEjections.remove(this.#labels);
    for (const outcome of ENDINGS) metrics.edgeRequests.remove({ ...this.#labels, outcome });
  }

  /** Cuts off what is in flight. */
  async destroy(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    await this.#pool.destroy();
  }

  #count(by: 1 | -1, ending?: Ending): void {
    const { metrics } = this.#ports;
    this.#inFlight += by;
    metrics.edgeInFlight.inc(this.#labels, by);
    if (ending !== undefined) metrics.edgeRequests.inc({ ...this.#labels, outcome: ending });
  }

  #checkIn(delayMs: number): void {
    this.#timer?.cancel();
    if (this.#stopped) return;
    this.#timer = this.#ports.clock.after(delayMs, () => void this.#check(), { background: true });
  }

  async #check(): Promise<void> {
    try {
      const status = await this.#healthStatus();
      if (status === 200) this.#healthy();
      else if (status === 503) this.#refuses();
      else this.#unhealthy(`/health answers ${status}`);
    } catch (error) {
      this.#unhealthy(messageOf(error));
    }
    if (this.#state !== "ejected") this.#checkIn(this.#jittered(this.#ports.times.healthEveryMs));
  }

  async #healthStatus(): Promise<number> {
    const { clock, times } = this.#ports;
    const late = new AbortController();
    const timer = clock.after(times.healthTimeoutMs, () => late.abort(new Error("/health does not answer")));
    try {
      const { statusCode, body } = await this.#pool.request({
        method: "GET",
        path: this.#healthPath,
        signal: late.signal,
      });
      await body.dump();
      return statusCode;
    } finally {
      timer.cancel();
    }
  }

  #healthy(): void {
    this.#failures = 0;
    this.#ejections = 0;
    if (this.#state === "up") return;
    this.#ports.log.info(this.#labels, "a peer is back");
    this.#become("up");
  }

  /** It answers, and wants no requests. */
  #refuses(): void {
    this.#failures = 0;
    this.#ejections = 0;
    if (this.#state === "ejected") this.#become("up");
    this.drains();
  }

  #unhealthy(reason: string): void {
    if (this.#state === "ejected") this.#leaveAlone();
    else this.#failed(reason);
  }

  #failed(reason: string): void {
    // Requests that began before it was ejected may go on to fail.
    if (this.#state === "ejected" || this.#stopped) return;
    this.#failures++;
    if (this.#failures < this.#ports.times.ejectAfter) return;
    this.#ports.metrics.edgeEjections.inc(this.#labels);
    this.#ports.log.warn({ ...this.#labels, reason }, "a peer is ejected");
    this.#become("ejected");
    this.#leaveAlone();
  }

  #leaveAlone(): void {
    const { ejectMs, maxEjectMs } = this.#ports.times;
    this.#checkIn(this.#jittered(fullBackoffMs({ firstMs: ejectMs, mostMs: maxEjectMs }, this.#ejections)));
    this.#ejections++;
  }

  #become(state: "up" | "draining" | "ejected"): void {
    this.#state = state;
    this.#show();
  }

  #show(): void {
    this.#ports.metrics.edgePeerUsable.set(this.#labels, this.#state === "up" ? 1 : 0);
  }

  /** Peers of many edges are not all asked at once. */
  #jittered(delayMs: number): number {
    return delayMs * (0.75 + this.#ports.random.next() / 2);
  }
}

function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, "");
}

/** Answers every look-up with one address, so that connections go there and names (`Host`, TLS) stay as they are. */
function always(address: string): LookupFunction {
  const family = isIP(address);
  return (_hostname, options, callback) => {
    if (options.all === true) callback(null, [{ address, family }]);
    else callback(null, address, family);
  };
}
