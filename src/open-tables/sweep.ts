import type { StorageDeps } from "../feature/feature.ts";
import type { Duty } from "../feature/lease-loop.ts";
import { openTablesOf } from "./open-tables.ts";
import { allMetadata } from "./place.ts";

/**
 * A day, and another one for the clocks of store and catalog. Who writes a manifest anew writes its object anew; what is
 * used again as it is belongs to the newest snapshot, which is never forgotten.
 */
const MIN_AGE_MS = 2 * 86_400_000;
const OBJECTS_AT_ONCE = 1_000;

/** Deletes metadata that no snapshot needs which can still be read, and that of tables that are gone. */
export function createMetadataSweep(deps: StorageDeps): Duty {
  const { catalog, store, config } = deps;
  return async ({ signal }) => {
    const { announced } = openTablesOf(deps);
    const prefix = allMetadata(config.pathPrefix);
    const beforeMs = (await catalog.nowMs()) - MIN_AGE_MS;
    const alive = new Set((await catalog.allTables()).map(({ id }) => id));
    for (const tableId of await announced.tables()) {
      signal.throwIfAborted();
      if (alive.has(tableId)) await announced.forgetBefore(tableId, (await catalog.oldestSnapshot(tableId)).id);
      else await announced.forgetTable(tableId);
    }
    const needed = new NeededKeys((tableId) => announced.keysOf(tableId));
    let gone: string[] = [];
    const remove = async (): Promise<void> => {
      await store.delete(gone);
      gone = [];
    };
    for await (const { key, modifiedAtMs } of store.list(prefix)) {
      signal.throwIfAborted();
      if (modifiedAtMs >= beforeMs) continue;
      const tableId = Number(key.slice(prefix.length).split("/")[0]);
      if (!Number.isSafeInteger(tableId) || (await needed.of(tableId)).has(key)) continue;
      gone.push(key);
      if (gone.length === OBJECTS_AT_ONCE) await remove();
    }
    await remove();
  };
}

/** Objects come table by table, so the keys of one table are kept at a time. */
class NeededKeys {
  readonly #read: (tableId: number) => Promise<ReadonlySet<string>>;
  #tableId = -1;
  #keys: ReadonlySet<string> = new Set();

  constructor(read: (tableId: number) => Promise<ReadonlySet<string>>) {
    this.#read = read;
  }

  async of(tableId: number): Promise<ReadonlySet<string>> {
    if (tableId !== this.#tableId) {
      this.#keys = await this.#read(tableId);
      this.#tableId = tableId;
    }
    return this.#keys;
  }
}
