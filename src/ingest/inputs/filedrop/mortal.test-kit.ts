/** What a call gets of a process that is dead. */
export class Dead extends Error {
  constructor() {
    super("the process is dead");
    this.name = "Dead";
  }
}

export type Death = {
  /** The call at which the process dies, from 1. */
  atCall: number;
  /** Whether that call takes effect. */
  when: "before" | "after";
};

/**
 * A process that dies (`kill -9`) at one of its calls to the world: that one takes effect or not, its answer never
 * arrives, and none comes after it. What is not awaited at that moment is not done either.
 */
export class Mortal {
  readonly #death: Death;
  readonly #died = new AbortController();
  #calls = 0;

  constructor(death: Death) {
    this.#death = death;
  }

  /** Aborted by the death. */
  get signal(): AbortSignal {
    return this.#died.signal;
  }

  get calls(): number {
    return this.#calls;
  }

  /** The object, whose methods are calls of the process. Methods that give iterables count by their beginning. */
  wrap<T extends object>(target: T): T {
    return new Proxy(target, {
      get: (inner, name) => {
        const value: unknown = Reflect.get(inner, name, inner);
        if (typeof value !== "function") return value;
        return (...args: unknown[]) => this.#call(() => Reflect.apply(value, inner, args) as unknown);
      },
    });
  }

  #call(effect: () => unknown): unknown {
    if (this.signal.aborted) return Promise.reject(new Dead());
    const isLast = ++this.#calls === this.#death.atCall;
    if (isLast && this.#death.when === "before") return this.#die();
    const result = effect();
    if (!isLast) return result;
    return result instanceof Promise ? result.then(() => this.#die()) : this.#die();
  }

  #die(): Promise<never> {
    this.#died.abort(new Dead());
    const dead = Promise.reject(new Dead());
    dead.catch(() => undefined);
    return dead;
  }
}
