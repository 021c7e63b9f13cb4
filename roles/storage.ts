import type { CatalogDatabase } from "../src/catalog/catalog-database.ts";
import type { RecordStore } from "../src/db/records.ts";
import type { Signals } from "../src/db/signals.ts";
import { migrationsOf } from "../src/feature/collect.ts";
import { openSqliteCatalog } from "../src/catalog/sqlite/sqlite.ts";
import { objectStoreSettings } from "../src/config/object-store.ts";
import { openFilesystemStore } from "../src/io/objectstore/filesystem.ts";
import type { ObjectStore } from "../src/io/objectstore/objectstore.ts";
import type { Parts } from "./parts.ts";

/** Where the data is: what an edge that only forwards does without. */
export type Storage = { catalog: CatalogDatabase; records: RecordStore; signals: Signals; store: ObjectStore };

export async function openStorage(parts: Parts): Promise<Storage> {
  const catalog = await openCatalog(parts);
  parts.cleanup.defer(() => catalog.close());
  return { catalog, records: catalog.records, signals: catalog.signals, store: await openStore(parts) };
}

/** The catalog that the configuration names. */
async function openCatalog({ config, clock, random, log, metrics, features }: Parts): Promise<CatalogDatabase> {
  const migrations = await migrationsOf(features);
  if (config.catalogUrl.kind === "postgres") {
    const { openPostgresCatalog } = await import("../src/catalog/postgres/postgres.ts");
    return openPostgresCatalog({
      url: config.catalogUrl.url,
      clock,
      random,
      migrations,
      mode: "server",
      maxConnections: config.catalogMaxConns,
      acquireTimeoutMs: config.catalogAcquireTimeoutSecs * 1000,
      metrics,
    });
  }
  return openSqliteCatalog({
    path: config.catalogUrl.path,
    clock,
    log,
    migrations,
    mode: "server",
    onFailure: (reason) => {
      // Nothing can be read or acknowledged any more, and what was acknowledged is safe: let a supervisor start anew.
      log.fatal({ err: reason }, "the catalog failed; the server ends");
      process.exit(1);
    },
  });
}

/** The object store that the configuration names; looked at before anything relies on it. */
async function openStore(parts: Parts): Promise<ObjectStore> {
  const { config, clock, random, log, metrics, newId, cleanup } = parts;
  const settings = objectStoreSettings(parts);
  if (settings.kind === "local") return openFilesystemStore({ root: settings.root, random, log });
  // Loading the client takes 80 ms, which a laptop need not wait for.
  const { openS3Store } = await import("../src/io/objectstore/s3/s3.ts");
  const { checkStore } = await import("../src/io/objectstore/s3/check-store.ts");
  const store = openS3Store({ ...settings, clock, random, log, metrics });
  cleanup.defer(async () => store.close());
  await checkStore(store, { prefix: config.pathPrefix, newId });
  return store;
}
