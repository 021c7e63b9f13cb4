import { messageOf } from "../../core/errors.ts";
import { timeOfId } from "../../core/ids.ts";
import {
  objectKeys,
  ObjectNotFound,
  restoredFolder,
  type ObjectInfo,
  type ObjectStore,
} from "../../io/objectstore/objectstore.ts";

/** What is staged, and what was set aside, as the store tells it. */

export type ListedObject = {
  key: string;
  node: string;
  id: string;
  sizeBytes: number;
  /** By the clock of its node. */
  stagedAtMs: number;
  /** When it reached the store, by the store's clock. */
  modifiedAtMs: number;
};

/** A staged write that is not committed: for `system.staged`. */
export type StagedRow = {
  state: "pending" | "damaged";
  /** The ingest node that wrote it, and its id; as far as the key tells. */
  node: string;
  id: string;
  key: string;
  sizeBytes: number;
  /** When it was staged. */
  stagedAtMs: number;
  /** Why it was set aside. */
  reason?: string;
};

export type Pending = {
  /** The oldest ones, in the order of their ids. */
  objects: ListedObject[];
  /** Objects under the same prefix whose keys are none of ours. */
  foreign: ObjectInfo[];
  /** Of all that are listed. */
  totals: { objects: number; sizeBytes: number };
};

/** UUIDv7. */
const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const REASON_SUFFIX = ".reason";

/** Lists all staged objects from the start, so that none is passed over whose id appears late; keeps the oldest `most`. */
export async function listPending(store: ObjectStore, keyPrefix: string, most: number): Promise<Pending> {
  const prefix = objectKeys.allStaged(keyPrefix);
  let objects: ListedObject[] = [];
  const foreign: ObjectInfo[] = [];
  const totals: Pending["totals"] = { objects: 0, sizeBytes: 0 };
  for await (const info of store.list(prefix)) {
    if (isFolderMarker(info)) continue;
    const place = placeOf(info.key.slice(prefix.length));
    totals.objects++;
    totals.sizeBytes += info.sizeBytes;
    if (place === undefined) {
      foreign.push(info);
      continue;
    }
    const { key, sizeBytes } = info;
    const { node, id, reachedAtMs: modifiedAtMs = info.modifiedAtMs } = place;
    objects.push({ key, node, id, sizeBytes, stagedAtMs: timeOfId(id), modifiedAtMs });
    if (objects.length >= 2 * most) objects = objects.sort(byId).slice(0, most);
  }
  return { objects: objects.sort(byId).slice(0, most), foreign, totals };
}

/** The order in which objects are committed: that of time, as far as the nodes' clocks agree. */
function byId(a: ListedObject, b: ListedObject): number {
  if (a.id !== b.id) return a.id < b.id ? -1 : 1;
  return a.key < b.key ? -1 : 1;
}

type Place = { node: string; id: string; reachedAtMs?: number };

function placeOf(rest: string): Place | undefined {
  const [folder = "", id, ...more] = rest.split("/");
  if (id === undefined || more.length > 0 || !ID.test(id)) return undefined;
  const { node, reachedAtMs } = restoredFolder(folder) ?? { node: folder };
  return { node, id, ...(reachedAtMs !== undefined && { reachedAtMs }) };
}

/** All staged writes that are not committed, damaged ones first. */
export async function* listStaged(store: ObjectStore, keyPrefix: string): AsyncGenerator<StagedRow> {
  const damagedPrefix = objectKeys.allDamaged(keyPrefix);
  for await (const info of store.list(damagedPrefix)) {
    if (info.key.endsWith(REASON_SUFFIX) || isFolderMarker(info)) continue;
    const reason = await readReason(store, info.key);
    yield { ...rowOf(info, damagedPrefix), state: "damaged", reason };
  }
  const stagedPrefix = objectKeys.allStaged(keyPrefix);
  for await (const info of store.list(stagedPrefix)) {
    if (!isFolderMarker(info)) yield { ...rowOf(info, stagedPrefix), state: "pending" };
  }
}

/** What some tools make of an empty folder. */
function isFolderMarker({ key }: ObjectInfo): boolean {
  return key.endsWith("/");
}

function rowOf({ key, sizeBytes, modifiedAtMs }: ObjectInfo, prefix: string): Omit<StagedRow, "state"> {
  const rest = key.slice(prefix.length);
  const place = placeOf(rest);
  if (place !== undefined) return { node: place.node, id: place.id, key, sizeBytes, stagedAtMs: timeOfId(place.id) };
  const slash = rest.lastIndexOf("/");
  return {
    node: rest.slice(0, Math.max(slash, 0)),
    id: rest.slice(slash + 1),
    key,
    sizeBytes,
    stagedAtMs: modifiedAtMs,
  };
}

/** When the oldest staged write was staged that is not committed; undefined when there is none. */
export async function oldestStagedAtMs(
  store: Pick<ObjectStore, "list">,
  keyPrefix: string,
): Promise<number | undefined> {
  const prefix = objectKeys.allStaged(keyPrefix);
  let oldestMs: number | undefined;
  for await (const { key } of store.list(prefix)) {
    const place = placeOf(key.slice(prefix.length));
    if (place !== undefined) oldestMs = Math.min(oldestMs ?? Infinity, timeOfId(place.id));
  }
  return oldestMs;
}

/** How many objects were set aside and are still there. */
export async function countDamaged(store: ObjectStore, keyPrefix: string): Promise<number> {
  let count = 0;
  for await (const { key } of store.list(objectKeys.allDamaged(keyPrefix))) if (!key.endsWith(REASON_SUFFIX)) count++;
  return count;
}

/**
 * Moves an object out of the way of the others, with the reason beside it. It is deleted where it was only after the
 * copy is durable, so it never disappears; a move that was interrupted is repeated.
 */
export async function setAside(
  store: ObjectStore,
  keyPrefix: string,
  object: { key: string; bytes: Uint8Array; reason: string; atMs: number },
): Promise<void> {
  const key = objectKeys.allDamaged(keyPrefix) + object.key.slice(objectKeys.allStaged(keyPrefix).length);
  const note = { reason: object.reason, set_aside_at: new Date(object.atMs).toISOString() };
  await store.put(key + REASON_SUFFIX, Buffer.from(`${JSON.stringify(note)}\n`));
  await store.put(key, object.bytes);
  await store.delete([object.key]);
}

async function readReason(store: ObjectStore, key: string): Promise<string> {
  try {
    const note: unknown = JSON.parse(Buffer.from(await store.get(key + REASON_SUFFIX)).toString("utf8"));
    if (typeof note === "object" && note !== null && "reason" in note) return String(note.reason);
    return "the note beside it names no reason";
  } catch (error) {
    const what = error instanceof ObjectNotFound ? "there is none" : messageOf(error);
    return `the note beside it cannot be read: ${what}`;
  }
}
