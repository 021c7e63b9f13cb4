import { readFile } from "node:fs/promises";
import type { Clock } from "../../core/clock.ts";
import { sleep } from "../../core/clock.ts";
import type { Random } from "../../core/random.ts";
import { checkObjectKey } from "./objectstore.ts";
import type { DeleteOptions, GetOptions, ListOptions, ObjectInfo, ObjectStore, PutOptions } from "./objectstore.ts";

/**
 * The faulty twin of an object store, for tests: it does everything that the contract allows a store to do and that a
 * good day never shows. Faults come from a script (rules, first match wins, each used `times` times) and, where no rule
 * matches, from rates; both only through the `Random` and `Clock` given, so that a seed repeats a run exactly as long
 * as the calls come in the same order.
 *
 * `crash()` is the power cut: calls under way never succeed, each object they were writing is kept, lost or torn by
 * chance, and what was acknowledged stays. Until `restart()` every call fails.
 */
export type Operation = "put" | "get" | "head" | "list" | "delete";

export type Fault =
  /** Fails with nothing done. */
  | { kind: "fail_before"; error?: Error }
  /** Does it all, then fails. */
  | { kind: "fail_after"; error?: Error }
  /** Writes a prefix of the object, or deletes a prefix of the keys, then fails; anything else fails before. */
  | { kind: "tear"; error?: Error }
  /** Waits, before or after the effect, then succeeds. */
  | { kind: "delay"; beforeMs?: number; afterMs?: number };

export type FaultRule = {
  operation: Operation;
  /** Only calls with a key (or prefix) that holds this text. */
  keyHolds?: string;
  /** Matching calls to let pass first (0). */
  skip?: number;
  /** How often it strikes (1). */
  times?: number;
  fault: Fault;
};

/** Probabilities per call, tried in this order; the delay is drawn evenly up to `maxDelayMs` on each side. */
export type FaultRates = {
  failBefore?: number;
  failAfter?: number;
  tear?: number;
  delay?: number;
  maxDelayMs?: number;
};

export type FaultyStoreOptions = { inner: ObjectStore; clock: Clock; random: Random; rates?: FaultRates };

/** What an injected failure is thrown as, where the rule names no error of its own. */
export class InjectedFault extends Error {
  constructor(what: string) {
    super(`injected fault: ${what}`);
    this.name = "InjectedFault";
  }
}

type PendingRule = { rule: FaultRule; skip: number; times: number };
type Write = { key: string; bytes: Uint8Array; reached: boolean };

export class FaultyStore implements ObjectStore {
  /** Calls so far, failed ones included. */
  readonly calls: Record<Operation, number> = { put: 0, get: 0, head: 0, list: 0, delete: 0 };
  rates: FaultRates;
  readonly #inner: ObjectStore;
  readonly #clock: Clock;
  readonly #random: Random;
  #rules: PendingRule[] = [];
  /** Puts not acknowledged yet. */
  readonly #writing = new Set<Write>();
  /** What the store underneath is doing now. */
  readonly #effects = new Set<Promise<unknown>>();
  #life = new AbortController();

  constructor(options: FaultyStoreOptions) {
    this.#inner = options.inner;
    this.#clock = options.clock;
    this.#random = options.random;
    this.rates = options.rates ?? {};
  }

  /** Appends rules to the script. */
  script(...rules: readonly FaultRule[]): void {
    this.#rules.push(...rules.map((rule) => ({ rule, skip: rule.skip ?? 0, times: rule.times ?? 1 })));
  }

