import type { Clock } from "../core/clock.ts";
import type { LaneHead } from "./claim.ts";
import { FABRIC_LIMITS } from "./limits.ts";
import { groupOf, mayClaim, parseLane, type Claimant, type Lane } from "./lanes.ts";

type Seen = {
  lane: Lane;
  group: string;
  /** On the clock that never goes back. */
  dueAtMs: number;
  /** Grows when jobs are announced. */
  version: number;
};

/** A lane to claim from, as it was seen. */
export type Turn = { key: string; version: number; group: string };

/**
 * What one process knows of the lanes: which ones have jobs that are due, and in whose turn it is. It may be wrong for a
 * moment, and then a claim finds nothing, or a job waits until the next look. Turns are kept by each process for itself:
 * where all are fair, so is the whole, and nobody has to write down whose turn it was.
 */
export class QueueView {
  readonly #clock: Clock;
  readonly #lanes = new Map<string, Seen>();
  /**
   * When a group was served, by count; only of groups that are seen. One that comes, or comes back, takes its place
   * behind those that wait: else groups that come and go would keep the others waiting for ever.
   */
  #served = new Map<string, number>();
  #servings = 0;
  #version = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** All that there is. What was announced since `since` stays: the look may have been before it. */
  replace(heads: readonly LaneHead[], since: number): void {
    const nowMs = this.#clock.monotonicMs();
    const found = new Set(heads.map(({ lane }) => lane));
    for (const [key, { version }] of this.#lanes) if (version <= since && !found.has(key)) this.#lanes.delete(key);
    for (const { lane, dueInMs } of heads) {
      const known = this.#lanes.get(lane);
      const isOlder = known !== undefined && known.version > since;
      // Nor does it know when something is due that was announced since.
      this.#see(lane, isOlder ? Math.min(known.dueAtMs, nowMs + dueInMs) : nowMs + dueInMs, false);
    }
    const groups = new Set([...this.#lanes.values()].map(({ group }) => group));
    this.#served = new Map([...this.#served].filter(([group]) => groups.has(group)));
  }

  /** Jobs of the lane are due. */
  announce(key: string): void {
    // Where nobody claims nobody looks, and lanes that were emptied elsewhere would pile up. The next look finds the rest.
    if (this.#lanes.size >= FABRIC_LIMITS.lanes && !this.#lanes.has(key)) {
      this.#lanes.clear();
      this.#served.clear();
    }
    this.#see(key, this.#clock.monotonicMs(), true);
  }

  /** For `replace`: before the look is taken. */
  get version(): number {
    return this.#version;
  }

  /** A claim found less than it asked for: the lane has nothing that is due, unless that was announced meanwhile. */
  exhausted({ key, version }: Turn): void {
    if (this.#lanes.get(key)?.version === version) this.#lanes.delete(key);
  }

  served({ group }: Turn): void {
    this.#served.set(group, ++this.#servings);
  }

  /**
   * One lane of each group that has something due for the claimant: the group that waited longest first; of a group the
   * highest priority, then what was due first.
   */
  turns(claimant: Claimant): Turn[] {
    const nowMs = this.#clock.monotonicMs();
    const best = new Map<string, { key: string; seen: Seen }>();
    for (const [key, seen] of this.#lanes) {
      if (seen.dueAtMs > nowMs || !mayClaim(claimant, seen.lane)) continue;
      const other = best.get(seen.group)?.seen;
      if (other === undefined || isBefore(seen, other)) best.set(seen.group, { key, seen });
    }
    const turnOf = (group: string) => this.#served.get(group) ?? 0;
    return [...best.values()]
      .toSorted((a, b) => turnOf(a.seen.group) - turnOf(b.seen.group) || a.seen.dueAtMs - b.seen.dueAtMs)
      .map(({ key, seen: { version, group } }) => ({ key, version, group }));
  }

  /** In how many ms the next lane is due that is not yet. */
  get nextDueInMs(): number | undefined {
    const nowMs = this.#clock.monotonicMs();
    let next: number | undefined;
    for (const { dueAtMs } of this.#lanes.values()) {
      if (dueAtMs > nowMs && (next === undefined || dueAtMs < next)) next = dueAtMs;
    }
    return next === undefined ? undefined : next - nowMs;
  }

  #see(key: string, dueAtMs: number, isNews: boolean): void {
    const known = this.#lanes.get(key);
    if (isNews) this.#version++;
    const version = isNews || known === undefined ? this.#version : known.version;
    const lane = known?.lane ?? parseLane(key);
    const group = known?.group ?? groupOf(lane);
    if (!this.#served.has(group)) this.#served.set(group, this.#servings);
    this.#lanes.set(key, { lane, group, dueAtMs, version });
  }
}

function isBefore(a: Seen, b: Seen): boolean {
  return a.lane.priority > b.lane.priority || (a.lane.priority === b.lane.priority && a.dueAtMs < b.dueAtMs);
}
