import type { Clock } from "../../../core/clock.ts";
import { messageOf } from "../../../core/errors.ts";
import type { Log } from "../../../core/log.ts";
import type { VolumeStore } from "../../runtime/runtime.ts";

export type VolumeRetentionOptions = {
  volumes: VolumeStore;
  /** Keys of the volumes that sandboxes of this node name, whatever these do. */
  named: () => ReadonlySet<string>;
  /** How long one is kept that nobody uses and the control plane does not know; undefined: for ever. */
  keptMs: number | undefined;
  clock: Clock;
  log: Log;
};

/** Often enough that what was used a moment ago is never taken for old. */
const LOOK_EVERY_MS = 600_000;
const MOST_AT_ONCE = 100;

/**
 * Removes volumes of this node: those of which the control plane says that they are deleted or have expired, and those
 * that nobody has used for long and that it does not know. It knows of sandboxes that this node has no longer, or will
 * have.
 */
export class VolumeRetention {
  readonly #options: VolumeRetentionOptions;
  #lookedAtMs: number;
  #unused: readonly string[] = [];

  constructor(options: VolumeRetentionOptions) {
    this.#options = options;
    // Who was taken up after a start is known by then.
    this.#lookedAtMs = options.clock.monotonicMs();
  }

  /** Keys of volumes to ask about. Never rejects. */
  async unused(): Promise<readonly string[]> {
    const { volumes, keptMs, clock, log } = this.#options;
    if (keptMs === undefined || clock.monotonicMs() - this.#lookedAtMs < LOOK_EVERY_MS) return this.#unused;
    this.#lookedAtMs = clock.monotonicMs();
    try {
      const named = this.#options.named();
      for (const key of named) await volumes.touch(key);
      const old = await volumes.unusedSince(clock.nowMs() - keptMs);
      this.#unused = old.filter((key) => !named.has(key)).slice(0, MOST_AT_ONCE);
    } catch (error) {
      log.warn({ reason: messageOf(error) }, "it is not known which volumes are unused; looking again later");
    }
    return this.#unused;
  }

  /** Removes those that are nobody's any more, as the control plane says. Never rejects. */
  async remove(keys: readonly string[]): Promise<void> {
    const { volumes, log } = this.#options;
    const mayGo = new Set(this.#unused);
    for (const key of keys) {
      // A sandbox that came meanwhile has it.
      if (!mayGo.has(key) || this.#options.named().has(key)) continue;
      try {
        await volumes.remove(key);
        log.info({ volume: key }, "removed what was left of a volume that the control plane does not know");
      } catch (error) {
        log.warn({ volume: key, reason: messageOf(error) }, "a volume could not be removed; trying again later");
      }
    }
    this.#unused = [];
  }

  /**
   * Removes deleted ones, and returns those that are no longer here. One that a sandbox which is being put away still has
   * goes later. Never rejects.
   */
  async removeDeleted(keys: readonly string[]): Promise<string[]> {
    const { volumes, log } = this.#options;
    const removed: string[] = [];
    for (const key of keys) {
      if (this.#options.named().has(key)) continue;
      try {
        await volumes.remove(key);
        log.info({ volume: key }, "removed a volume that was deleted or has expired");
        removed.push(key);
      } catch (error) {
        log.warn({ volume: key, reason: messageOf(error) }, "a volume could not be removed; trying again");
      }
    }
    return removed;
  }
}