  /** Cuts the power. Resolves when the fate of every object that was being written is settled. */
  async crash(): Promise<void> {
    this.#life.abort(new InjectedFault("the store crashed"));
    const interrupted = [...this.#writing];
    // The store underneath is not interrupted: its work ends first, and fate decides afterwards.
    await Promise.allSettled(this.#effects);
    for (const write of interrupted) await this.#settle(write);
  }

  /** The store is back, with what survived. */
  restart(): void {
    this.#life = new AbortController();
  }

  async put(key: string, bytes: Uint8Array, options?: PutOptions): Promise<void> {
    await this.#put(key, bytes, () => this.#inner.put(key, bytes, options));
  }

  /** A put like any other. What a tear or a crash leaves is made of the bytes that the file had at first. */
  async putFile(key: string, path: string, options?: PutOptions): Promise<void> {
    checkObjectKey(key);
    await this.#put(key, await readFile(path), () => this.#inner.putFile(key, path, options));
  }

  async #put(key: string, bytes: Uint8Array, put: () => Promise<void>): Promise<void> {
    checkObjectKey(key);
    const write: Write = { key, bytes, reached: false };
    const effect = async () => {
      write.reached = true;
      await put();
    };
    const torn = () => {
      write.reached = true;
      return this.#inner.put(key, this.#prefixOf(bytes));
    };
    this.#writing.add(write);
    try {
      await this.#call("put", key, effect, torn);
    } finally {
      this.#writing.delete(write);
    }
  }

  get(key: string, options?: GetOptions): Promise<Uint8Array<ArrayBuffer>> {
    return this.#call("get", key, () => this.#inner.get(key, options));
  }

  head(key: string): Promise<ObjectInfo | undefined> {
    return this.#call("head", key, () => this.#inner.head(key));
  }

  /** Faults strike when the listing starts. */
  async *list(prefix: string, options?: ListOptions): AsyncGenerator<ObjectInfo> {
    const started = await this.#call("list", prefix, () => Promise.resolve(this.#inner.list(prefix, options)));
    const life = this.#life.signal;
    for await (const info of started) {
      life.throwIfAborted();
      yield info;
    }
  }

  delete(keys: readonly string[], options?: DeleteOptions): Promise<void> {
    const torn = () => this.#inner.delete(keys.slice(0, Math.floor(this.#random.next() * keys.length)));
    return this.#call("delete", keys.join("\n"), () => this.#inner.delete(keys, options), torn);
  }

  localPath(key: string): string {
    if (this.#inner.localPath === undefined) throw new Error("the store underneath has no local files");
    return this.#inner.localPath(key);
  }

  async #call<T>(operation: Operation, key: string, effect: () => Promise<T>, torn?: () => Promise<void>): Promise<T> {
    this.calls[operation]++;
    const life = this.#life.signal;
    life.throwIfAborted();
    const fault = this.#faultFor(operation, key);
    if (fault?.kind === "tear" && torn !== undefined) await this.#track(torn());
    if (fault?.kind === "fail_before" || fault?.kind === "tear") throw errorOf(fault, operation, key);
    if (fault?.kind === "delay") await this.#wait(fault.beforeMs, life);
    life.throwIfAborted();
    const result = await this.#track(effect());
    // An effect that outlasted the crash is not acknowledged.
    life.throwIfAborted();
    if (fault?.kind === "fail_after") throw errorOf(fault, operation, key);
    if (fault?.kind === "delay") await this.#wait(fault.afterMs, life);
    return result;
  }

  #faultFor(operation: Operation, key: string): Fault | undefined {
    for (const pending of this.#rules) {
      const { rule } = pending;
      if (rule.operation !== operation || !key.includes(rule.keyHolds ?? "")) continue;
      if (pending.skip > 0) {
        pending.skip--;
        continue;
      }
      if (--pending.times === 0) this.#rules = this.#rules.filter((other) => other !== pending);
      return rule.fault;
    }
    return this.#faultByChance();
  }

  /** Draws the same number of values for every call, so that a changed rate shifts nothing after it. */
  #faultByChance(): Fault | undefined {
    const [draw, before, after] = [this.#random.next(), this.#random.next(), this.#random.next()];
    const { failBefore = 0, failAfter = 0, tear = 0, delay = 0, maxDelayMs = 0 } = this.rates;
    if (draw < failBefore) return { kind: "fail_before" };
    if (draw < failBefore + failAfter) return { kind: "fail_after" };
    if (draw < failBefore + failAfter + tear) return { kind: "tear" };
    if (draw >= failBefore + failAfter + tear + delay) return undefined;
    return { kind: "delay", beforeMs: Math.floor(before * maxDelayMs), afterMs: Math.floor(after * maxDelayMs) };
  }

  #track<T>(effect: Promise<T>): Promise<T> {
    const tracked = effect.finally(() => this.#effects.delete(tracked));
    this.#effects.add(tracked);
    return tracked;
  }

  async #wait(delayMs: number | undefined, life: AbortSignal): Promise<void> {
    if (delayMs !== undefined && delayMs > 0) await sleep(this.#clock, delayMs, life);
  }

  /** What the power cut left of an object: all of it, nothing, or a prefix. */
  async #settle(write: Write): Promise<void> {
    if (!write.reached) return;
    const draw = this.#random.next();
    if (draw < 1 / 3) await this.#inner.delete([write.key]);
    else await this.#inner.put(write.key, draw < 2 / 3 ? this.#prefixOf(write.bytes) : write.bytes);
  }

  #prefixOf(bytes: Uint8Array): Uint8Array {
    return bytes.subarray(0, Math.floor(this.#random.next() * bytes.length));
  }
}

function errorOf(fault: { kind: string; error?: Error }, operation: Operation, key: string): Error {
  return fault.error ?? new InjectedFault(`${operation} ${key} (${fault.kind})`);
}
