import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ExtentRecord } from "../catalog/catalog.ts";
import { Semaphore } from "../core/concurrency.ts";
import { EngineError } from "../core/errors.ts";
import { ObjectNotFound, type ObjectStore } from "../io/objectstore/objectstore.ts";
import type { PlannedTable } from "./plan.ts";
import type { LocalExtent, ResolvedTable } from "./protocol.ts";

/** Brings the extents of a plan to this machine, where the query process opens them. */
export type ExtentFetcher = {
  /** Folders in which extents are opened in place. */
  readonly roots: readonly string[];
  /** Fetches what the tables need. Files stay until `release`. Rejects with `EngineError` or the signal's reason. */
  fetch(tables: readonly PlannedTable[], request: FetchRequest): Promise<Fetched>;
};

export type FetchRequest = {
  /** A folder of the query alone, which its process may open. */
  folder: string;
  signal: AbortSignal;
  /** Called with what is about to be read from the object store, before it is requested; throws past the budget. */
  charge(sizeBytes: number): void;
};

export type Fetched = { tables: ResolvedTable[]; release(): Promise<void> };

const FETCHES = 16;

export function createExtentFetcher(store: ObjectStore): ExtentFetcher {
  const fetches = new Semaphore(FETCHES);
  const bring = async (extent: ExtentRecord, request: FetchRequest, copies: string[]): Promise<LocalExtent> => {
    const { id, format, rows } = extent;
    const path = store.localPath?.(extent.key);
    if (path !== undefined) return { id, format, rows, path };
    const copy = join(request.folder, `${id}.${format}`);
    await fetches.run(async () => {
      request.signal.throwIfAborted();
      request.charge(extent.sizeBytes);
      copies.push(copy);
      await writeFile(copy, await read(store, extent, request.signal));
    });
    return { id, format, rows, path: copy };
  };
  return {
    roots: rootsOf(store),
    async fetch(tables, request) {
      const copies: string[] = [];
      const release = async (): Promise<void> => {
        await Promise.all(copies.map((path) => rm(path, { force: true })));
      };
      const fetching = tables.map(async ({ name, columns, extents }) => ({
        name,
        columns,
        extents: await Promise.all(extents.map((extent) => bring(extent, request, copies))),
      }));
      try {
        return { tables: await Promise.all(fetching), release };
      } catch (error) {
        await Promise.allSettled(fetching);
        await release();
        throw error;
      }
    },
  };
}

async function read(store: ObjectStore, extent: ExtentRecord, signal: AbortSignal): Promise<Uint8Array> {
  try {
    return await store.get(extent.key, { signal });
  } catch (error) {
    if (!(error instanceof ObjectNotFound)) throw error;
    throw new EngineError("query_failed", `the data of extent ${extent.id} is missing`, { cause: error });
  }
}

/** The folder that holds the objects of a store with local paths. */
function rootsOf(store: ObjectStore): string[] {
  const probe = "probe";
  const path = store.localPath?.(probe);
  return path?.endsWith(probe) === true ? [path.slice(0, -probe.length)] : [];
}
