import { KEYS_FREE_FOR_MS } from "../../catalog/flush-checks.ts";
import { objectKeys, type ObjectStore } from "../../io/objectstore/objectstore.ts";
import type { StagedObject } from "./object.ts";

/**
 * Staged writes that were held up for so long that their keys may have been used and forgotten since.
 *
 * The process can stand still at any moment: with the requests in hand, or in the midst of the write, which its driver
 * then repeats on waking. What it looks at before the write can be untrue by the time of the write, and its clocks may
 * have stood still as well. So the object is judged by when it reached the store, which the store says: the node asks
 * for it before it acknowledges, and the committer goes by the same two times. So they always agree, whatever the clocks
 * say: what is late was not acknowledged, and is not committed.
 *
 * Of one that is not late, the sweep still has every entry that its keys may meet (`sweep.ts`).
 */

/** How late a keyed request may reach the store, by when it arrived at its node. The rest of a day is for wrong clocks. */
const WITHIN_MS = KEYS_FREE_FOR_MS;

/**
 * No write is begun of a request that came so long ago by the clock of the node. The sweep counts on it: it allows an
 * hour from the arrival until the object is there, and this leaves half of that for the write.
 */
const BEGUN_WITHIN_MS = 30 * 60_000;

/** When the first of the keyed requests arrived at its node; undefined when none has a key. */
export function firstKeyedAtMs(requests: Arrivals): number | undefined {
  const arrivedAtMs = requests.flatMap(({ key, arrivedAtNs }) => (key === undefined ? [] : [toMs(arrivedAtNs)]));
  return arrivedAtMs.length === 0 ? undefined : Math.min(...arrivedAtMs);
}

/** How late the object reached the store, if that is too late for its keys. */
export function lateByMs(requests: Arrivals, modifiedAtMs: number): number | undefined {
  const firstAtMs = firstKeyedAtMs(requests);
  const tookMs = firstAtMs === undefined ? 0 : modifiedAtMs - firstAtMs;
  return tookMs > WITHIN_MS ? tookMs : undefined;
}

/** Whether a request was in hand for too long, by the clock of its node, for its write to begin. */
export function isHeldUp({ keyFreeAtMs }: { keyFreeAtMs?: number }, nowMs: number): boolean {
  return keyFreeAtMs !== undefined && nowMs - keyFreeAtMs > BEGUN_WITHIN_MS;
}

/** Throws when the object that was just written is late, or was set aside. */
export async function checkInTime(
  store: Pick<ObjectStore, "head">,
  place: { prefix: string; node: string; id: string },
  requests: Arrivals,
): Promise<void> {
  if (firstKeyedAtMs(requests) === undefined) return;
  const info = await store.head(objectKeys.staged(place));
  // One that is gone was committed, unless it lies where committers put what they refuse.
  const isInTime =
    info === undefined ? !(await isSetAside(store, place)) : lateByMs(requests, info.modifiedAtMs) === undefined;
  if (!isInTime) throw new Error("the object reached the store hours after its requests came");
}

async function isSetAside(
  store: Pick<ObjectStore, "head">,
  { prefix, node, id }: { prefix: string; node: string; id: string },
): Promise<boolean> {
  const staged = objectKeys.staged({ prefix, node, id });
  const key = objectKeys.allDamaged(prefix) + staged.slice(objectKeys.allStaged(prefix).length);
  return (await store.head(key)) !== undefined;
}

type Arrivals = readonly Pick<StagedObject["requests"][number], "key" | "arrivedAtNs">[];

function toMs(ns: bigint): number {
  return Number(ns / 1_000_000n);
}
