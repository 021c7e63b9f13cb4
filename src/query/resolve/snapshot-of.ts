import type { Catalog, Snapshot, TableRecord } from "../../catalog/catalog.ts";
import { snapshotExpired } from "../../catalog/refusals.ts";
import { EngineError } from "../../core/errors.ts";
import type { NeededTable } from "./needs.ts";
import { placeOf } from "./not-found.ts";

/** The snapshot that a table of the query is read at: the head, or the one that its `AT` asks for. */
export async function snapshotOf(
  catalog: Catalog,
  table: TableRecord,
  need: NeededTable,
  head: Snapshot,
): Promise<number> {
  const { travel } = need;
  if (travel === undefined) return head.id;
  const snapshot =
    "version" in travel ? versionOf(travel.version, need, head) : await latestBy(catalog, travel.atNs, need, head);
  const oldest = await catalog.oldestSnapshot(table.id);
  if (snapshot >= oldest.id) return snapshot;
  throw snapshotExpired(snapshot, oldest, placeOf(need));
}

function versionOf(version: bigint, need: NeededTable, head: Snapshot): number {
  if (version >= 0n && version <= BigInt(head.id)) return Number(version);
  const message = `there is no snapshot ${version}; the newest is ${head.id}`;
  throw new EngineError("invalid_query", message, placeOf(need));
}

/** The newest snapshot at that moment, of those that this query sees. */
async function latestBy(catalog: Catalog, atNs: bigint, need: NeededTable, head: Snapshot): Promise<number> {
  // Times of snapshots are whole milliseconds, rounded down; so is the moment.
  const atMs = Number((atNs - (((atNs % NS_PER_MS) + NS_PER_MS) % NS_PER_MS)) / NS_PER_MS);
  const snapshot = await catalog.snapshotAt(atMs);
  if (snapshot !== undefined) return Math.min(snapshot.id, head.id);
  const message = `there was no snapshot yet at ${new Date(atMs).toISOString()}`;
  throw new EngineError("invalid_query", message, placeOf(need));
}

const NS_PER_MS = 1_000_000n;
