import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openIn } from "../catalog/transfer/transfer.test-kit.ts";
import { aFlush, anExtent, column } from "../catalog/contract-fixtures.test-kit.ts";
import type { CatalogDatabase } from "../catalog/catalog-database.ts";
import { schemaNumbersOf } from "../catalog/transfer/schema-numbers.ts";
import { MIGRATIONS } from "../catalog/migrations.test-kit.ts";
import { loadSqlite, withEmptySqlite } from "../catalog/sqlite/transfer-load.ts";
import { systemClock } from "../core/clock.ts";
import { uuidV7Source } from "../core/ids.ts";
import { silentLog } from "../core/log.ts";
import { systemRandom } from "../core/random.ts";
import { checksumOf } from "../format/checksum.ts";
import { openFilesystemStore } from "../io/objectstore/filesystem.ts";
import type { ObjectStore } from "../io/objectstore/objectstore.ts";
import { createBackup, type CreateOptions, type CreatePorts } from "./create.ts";
import { Repository } from "./repository.ts";
import { restoreBackup, type Restored } from "./restore.ts";

export const newId = uuidV7Source(systemClock, systemRandom);
export const PORTS = { clock: systemClock, newId, log: silentLog };

export const openStoreIn = (root: string): Promise<ObjectStore> =>
  openFilesystemStore({ root, random: systemRandom, log: silentLog });

/** A catalog with a store, and a destination beside them, below one folder. */
export async function openWorld() {
  const folder = await mkdtemp(join(tmpdir(), "engine-backup-"));
  const store = await openStoreIn(join(folder, "data"));
  const catalog = await openIn(folder);
  const columns = [column("at", "timestamp"), column("id")];
  const { table } = await catalog.createTable({ database: "default", name: "t", columns });
  const destination = await openStoreIn(join(folder, "backups"));
  const repository = new Repository(destination, "");
  return {
    folder,
    store,
    catalog,
    table,
    destination,
    repository,
    /** Commits an extent of ten rows, and tells its key. */
    addExtent: async (sizeBytes = 1_000): Promise<string> => {
      const bytes = randomBytes(sizeBytes);
      const id = newId();
      const key = `engine/default/t/2026-01-01/${id}.tlm`;
      await store.put(key, bytes);
      await catalog.commit([
        aFlush(table, { extents: [anExtent({ id, key, sizeBytes, checksum: checksumOf(bytes) })] }),
      ]);
      return key;
    },
    create: (
      changed: {
        store?: ObjectStore;
        repository?: Repository;
        reads?: CreatePorts["catalog"];
      } & Partial<CreateOptions> = {},
    ) => {
      const { store: from = store, repository: into = repository, reads = catalog, ...options } = changed;
      const tempDir = join(folder, "tmp", newId());
      return createBackup(
        into,
        { ...PORTS, catalog: reads, store: from },
        { keyPrefix: "engine", tempDir, ...options },
      );
    },
    /** Restores the newest backup into an empty catalog in a folder below. */
    restore: async (into: string, changed: { repository?: Repository } = {}): Promise<Restored> => {
      const from = changed.repository ?? repository;
      const manifest = await from.find(undefined);
      const to = await openStoreIn(join(folder, into, "data"));
      const tempDir = join(folder, "tmp", newId());
      return await withEmptySqlite(join(folder, into, "catalog.db"), (path) => {
        const load = (options: Parameters<Parameters<typeof restoreBackup>[2]["load"]>[0]): Promise<void> =>
          loadSqlite(path, { ...options, migrations: MIGRATIONS, clock: systemClock });
        const options = { keyPrefix: "engine", tempDir, known: schemaNumbersOf(MIGRATIONS) };
        return restoreBackup(from, manifest, { store: to, newId, load }, options);
      });
    },
    open: (into: string): Promise<CatalogDatabase> => openIn(join(folder, into)),
    close: async (): Promise<void> => {
      await catalog.close();
      await rm(folder, { recursive: true });
    },
  };
}

export type World = Awaited<ReturnType<typeof openWorld>>;

export async function keysIn(store: ObjectStore, prefix: string): Promise<string[]> {
  return (await Array.fromAsync(store.list(prefix))).map(({ key }) => key);
}
