import type { Signals } from "../../db/signals.ts";
import { messageOf } from "../../core/errors.ts";
import type { Log } from "../../core/log.ts";
import type { DesiredStateChange } from "../contract/control-port.ts";

const ORDERS = "sandbox_orders";
const EVENTS = "sandbox_events";
const ROOM = "sandbox_room";
const TURNS = "sandbox_turns";

/**
 * What processes tell each other about sandboxes. Some signals are missed: whoever listens also looks now and then, and
 * when `sandboxId` is undefined, for then some may have been.
 */
export class SandboxSignals {
  readonly #signals: Signals;
  readonly #log: Log;
  readonly #nodesHere = new Map<string, (sandboxId: string, change?: DesiredStateChange) => void>();

  constructor({ signals, log }: { signals: Signals; log: Log }) {
    this.#signals = signals;
    this.#log = log;
  }

  /** What is to become of a sandbox has changed: for the node that has it. One in this process is told how. */
  orderChanged(sandboxId: string, nodeId: string, change?: DesiredStateChange): void {
    const tell = this.#nodesHere.get(nodeId);
    if (tell === undefined) this.#send(ORDERS, `${sandboxId} ${nodeId}`);
    else tell(sandboxId, change);
  }

  /** The log of a sandbox has grown. */
  eventsAdded(sandboxId: string): void {
    this.#send(EVENTS, sandboxId);
  }

  /** The agent has answered a message, or never will. */
  turnEnded(sessionId: string): void {
    this.#send(TURNS, sessionId);
  }

  /** Sandboxes that wait for a node may find room. */
  roomFreed(): void {
    this.#send(ROOM, "");
  }

  onDesiredState(listener: (sandboxId: string | undefined, nodeId: string | undefined) => void): () => void {
    return this.#signals.listen(ORDERS, (payload) => {
      const [sandboxId, nodeId] = payload?.split(" ") ?? [];
      listener(sandboxId, nodeId);
    });
  }

  /** For a node in this process. */
  onDesiredStateOf(nodeId: string, listener: (sandboxId: string, change?: DesiredStateChange) => void): () => void {
    const stop = this.onDesiredState((sandboxId, ofNode) => {
      if (sandboxId !== undefined && ofNode === nodeId) listener(sandboxId);
    });
    this.#nodesHere.set(nodeId, listener);
    return () => {
      stop();
      if (this.#nodesHere.get(nodeId) === listener) this.#nodesHere.delete(nodeId);
    };
  }

  onEvents(listener: (sandboxId: string | undefined) => void): () => void {
    return this.#signals.listen(EVENTS, listener);
  }

  onTurnEnded(listener: (sessionId: string | undefined) => void): () => void {
    return this.#signals.listen(TURNS, listener);
  }

  onRoom(listener: () => void): () => void {
    return this.#signals.listen(ROOM, () => listener());
  }

  #send(topic: string, payload: string): void {
    // Nobody waits for it: who is not told looks for itself a little later.
    this.#signals.send(topic, payload).catch((error: unknown) => {
      this.#log.debug({ topic, reason: messageOf(error) }, "others were not told about a sandbox");
    });
  }
}
