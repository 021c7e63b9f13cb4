import { INGEST_METRICS } from "../metrics.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import type { Metrics } from "../../core/metrics.ts";
import type { ObjectStore } from "../../io/objectstore/objectstore.ts";
import { oldestStagedAtMs } from "./listing.ts";

/**
 * When idempotency keys and ids of committed staged objects may be forgotten.
 *
 * **A retry never duplicates**, also when one of the two writes was staged and waited for days. So a staged write is
 * judged by the keys as they were when it was accepted, however late it is committed, and an entry of the ledger stays
 * while a staged write is uncommitted that was accepted during its life. Only the object store knows what is staged, by
 * all nodes: whoever sweeps lists it first.
 *
 * An entry lives from the commit on, also that of a write which was staged long before. From the acceptance to the
 * commit the staged object itself is what holds the key: of all that come with it, one is stored.
 *
 * Clocks: ledger entries have the catalog's time, an acceptance that of its node. The tolerance is on the side of the
 * promise: a key may hold for as much longer than its 24 hours.
 */

/** A node's clock is ahead of the catalog's by less than this: time services keep it to a part of a second. */
export const CLOCK_TOLERANCE_MS = 5 * 60_000;

/**
 * What was accepted before the listing and is staged after it was accepted less than so long before. A node begins no
 * write of what came half an hour ago, and the write ends within minutes, by the deadlines of the store; the tolerance of
 * clocks comes on top.
 *
 * A node can stand still in the midst of it all the same. Then the entries that count are those that came after its look at
 * the ledger, while it stood still: they live for a day, and the object is late long before that (`lateness.ts`). What is
 * not covered is a node that could not look at the ledger and stood still as well.
 */
const UNSEEN_MS = 3_600_000;

/**
 * Ids of committed objects are remembered for so long after the commit: an object may come back, when a write of it that
 * was given up, or repeated on its way, comes out of the store late. That takes minutes; a week is far beyond it.
 */
const REMEMBER_MS = 8 * 24 * 3_600_000;

export type SweepPorts = {
  catalog: Pick<Catalog, "nowMs" | "sweepLedger" | "sweepStaged">;
  store: Pick<ObjectStore, "list">;
  keyPrefix: string;
  metrics: Metrics;
};

/** Forgets keys and ids that no write needs any more, staged ones included. Any process may do it at any time. */
export async function sweepKeys(ports: SweepPorts): Promise<void> {
  try {
    await sweep(ports);
  } catch (error) {
    INGEST_METRICS.of(ports.metrics).ledgerSweepFailures.inc();
    throw error;
  }
}

async function sweep({ catalog, store, keyPrefix, metrics }: SweepPorts): Promise<void> {
  // The time first: what is staged during the listing was accepted after it, or shortly before.
  const nowMs = await catalog.nowMs();
  const oldestMs = (await oldestStagedAtMs(store, keyPrefix)) ?? nowMs;
  const neededFromMs = Math.min(nowMs, oldestMs) - UNSEEN_MS;
  INGEST_METRICS.of(metrics).ledgerSwept.inc(await catalog.sweepLedger(neededFromMs));
  // Of an object that is listed and was committed, the commit came after it was staged: its id stays as well.
  await catalog.sweepStaged(neededFromMs - REMEMBER_MS);
  INGEST_METRICS.of(metrics).ledgerSweptAt.set(nowMs / 1000);
}
