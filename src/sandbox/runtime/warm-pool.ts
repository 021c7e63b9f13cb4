import type { Clock, TimerHandle } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Log } from "../../core/log.ts";
import type { SupervisedMachine } from "./machine.ts";

export type WarmPoolOptions = {
  clock: Clock;
  log: Log;
  /** Of each image. */
  machines: number;
  images: () => readonly string[];
  make: (image: string, leaseMs: number) => Promise<SupervisedMachine>;
  remove: (machine: SupervisedMachine) => Promise<void>;
};

/** Prepared machines die soon after the process that prepared them. */
const LEASE_MS = 30_000;
const RENEW_MS = 10_000;
/** What was taken is replaced when nobody has taken one for so long: whoever did is about to use it, and waits. */
const REFILL_AFTER_MS = 250;

/**
 * Machines that were started before anybody asked for one. They are made one after the other, and not just when one was
 * taken: what somebody waits for comes first. One that fails is made again with the next renewal of the leases, which
 * also fills a pool that is taken from all the time.
 */
export class WarmPool {
  readonly #options: WarmPoolOptions;
  readonly #ready = new Map<string, SupervisedMachine[]>();
  #timer: TimerHandle | undefined;
  #refill: TimerHandle | undefined;
  #filling: Promise<void> = Promise.resolve();
  #isFilling = false;
  #isClosed = false;

  constructor(options: WarmPoolOptions) {
    this.#options = options;
  }

  /** From here on. Repeatable. */
  start(): void {
    if (this.#timer !== undefined || this.#isClosed || this.#options.machines === 0) return;
    this.#timer = this.#options.clock.every(RENEW_MS, () => {
      void this.#renew();
      this.#fill();
    });
    this.#fill();
  }

  /** The one that has waited longest. */
  take(image: string): SupervisedMachine | undefined {
    const machine = this.#ready.get(image)?.shift();
    if (this.#timer !== undefined) this.#fillSoon();
    return machine;
  }

  /** They go with it. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#refill?.cancel();
    await this.#filling;
    const all = [...this.#ready.values()].flat();
    this.#ready.clear();
    await Promise.all(all.map((machine) => this.#options.remove(machine)));
  }

  #fillSoon(): void {
    this.#refill?.cancel();
    this.#refill = this.#options.clock.after(REFILL_AFTER_MS, () => this.#fill());
  }

  #fill(): void {
    if (this.#isFilling) return;
    this.#isFilling = true;
    this.#filling = this.#fillAll()
      .catch((error: unknown) => {
        this.#options.log.warn({ problem: messageOf(error) }, "a machine could not be prepared");
      })
      .finally(() => {
        this.#isFilling = false;
      });
  }

  async #fillAll(): Promise<void> {
    for (let image = this.#missing(); image !== undefined && !this.#isClosed; image = this.#missing()) {
      const machine = await this.#options.make(image, LEASE_MS);
      const ready = this.#readyOf(image);
      ready.push(machine);
      void machine.ended.then(() => this.#lost(ready, machine));
    }
  }

  #missing(): string | undefined {
    return this.#options.images().find((image) => this.#readyOf(image).length < this.#options.machines);
  }

  #readyOf(image: string): SupervisedMachine[] {
    const ready = this.#ready.get(image) ?? [];
    this.#ready.set(image, ready);
    return ready;
  }

  async #renew(): Promise<void> {
    const all = [...this.#ready.values()].flat();
    // One that has gone is told by its `ended`; one that is taken meanwhile has its lease from its new owner.
    await Promise.all(all.map((machine) => machine.renew(LEASE_MS).catch(() => undefined)));
  }

  /** It ended by itself, while it waited. */
  async #lost(ready: SupervisedMachine[], machine: SupervisedMachine): Promise<void> {
    const place = ready.indexOf(machine);
    if (place === -1) return;
    ready.splice(place, 1);
    try {
      await this.#options.remove(machine);
    } catch (error) {
      this.#options.log.warn({ problem: messageOf(error) }, "a prepared machine that has ended was not removed");
    }
  }
}
