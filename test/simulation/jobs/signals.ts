import type { Signals } from "../../../src/db/signals.ts";
import { Listeners } from "../../../src/db/signals.ts";
import type { Machine } from "../machine.ts";
import type { Scheduler } from "../scheduler.ts";

/** What becomes of the messages between nodes: shares of them. */
export type SignalFaults = { lost: number; doubled: number };

/** Signals of nodes that share a catalog: each message takes time to each of them, and is sometimes lost on the way. */
export class SimulatedSignals {
  faults: SignalFaults = { lost: 0, doubled: 0 };
  readonly #scheduler: Scheduler;
  readonly #nodes = new Map<Machine, Listeners>();

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  /** As one node has them. */
  of(machine: Machine): Signals {
    const listeners = new Listeners();
    this.#nodes.set(machine, listeners);
    machine.whenDead(() => this.#nodes.delete(machine));
    return {
      send: async (topic, payload) => {
        if (machine.lane.isCut) return;
        for (const node of this.#nodes.keys()) this.#sendTo(node, topic, payload);
      },
      listen: (topic, listener) => listeners.add(topic, listener),
    };
  }

  #sendTo(node: Machine, topic: string, payload: string): void {
    const { lost, doubled } = this.faults;
    const scheduler = this.#scheduler;
    if (scheduler.chance(lost)) {
      // Mostly nobody notices that anything was lost.
      if (scheduler.chance(0.3)) this.#deliver(node, "a loss", (listeners) => listeners.tellAllOfALoss());
      return;
    }
    for (let copies = scheduler.chance(doubled) ? 2 : 1; copies > 0; copies--) {
      this.#deliver(node, topic, (listeners) => listeners.tell(topic, payload));
    }
  }

  #deliver(node: Machine, what: string, tell: (listeners: Listeners) => void): void {
    const scheduler = this.#scheduler;
    const dueMs = scheduler.nowMs + 1 + scheduler.below(scheduler.pick([5, 50, 1_500]));
    const run = (): void => {
      const listeners = this.#nodes.get(node);
      if (listeners !== undefined) tell(listeners);
    };
    scheduler.at({ dueMs, lane: node.lane, label: `signal ${what}`, run });
  }
}
