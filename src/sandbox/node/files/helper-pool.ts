import type { Clock, TimerHandle } from "../../../core/clock.ts";
import { EngineError, messageOf } from "../../../core/errors.ts";
import type { Log } from "../../../core/log.ts";
import { WaitingLine } from "../../../core/waiting-line.ts";
import { HelperProcess } from "./helper-process.ts";
import { engineErrorOf, HelperRefusal } from "./refusals.ts";
import type { FilesTarget } from "./target.ts";

export type HelperPoolOptions = {
  /** Asked for each helper that is started. Rejects where the machine has no files now. */
  target: () => Promise<FilesTarget>;
  clock: Clock;
  log: Log;
  /** The Perl that runs the helpers. */
  perl?: string;
};

/** Helpers of one machine at a time: so many operations go on at once, a slow transfer being one. */
const MAX_HELPERS = 4;
/** Operations that wait for one. */
const MAX_WAITING = 64;
const MAX_WAIT_MS = 30_000;
const IDLE_MS = 5_000;
const START_TIMEOUT_MS = 15_000;

/** The helpers of one machine: started when needed, kept for a moment. */
export class HelperPool {
  readonly #options: HelperPoolOptions;
  readonly #idle = new Map<HelperProcess, TimerHandle>();
  /** Resolve when the helper is gone and its target released. */
  readonly #all = new Map<HelperProcess, Promise<void>>();
  readonly #starting = new Set<Promise<unknown>>();
  readonly #line: WaitingLine<symbol, void>;
  #taken = 0;
  #generation = 0;

  constructor(options: HelperPoolOptions) {
    this.#options = options;
    this.#line = new WaitingLine(options.clock);
  }

  /**
   * A helper for one operation, which `give` takes back; one that is not left in order is killed first. Rejects with
   * `too_many_requests` when others hold all of them for too long, and with why the machine can't be entered.
   */
  async take(signal: AbortSignal): Promise<HelperProcess> {
    signal.throwIfAborted();
    await this.#permit(signal);
    try {
      const [idle] = [...this.#idle].findLast(([helper]) => !helper.hasEnded) ?? [];
      if (idle === undefined) return await this.#start(signal);
      this.#idle.get(idle)?.cancel();
      this.#idle.delete(idle);
      return idle;
    } catch (error) {
      this.#pass();
      throw error;
    }
  }

  /** Takes back what `take` gave, alive or not. */
  give(helper: HelperProcess): void {
    if (!helper.hasEnded) {
      const stop = (): void => helper.kill(new Error("it was idle"));
      this.#idle.set(helper, this.#options.clock.after(IDLE_MS, stop, { background: true }));
    }
    this.#pass();
  }

  /** Ends all helpers. Resolves when none is left, and nothing of the machine is held; those taken later are new. */
  async end(reason: Error): Promise<void> {
    this.#generation++;
    for (const helper of this.#all.keys()) helper.kill(reason);
    await Promise.allSettled(this.#starting);
    await Promise.all(this.#all.values());
  }

  async #permit(signal: AbortSignal): Promise<void> {
    if (this.#taken < MAX_HELPERS) {
      this.#taken++;
      return;
    }
    if (this.#line.size >= MAX_WAITING) throw tooMany();
    await this.#line.wait(Symbol("turn"), { signal, timeoutMs: MAX_WAIT_MS, onTimeout: tooMany });
  }

  /** The permit goes to the next in line. */
  #pass(): void {
    const [next] = this.#line.keys();
    if (next === undefined) this.#taken--;
    else this.#line.serve(next, undefined);
  }

  async #start(signal: AbortSignal): Promise<HelperProcess> {
    const starting = this.#spawn();
    this.#starting.add(starting);
    const { helper } = await starting.finally(() => this.#starting.delete(starting));
    const stop = (): void => helper.kill(signal.reason as Error);
    const late = new EngineError(
      "unavailable",
      "the sandbox's files can't be reached: its helper did not start in time",
    );
    const timer = this.#options.clock.after(START_TIMEOUT_MS, () => helper.kill(late));
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    try {
      await helper.answer();
      return helper;
    } catch (error) {
      helper.kill(new Error("it did not start"));
      throw error instanceof HelperRefusal ? engineErrorOf(error, "/") : error;
    } finally {
      timer.cancel();
      signal.removeEventListener("abort", stop);
    }
  }

  async #spawn(): Promise<{ helper: HelperProcess }> {
    const generation = this.#generation;
    const target = await this.#options.target();
    if (generation !== this.#generation) {
      await this.#release(target);
      throw new EngineError("unavailable", "the sandbox has changed its state; ask again");
    }
    const helper = new HelperProcess(this.#options.perl ?? "perl", target);
    this.#all.set(helper, this.#afterwards(helper, target));
    return { helper };
  }

  async #afterwards(helper: HelperProcess, target: FilesTarget): Promise<void> {
    await helper.exited();
    this.#idle.get(helper)?.cancel();
    this.#idle.delete(helper);
    await this.#release(target);
    this.#all.delete(helper);
  }

  async #release(target: FilesTarget): Promise<void> {
    if (target.kind !== "mounted") return;
    try {
      await target.release();
    } catch (error) {
      this.#options.log.error(
        { err: error, root: target.root },
        `cannot release a machine's root: ${messageOf(error)}`,
      );
    }
  }
}

function tooMany(): EngineError {
  const details = { headers: { "Retry-After": "1" } };
  return new EngineError("too_many_requests", "too much is being done with the sandbox's files already", details);
}
