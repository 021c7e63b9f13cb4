import { EngineError } from "../../src/core/errors.ts";
import { FIELDS } from "./requests.ts";
import { startOf, TIMER } from "./scheduler.ts";
import type { Slot, World } from "./world.ts";

/** What befalls the cluster beside the faults of single calls; how much of it, is drawn with the seed. */
export class Chaos {
  readonly #world: World;
  /** Of each, per step. */
  readonly #rates: {
    crash: number;
    freeze: number;
    leap: number;
    clock: number;
    drain: number;
    columns: number;
    stall: number;
  };

  constructor(world: World) {
    this.#world = world;
    const { scheduler } = world;
    const rate = (most: number): number => (scheduler.chance(0.4) ? 0 : scheduler.random.next() * most);
    this.#rates = {
      crash: rate(0.012),
      freeze: rate(0.006),
      leap: rate(0.008),
      clock: rate(0.003),
      drain: rate(0.003),
      columns: rate(0.004),
      stall: world.given.stallRate ?? rate(0.1),
    };
  }

  /** Time in which only clocks tick passes at once, in parts. */
  skip(): void {
    const { scheduler, users } = this.#world;
    let nextMs = Infinity;
    for (const event of scheduler.pending) {
      const { lane, label } = event;
      if (lane === undefined || users.has(lane) || label !== TIMER) nextMs = Math.min(nextMs, startOf(event));
    }
    const byMs = Math.min(nextMs - scheduler.nowMs, 12 * HOUR_MS) - BORING_MS;
    if (byMs > 0 && nextMs < Infinity) scheduler.pass(byMs);
  }

  /** Whether a process stands still that has requests in hand. */
  get isAnyStuck(): boolean {
    const { scheduler, ingest } = this.#world;
    return [...ingest.values()].some(({ inHand, machine }) => {
      return inHand > 0 && machine.lane.frozenUntilMs > scheduler.nowMs;
    });
  }

  /** Such a process is left alone: it hears nothing, and to die of it is to have died before. */
  #standsStill({ machine }: Slot): boolean {
    return machine !== undefined && machine.lane.frozenUntilMs > this.#world.scheduler.nowMs;
  }

  /** What happens before the next step, mostly nothing. */
  async strike(): Promise<void> {
    const { scheduler } = this.#world;
    const { crash, freeze, leap, clock, drain, columns } = this.#rates;
    const draw = scheduler.random.next();
    this.#stall();
    const slots = this.#world.slots.filter((slot) => !this.#standsStill(slot));
    if (slots.length === 0) return;
    const slot = scheduler.pick(slots);
    if (draw < crash) this.#crash(slot);
    else if (draw < crash + freeze) this.#freeze(slot);
    else if (draw < crash + freeze + leap) await this.#leap();
    else if (draw < crash + freeze + leap + clock) this.#stepClock(slot);
    else if (draw < crash + freeze + leap + clock + drain) this.#drain(slot);
    else if (draw < crash + freeze + leap + clock + drain + columns) await this.#addColumn();
  }

  #crash(slot: Slot): void {
    const { scheduler } = this.#world;
    this.#world.crash(slot);
    this.#restart(slot, scheduler.below(scheduler.pick([100, 10_000, HOUR_MS])));
  }

  #restart(slot: Slot, afterMs: number): void {
    const { scheduler } = this.#world;
    const run = (): Promise<void> => this.#world.start(slot);
    scheduler.at({ dueMs: scheduler.nowMs + afterMs, lane: undefined, label: `${slot.name} starts`, run });
  }

  /** The process stands still, and what others do goes on. */
  #freeze(slot: Slot): void {
    const { scheduler } = this.#world;
    if (slot.machine === undefined) return;
    const mostMs = scheduler.pick([1_000, 30_000, SHORT_MS, 6 * DAY_MS]);
    slot.machine.lane.frozenUntilMs = scheduler.nowMs + scheduler.below(mostMs);
    scheduler.note(`${slot.machine.name} stands still until ${slot.machine.lane.frozenUntilMs}`);
  }

  /**
   * A process stands still for days just when it has written what it has not committed or acknowledged. The others go
   * on: somebody must be left whom its clients reach meanwhile.
   */
  #stall(): void {
    const { scheduler, ingest } = this.#world;
    for (const { inHand, machine } of ingest.values()) {
      if (inHand === 0 || this.isAnyStuck) continue;
      const hasWritten = scheduler.pending.some(({ lane, label }) => {
        return lane === machine.lane && (this.#world.given.stallAt ?? WRITTEN).test(label);
      });
      if (!hasWritten || !scheduler.chance(this.#rates.stall)) continue;
      machine.lane.frozenUntilMs = scheduler.nowMs + scheduler.below(6 * DAY_MS);
      scheduler.note(`${machine.name} stands still until ${machine.lane.frozenUntilMs}`);
    }
  }

  /** Everything stands still but the clocks. */
  async #leap(): Promise<void> {
    const { scheduler } = this.#world;
    const byMs = scheduler.below(scheduler.pick([20_000, SHORT_MS, SHORT_MS, 13 * HOUR_MS, 4 * DAY_MS]));
    // A write that is on its way lands within the deadlines of its driver, whatever becomes of who has sent it.
    if (byMs > SHORT_MS) await this.#landAll();
    scheduler.pass(byMs);
  }

  /** What lands may send more. */
  async #landAll(): Promise<void> {
    const { scheduler } = this.#world;
    const isOpen = (): boolean => scheduler.pending.some(({ lane }) => lane === undefined);
    while (isOpen() && scheduler.failure === undefined) await this.land();
  }

  /** What is under way in the network gets there. */
  async land(): Promise<void> {
    const { scheduler } = this.#world;
    for (const event of scheduler.pending.filter(({ lane }) => lane === undefined)) await scheduler.run(event);
  }

  #stepClock({ machine }: Slot): void {
    const { scheduler } = this.#world;
    if (machine !== undefined) machine.clock.skewMs = scheduler.pick([0, 200_000, -HOUR_MS]);
  }

  /** Told to stop, it ends what it does, and is replaced. */
  #drain(slot: Slot): void {
    const { scheduler, ingest } = this.#world;
    for (const service of [...slot.stop, ...(ingest.has(slot) ? [ingest.get(slot)?.service] : [])])
      void service?.drain();
    const dueMs = scheduler.nowMs + scheduler.below(60_000);
    const run = (): void => this.#crash(slot);
    scheduler.at({ dueMs, lane: undefined, label: `${slot.name} is replaced`, run });
  }

  /** Somebody adds a column by hand that requests may bring too. */
  async #addColumn(): Promise<void> {
    const { scheduler, catalog, model } = this.#world;
    const table = scheduler.pick(await catalog.tables("default"));
    const type = { kind: scheduler.pick(["int", "string", "dynamic"] as const) };
    try {
      await catalog.addColumns(table.id, [{ name: scheduler.pick(FIELDS), type }]);
    } catch (error) {
      if (!(error instanceof EngineError) || error.code !== "conflict") throw error;
    }
    model.look("addColumns");
  }
}

const WRITTEN = /^answer to put/;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** So long nothing has to happen before time passes at once. */
const BORING_MS = 8_000;
/** No longer than a request may be under way by the deadlines of drivers. */
const SHORT_MS = 40 * 60_000;
