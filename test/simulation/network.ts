import { EngineError } from "../../src/core/errors.ts";
import { InjectedFault } from "../../src/io/objectstore/faulty.test-kit.ts";
import type { Machine } from "./machine.ts";
import type { Scheduler } from "./scheduler.ts";

/**
 * Calls of a process to what outlives it: the catalog, the object store. Each takes time on the way there and on the
 * way back, and any of these may go wrong:
 *
 *     refused    nothing is done, and the caller hears of it
 *     unheard    it is done, and the caller hears of a failure
 *     late       the caller hears of a failure, and it is done at some time later on
 *     torn       a part of it is done, and the caller hears of a failure
 *
 * When the caller dies, what it has sent may still be done, or in part, or not at all.
 */
/** How many of the calls go wrong in each way; `torn` counts those that can, `repeated` those that drivers send again. */
export type FaultRates = { refused: number; repeated: number; unheard: number; late: number; torn: number };

type Fault = Exclude<keyof FaultRates, "repeated">;

export const NO_FAULTS: FaultRates = { refused: 0, repeated: 0, unheard: 0, late: 0, torn: 0 };

export type RemoteCall<T> = {
  label: string;
  effect: () => Promise<T>;
  /** Does a part of it, where it can be done in part. */
  tear?: () => Promise<unknown>;
  /**
   * Whether the driver sends it again once when it hears of a failure: late, if the process stood still meanwhile. What
   * was torn is not sent again, for the part might come after the whole.
   */
  repeats?: boolean;
  /** Whether it can be done without anybody waiting for it, as writes can. */
  isWrite: boolean;
  /** What a caller hears that knows that nothing was done; by default it does not know. */
  refusal?: () => Error;
};

/** A call on its way. */
type Flight = {
  from: Machine;
  label: string;
  done: boolean;
  run: () => Promise<void>;
  tear: (() => Promise<unknown>) | undefined;
};

export class Network {
  rates: FaultRates = NO_FAULTS;
  readonly #scheduler: Scheduler;
  readonly #flights = new Set<Flight>();

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  /** How long a call takes one way: mostly some milliseconds. */
  delayMs(): number {
    const draw = this.#scheduler.random.next();
    const scaleMs = draw < 0.9 ? 20 : draw < 0.99 ? 2_000 : 600_000;
    return 1 + this.#scheduler.below(this.rates === NO_FAULTS ? 20 : scaleMs);
  }

  call<T>(from: Machine, call: RemoteCall<T>): Promise<T> {
    const answer = Promise.withResolvers<T>();
    // A process that is cut off says nothing any more.
    if (from.lane.isCut) return answer.promise;
    const fault = this.#faultOf(call);
    const fail = (what: string, error: Error = new InjectedFault(`${call.label} (${what})`)): void =>
      this.#answer(from, `${call.label} ${what}`, () => {
        if (what === "torn" || call.repeats !== true || this.#scheduler.chance(0.5)) answer.reject(error);
        else answer.resolve(this.call(from, { ...call, repeats: false }));
      });
    if (fault === "refused") {
      fail("refused", call.refusal?.());
      return answer.promise;
    }
    if (fault !== undefined && fault !== "unheard") fail(fault);
    this.#send(from, call, fault, async () => {
      const outcome = await call.effect().then(
        (value) => () => answer.resolve(value),
        (error: unknown) => () => answer.reject(error),
      );
      if (fault === "unheard") fail("unheard");
      else if (fault === undefined) this.#answer(from, call.label, outcome);
    });
    return answer.promise;
  }

  /** What becomes of what a process has sent that is no more. */
  lose(from: Machine): void {
    for (const flight of [...this.#flights].filter((flight) => flight.from === from)) {
      const draw = this.#scheduler.random.next();
      if (draw < 0.4) flight.done = true;
      else if (draw < 0.5 && flight.tear !== undefined) {
        const { tear } = flight;
        flight.run = async () => void (await tear());
      }
    }
  }

  #faultOf({ isWrite, tear, repeats }: RemoteCall<unknown>): Fault | undefined {
    const { repeated, unheard, late, torn } = this.rates;
    const refused = Math.max(this.rates.refused, repeats === true ? repeated : 0);
    const draw = this.#scheduler.random.next();
    if (draw < refused) return "refused";
    if (draw < refused + unheard) return "unheard";
    if (draw < refused + unheard + late) return isWrite ? "late" : "unheard";
    return tear !== undefined && draw < refused + unheard + late + torn ? "torn" : undefined;
  }

  #send(from: Machine, call: RemoteCall<unknown>, fault: Fault | undefined, run: () => Promise<void>): void {
    const { label } = call;
    const tear = fault === "late" && call.repeats === true ? undefined : call.tear;
    const torn = fault === "torn" && tear !== undefined ? async () => void (await tear()) : run;
    const flight: Flight = { from, label, done: false, run: torn, tear };
    this.#flights.add(flight);
    const extraMs = fault === "late" ? this.#scheduler.below(this.#scheduler.pick(LATE_MS)) : 0;
    this.#scheduler.at({
      dueMs: this.#scheduler.nowMs + this.delayMs() + extraMs,
      lane: undefined,
      label: `${from.name} ${label} ${fault ?? ""}`,
      run: async () => {
        this.#flights.delete(flight);
        if (!flight.done) await flight.run();
      },
    });
  }

  #answer(to: Machine, label: string, run: () => void): void {
    const dueMs = this.#scheduler.nowMs + this.delayMs();
    this.#scheduler.at({ dueMs, lane: to.lane, label: `answer to ${label}`, run });
  }
}

/** Drivers and stores have deadlines: nothing is done later than within minutes. */
const LATE_MS = [1_000, 60_000, 1_200_000];

/** What a driver says when it knows that nothing was stored. */
export function unavailable(): Error {
  return new EngineError("unavailable", "injected fault: out of reach");
}
