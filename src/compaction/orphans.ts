import type { Catalog } from "../catalog/catalog.ts";
import { timeOfId } from "../core/ids.ts";
import type { Log } from "../core/log.ts";
import type { Metrics } from "../core/metrics.ts";
import type { ObjectInfo, ObjectStore } from "../io/objectstore/objectstore.ts";
import type { Duty, DutyTurn } from "../feature/lease-loop.ts";
import { COMPACTION_METRICS } from "./metrics.ts";

/**
 * The orphan sweep: deletes extents in the store that the catalog does not know, which uploads leave behind that crashed
 * before their commit.
 *
 * Age alone proves nothing: an upload may hang for days and commit after all. So the ids of old unknown objects are
 * first marked as pending deletion in the catalog, in one transaction with the look whether they are known; whoever wants to commit one
 * from then on is refused, and the bytes can go. A sweep that crashed in between finds its ids marked and goes on.
 *
 * Only what has the shape of an extent's key is looked at. What starts with `_` right below the prefix belongs to
 * others: staged writes are acknowledged and live for as long as it takes.
 */
export type OrphanPorts = {
  catalog: Pick<Catalog, "nowMs" | "markPendingDeletion" | "sweepPendingDeletions">;
  store: Pick<ObjectStore, "list" | "delete">;
  log: Log;
  metrics: Metrics;
};

/**
 * A day, and another one for clocks: that of the store says when the object was written, that of the catalog what time
 * it is. It only keeps uploads under way from being refused; what is committed is safe at any age.
 */
const MIN_AGE_MS = 2 * 86_400_000;
/**
 * How long ids pending deletion are remembered, from when they were made. Who makes an id uploads at once, within the deadline
 * of the store (minutes), and then commits: only a process that slept in between comes late, or one whose clock was
 * wrong when it made the id. Months are far beyond both, and cost a line in the catalog for each orphan.
 */
const PENDING_DELETION_KEPT_MS = 90 * 86_400_000;
/** Ids forgotten at a time. */
const BATCH_FORGOTTEN = 10_000;
/** Ids per question to the catalog. */
const BATCH_OBJECTS = 1_000;

export function createOrphanSweep(ports: OrphanPorts, { keyPrefix }: { keyPrefix: string }): Duty {
  return async (turn) => {
    const nowMs = await ports.catalog.nowMs();
    // First, so that an id of a clock that was wrong stays marked until the next run at least.
    await forgetPendingDeletions(ports.catalog, nowMs - PENDING_DELETION_KEPT_MS, turn);
    const writtenBeforeMs = nowMs - MIN_AGE_MS;
    let orphans = 0;
    let old = new Map<string, ObjectInfo[]>();
    const sweep = async (): Promise<void> => {
      orphans += await deleteOrphans(ports, old, turn);
      old = new Map();
    };
    for await (const info of ports.store.list(`${keyPrefix}/`)) {
      turn.signal.throwIfAborted();
      const id = extentIdOf(info.key.slice(keyPrefix.length + 1));
      if (id === undefined || Math.max(info.modifiedAtMs, timeOfId(id)) >= writtenBeforeMs) continue;
      old.set(id, [...(old.get(id) ?? []), info]);
      if (old.size === BATCH_OBJECTS) await sweep();
    }
    await sweep();
    if (orphans > 0) ports.log.info({ orphans }, "objects of uploads that never committed are deleted");
  };
}

async function forgetPendingDeletions(
  catalog: OrphanPorts["catalog"],
  madeBeforeMs: number,
  { signal }: DutyTurn,
): Promise<void> {
  while ((await catalog.sweepPendingDeletions(madeBeforeMs, BATCH_FORGOTTEN)) === BATCH_FORGOTTEN)
    signal.throwIfAborted();
}

/** Deletes those of the objects, by extent id, that no extent has; resolves to how many. */
async function deleteOrphans(
  { catalog, store, metrics }: OrphanPorts,
  objects: ReadonlyMap<string, readonly ObjectInfo[]>,
  { signal }: DutyTurn,
): Promise<number> {
  if (objects.size === 0) return 0;
  signal.throwIfAborted();
  const marked = await catalog.markPendingDeletion([...objects.keys()]);
  const orphans = marked.flatMap((id) => objects.get(id) ?? []);
  if (orphans.length === 0) return 0;
  await store.delete(orphans.map(({ key }) => key));
  COMPACTION_METRICS.of(metrics).orphansDeleted.inc(orphans.length);
  return orphans.length;
}

/** `<database>/<table>/<yyyy-mm-dd>/<extent id>.<format>`: the id, a UUID of version 7. */
const EXTENT_KEY =
  /^[A-Za-z][^/]*\/[A-Za-z][^/]*\/\d{4,}-\d\d-\d\d\/([\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[\da-f]{4}-[\da-f]{12})\.(?:tlm|parquet)$/;

function extentIdOf(key: string): string | undefined {
  return EXTENT_KEY.exec(key)?.[1];
}
