import type { Readable } from "node:stream";
import { sleep, type Clock } from "../../../core/clock.ts";
import { EngineError } from "../../../core/errors.ts";
import type { Log } from "../../../core/log.ts";
import { SANDBOX_METRICS } from "../../contract/metrics.ts";
import type { Metrics } from "../../../core/metrics.ts";
import type { WebSocketConnection } from "../../../io/http/websocket.ts";
import type { NodeCall, NodeCaller, NodeCallHandler, NodeMethod, NodeReply } from "../../contract/link/calls.ts";
import { NodeSession } from "./link-client.ts";

/** How long a call waits for a node that was there a moment ago, or is looking for a process that has just started. */
const RECONNECT_MS = 2_000;
/** How long after it has left a node is expected back. */
const EXPECTED_MS = 15_000;

/** The nodes that this process can call: those in it, and those that are connected to it. */
export class NodeDirectory implements NodeCaller {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #metrics: ReturnType<typeof SANDBOX_METRICS.of>;
  readonly #startedAtMs: number;
  readonly #local = new Map<string, NodeCallHandler>();
  readonly #sessions = new Map<string, NodeSession>();
  /** When nodes that are not connected were last. */
  readonly #leftAtMs = new Map<string, number>();
  readonly #waiting = new Map<string, Set<() => void>>();

  constructor({ clock, log, metrics }: { clock: Clock; log: Log; metrics: Pick<Metrics, "registry"> }) {
    this.#clock = clock;
    this.#log = log;
    this.#metrics = SANDBOX_METRICS.of(metrics);
    this.#metrics.sandboxNodesConnected.watch({}, () => this.connected);
    this.#startedAtMs = clock.monotonicMs();
  }

  /** Nodes that are connected. */
  get connected(): number {
    return this.#sessions.size;
  }

  /** A node in this process: its calls are calls of the handler. Until the returned function is called. */
  register(nodeId: string, handler: NodeCallHandler): () => void {
    this.#local.set(nodeId, handler);
    this.#arrived(nodeId);
    return () => void (this.#local.get(nodeId) === handler && this.#local.delete(nodeId));
  }

  /** Has calls for the node go over the connection, for as long as it lasts; resolves when it is over. */
  async attach(nodeId: string, connection: WebSocketConnection): Promise<void> {
    const session = new NodeSession(connection);
    const before = this.#sessions.get(nodeId);
    this.#sessions.set(nodeId, session);
    this.#log.info({ nodeId, again: before !== undefined }, "a sandbox node is connected");
    // A node has one connection to each process: it has lost the one before.
    before?.terminate();
    this.#arrived(nodeId);
    const { code, reason } = await connection.closed;
    if (this.#sessions.get(nodeId) !== session) return;
    this.#sessions.delete(nodeId);
    this.#left(nodeId);
    this.#log.info({ nodeId, code, reason }, "a sandbox node has left");
  }

  async call(nodeId: string, call: NodeCall): Promise<NodeReply> {
    const { method } = call;
    const { sandboxCalls } = this.#metrics;
    try {
      const reply = await this.#call(nodeId, call);
      sandboxCalls.inc({ method, outcome: "ok" });
      if (reply.body !== undefined) this.#count(method, reply.body);
      return reply;
    } catch (error) {
      sandboxCalls.inc({ method, outcome: error instanceof EngineError ? error.code : "internal" });
      throw error;
    }
  }

  /** An answer that is passed on, until it has ended. */
  #count(method: NodeMethod, body: Readable): void {
    if (body.closed) return;
    const { sandboxStreamsOpen } = this.#metrics;
    sandboxStreamsOpen.inc({ method });
    body.once("close", () => sandboxStreamsOpen.dec({ method }));
  }

  async #call(nodeId: string, call: NodeCall): Promise<NodeReply> {
    call.signal.throwIfAborted();
    if (!this.#isHere(nodeId) && this.#isExpected(nodeId)) await this.#arrival(nodeId, call.signal);
    const local = this.#local.get(nodeId);
    if (local !== undefined) return await local(call);
    const session = this.#sessions.get(nodeId);
    if (session === undefined) throw new EngineError("unavailable", "the node of the sandbox is not connected");
    return await session.call(call);
  }

  /** Tells a node that is connected to this process that the desired state of a sandbox has changed. */
  tell(nodeId: string, sandboxId: string): void {
    this.#sessions.get(nodeId)?.tell(sandboxId);
  }

  #isHere(nodeId: string): boolean {
    return this.#local.has(nodeId) || this.#sessions.has(nodeId);
  }

  #isExpected(nodeId: string): boolean {
    const sinceMs = this.#leftAtMs.get(nodeId) ?? this.#startedAtMs;
    return this.#clock.monotonicMs() - sinceMs < EXPECTED_MS;
  }

  #left(nodeId: string): void {
    const nowMs = this.#clock.monotonicMs();
    for (const [id, atMs] of this.#leftAtMs) if (nowMs - atMs >= EXPECTED_MS) this.#leftAtMs.delete(id);
    this.#leftAtMs.set(nodeId, nowMs);
  }

  #arrived(nodeId: string): void {
    this.#leftAtMs.delete(nodeId);
    for (const wake of this.#waiting.get(nodeId) ?? []) wake();
  }

  /** Resolves when the node comes, or has not come in time; rejects with the reason of the signal. */
  async #arrival(nodeId: string, signal: AbortSignal): Promise<void> {
    const waiting = this.#waiting.get(nodeId) ?? new Set();
    this.#waiting.set(nodeId, waiting);
    const come = new AbortController();
    const wake = (): void => come.abort();
    waiting.add(wake);
    try {
      await sleep(this.#clock, RECONNECT_MS, AbortSignal.any([signal, come.signal]));
    } catch {
      signal.throwIfAborted();
    } finally {
      waiting.delete(wake);
      if (waiting.size === 0) this.#waiting.delete(nodeId);
    }
  }
}
