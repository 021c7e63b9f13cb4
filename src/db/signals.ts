/**
 * Short messages between the nodes that share a catalog, so that one need not ask all the time what another changed.
 * Best effort: a message may be lost, and may come twice. Whoever listens looks at the records too, now and then, and
 * always when it is told that something may have been missed.
 */
export interface Signals {
  /** To every listener of the topic, the sender's own among them. `payload` has at most `SIGNAL_BYTES`. */
  send(topic: string, payload: string): Promise<void>;
  /** Until the returned function is called. */
  listen(topic: string, listener: SignalListener): () => void;
}

/** `undefined`: messages may have been missed. */
export type SignalListener = (payload: string | undefined) => void;

/** PostgreSQL takes 8,000 bytes with the topic. */
export const SIGNAL_BYTES = 7_000;

/** The listeners of one process. */
export class Listeners {
  readonly #byTopic = new Map<string, Set<SignalListener>>();

  add(topic: string, listener: SignalListener): () => void {
    const listeners = this.#byTopic.get(topic) ?? new Set();
    this.#byTopic.set(topic, listeners);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }

  tell(topic: string, payload: string): void {
    for (const listener of this.#byTopic.get(topic) ?? []) listener(payload);
  }

  tellAllOfALoss(): void {
    for (const listeners of this.#byTopic.values()) for (const listener of listeners) listener(undefined);
  }
}

/** Signals of a catalog that one process has alone. Commands that open its file beside it are not heard. */
export function localSignals(): Signals {
  const listeners = new Listeners();
  return {
    send: async (topic, payload) => listeners.tell(topic, payload),
    listen: (topic, listener) => listeners.add(topic, listener),
  };
}
