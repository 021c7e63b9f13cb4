import type { Catalog, FlushCommit } from "../../src/catalog/catalog.ts";
import { EngineError } from "../../src/core/errors.ts";
import type { ObjectInfo, ObjectStore } from "../../src/io/objectstore/objectstore.ts";
import type { Planted } from "./world.ts";

/** Mistakes as a program could have them, each put where a correct one would hear or say the truth. */
export const PLANTED = {
  /** Keys are neither looked for nor recorded. */
  "the ledger is not asked": {
    catalog: (catalog) =>
      withCalls(catalog, {
        lookUpKey: async (tableId, key) => ({ ...(await catalog.lookUpKey(tableId, key)), entry: undefined }),
        commit: (flushes, lease) => catalog.commit(flushes.map(withoutKeys), lease),
      }),
  },
  /** A commit does not hear when its keys were looked up. */
  "a commit that was held up is let in": {
    catalog: (catalog) =>
      withCalls(catalog, { commit: (flushes, lease) => catalog.commit(flushes.map(withoutLookUp), lease) }),
  },
  /** A staged object leaves no trace in the commit that brings it in. */
  "staged objects are not recorded": {
    catalog: (catalog) =>
      withCalls(catalog, {
        committedStaged: async () => [],
        commit: (flushes, lease) => catalog.commit(flushes.map(withoutId), lease),
      }),
  },
  /** The sweep of orphans goes by what the catalog knows now, and marks nothing. */
  "orphans are deleted by age": {
    catalog: (catalog) =>
      withCalls(catalog, {
        async markPendingDeletion(ids) {
          const known = new Set<string>();
          const head = await catalog.head();
          for (const table of await catalog.allTables()) {
            for (const { id } of await catalog.extents(table.id, head.id)) known.add(id);
            for (const { id } of await catalog.deadExtents(table.id, Number.MAX_SAFE_INTEGER)) known.add(id);
          }
          return ids.filter((id) => !known.has(id));
        },
      }),
  },
  /** Dead extents are deleted while snapshots see them that can be read. */
  "deletion does not wait": {
    catalog: (catalog) => withCalls(catalog, { oldestKeptSnapshot: () => catalog.head() }),
  },
  /** The grace is counted from another time. */
  "the grace is too short": {
    catalog: (catalog) =>
      withCalls(catalog, { snapshotAt: async (timeMs) => catalog.snapshotAt(timeMs + 10 * 60 * 60_000) }),
  },
  /** The outputs of a merge are brought in although an input is gone. */
  "a merge that comes too late is published": {
    catalog: (catalog) =>
      withCalls(catalog, {
        async mergeExtents(merge) {
          const snapshot = await catalog.mergeExtents(merge);
          if (snapshot !== undefined) return snapshot;
          const { tableId, schemaVersion, outputs, lease } = merge;
          const flush = { tableId, schemaVersion, newColumns: [], extents: outputs, ledger: [] };
          const [outcome] = await catalog.commit([flush], lease);
          return outcome?.kind === "committed" ? outcome.snapshot : undefined;
        },
      }),
  },
  /** Nobody asks the store when a staged write reached it. */
  "a staged write that was held up is let in": {
    store: (store) => ({
      ...withWrites(store, (key, bytes) => store.put(key, bytes)),
      head: async (key) => atOnce(await store.head(key)),
      async *list(prefix, options) {
        for await (const info of store.list(prefix, options)) yield prefix.includes("_staged") ? atOnce(info) : info;
      },
    }),
  },
  /** An answer that got lost is taken for a refusal. */
  "what is not known is taken for nothing stored": {
    catalog: (catalog) =>
      withCalls(catalog, {
        commit: (flushes, lease) =>
          catalog.commit(flushes, lease).catch((cause: unknown) => {
            throw new EngineError("ingest_failed", "nothing was stored", { cause });
          }),
      }),
  },
  /** Objects are said to be written before they are. */
  "writes are acknowledged early": {
    store: (store) =>
      withWrites(store, async (key, bytes) => {
        store.put(key, bytes).catch(() => {});
      }),
  },
  /** A write that was cut short is taken for a whole one. */
  "torn writes are taken for whole ones": {
    store: (store, { objects }) =>
      withWrites(store, (key, bytes) =>
        store.put(key, bytes).catch((error: unknown) => {
          if (objects.get(key) === undefined) throw error;
        }),
      ),
  },
  /** Retention goes by a clock that is ahead. */
  "retention is too early": {
    catalog: (catalog) =>
      withCalls(catalog, {
        expiredExtents: (tableId, beforeMs, limit) => catalog.expiredExtents(tableId, beforeMs + 12 * 3_600_000, limit),
      }),
  },
} as const satisfies Record<string, Planted>;

function withCalls(catalog: Catalog, calls: Partial<Catalog>): Catalog {
  return new Proxy(catalog, { get: (target, name) => Reflect.get(calls, name) ?? Reflect.get(target, name) });
}

function withWrites(store: ObjectStore, put: ObjectStore["put"]): ObjectStore {
  return {
    put,
    putFile: (key, path, options) => store.putFile(key, path, options),
    get: (key, options) => store.get(key, options),
    head: (key) => store.head(key),
    list: (prefix, options) => store.list(prefix, options),
    delete: (keys) => store.delete(keys),
  };
}

function atOnce<T extends ObjectInfo | undefined>(info: T): T {
  return info && { ...info, modifiedAtMs: 0 };
}

function withoutKeys(flush: FlushCommit): FlushCommit {
  return { ...flush, ledger: [] };
}

function withoutLookUp({ keysFreeAtMs: _keysFreeAtMs, ...flush }: FlushCommit): FlushCommit {
  return flush;
}

function withoutId({ staged: _staged, ...flush }: FlushCommit): FlushCommit {
  return flush;
}
