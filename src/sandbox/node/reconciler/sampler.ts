import type { Clock, TimerHandle } from "../../../core/clock.ts";
import { messageOf } from "../../../core/errors.ts";
import type { Log } from "../../../core/log.ts";
import type { Machine } from "../../runtime/runtime.ts";
import type { Companions } from "./companions.ts";
import { differ, figuresOf, type Figures } from "../figures.ts";
import type { Recorder } from "../recorder.ts";

export type SamplerOptions = {
  sandboxId: string;
  machine: () => Machine | undefined;
  recorder: Recorder;
  companions: Pick<Companions, "traffic">;
  clock: Clock;
  log: Log;
};

const LOOK_EVERY_MS = 5_000;
/** Figures that do not change are told so seldom: an idle sandbox costs a write a minute. */
const SAY_EVERY_MS = 60_000;

/** Looks at what a machine uses, and says it: soon when it has changed, now and then when it has not. */
export class Sampler {
  readonly #options: SamplerOptions;
  readonly #timer: TimerHandle;
  #said: { figures: Figures; atMs: number } | undefined;
  #isLooking = false;

  constructor(options: SamplerOptions) {
    this.#options = options;
    this.#timer = options.clock.every(LOOK_EVERY_MS, () => void this.#look());
  }

  stop(): void {
    this.#timer.cancel();
  }

  /** Never rejects. */
  async #look(): Promise<void> {
    const { machine: current, recorder, companions, clock, log, sandboxId } = this.#options;
    const machine = current();
    if (machine === undefined || machine.isPaused || this.#isLooking) return;
    this.#isLooking = true;
    try {
      const figures = figuresOf(await machine.stats(), companions.traffic(sandboxId));
      const nowMs = clock.monotonicMs();
      const said = this.#said;
      const isNews = said === undefined || differ(said.figures, figures) || nowMs - said.atMs >= SAY_EVERY_MS;
      if (!isNews || current() !== machine) return;
      recorder.event("stats", figures);
      await recorder.say({ stats: figures });
      this.#said = { figures, atMs: nowMs };
    } catch (error) {
      // One that ended meanwhile has none.
      if (current() === machine)
        log.debug({ sandboxId, reason: messageOf(error) }, "the figures of a machine are not known");
    } finally {
      this.#isLooking = false;
    }
  }
}
