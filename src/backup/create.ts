import { mkdir, rm } from "node:fs/promises";
import type { Catalog } from "../catalog/catalog.ts";
import { SnapshotHolds, type SnapshotPin } from "../catalog/snapshot-holds.ts";
import { numbersIn, type CatalogReader, type TransferTable } from "../catalog/transfer/transfer.ts";
import type { Clock } from "../core/clock.ts";
import { EngineError } from "../core/errors.ts";
import type { IdSource } from "../core/ids.ts";
import type { Log } from "../core/log.ts";
import { VERSION } from "../core/version.ts";
import { objectKeys, ObjectNotFound, type ObjectInfo, type ObjectStore } from "../io/objectstore/objectstore.ts";
import { checksumIn, CONCURRENT_COPIES, copyObject, forEachAtOnce } from "./copy.ts";
import {
  keyHashOf,
  MANIFEST_FORMAT,
  objectLine,
  objectName,
  parseObjectName,
  type BackupObject,
  type CatalogFile,
  type Manifest,
} from "./manifest.ts";
import { Mark } from "./marks.ts";
import { OBJECTS, type Repository } from "./repository.ts";

/**
 * Makes a backup, beside whatever else goes on.
 *
 * The order is what makes it whole. The oldest readable snapshot is held first, so nothing that the catalog shows from
 * then on is deleted. Staged writes are copied before the catalog is read: one that is gone by the time of its copy was
 * committed before, so the catalog has its rows. The catalog is read as of one moment, and then the objects that it names
 * are copied, those that the destination lacks. Whatever was acknowledged before the start is in it, in one way or the
 * other.
 *
 * An interrupted backup leaves copies of objects, which the next one finds, and a folder that is no backup.
 */
export type CreatePorts = {
  catalog: Pick<Catalog, "oldestSnapshot" | "holdSnapshots" | "releaseSnapshots" | "openReader">;
  store: ObjectStore;
  clock: Clock;
  newId: IdSource;
  log: Log;
};

export type CreateOptions = {
  /** What the keys of all objects start with. */
  keyPrefix: string;
  /** A folder for this alone, which is made, and removed at the end. */
  tempDir: string;
  signal?: AbortSignal;
  onProgress?: (progress: Progress) => void;
};

export type Progress = { phase: string; objects_done?: number; objects_total?: number; bytes_copied?: number };

export type Created = {
  backup_id: string;
  snapshot: number;
  rows: number;
  objects: number;
  bytes: number;
  objects_copied: number;
  bytes_copied: number;
};

export async function createBackup(
  repository: Repository,
  ports: CreatePorts,
  options: CreateOptions,
): Promise<Created> {
  const mark = await Mark.set(repository, "running", ports);
  try {
    await mkdir(options.tempDir, { recursive: true, mode: 0o700 });
    options.onProgress?.({ phase: "waiting" });
    await mark.waitForOthers(options.signal);
    return await new Creation(repository, ports, options, mark).run();
  } finally {
    await rm(options.tempDir, { recursive: true, force: true });
    await mark.end();
  }
}

/** A snapshot is let go once in seconds at most, and held in milliseconds. */
const HOLD_TRIES = 10;

class Creation {
  readonly #repository: Repository;
  readonly #ports: CreatePorts;
  readonly #options: CreateOptions;
  readonly #mark: Mark;
  readonly #id: string;
  readonly #stop = new AbortController();
  readonly #signal: AbortSignal;
  /** What the destination has: sizes by name, and names by the hash of their key. */
  #copies = new Map<string, number>();
  #byKey = new Map<string, string>();
  readonly #objects = new Map<string, BackupObject>();
  readonly #copied = { objects: 0, bytes: 0 };

  constructor(repository: Repository, ports: CreatePorts, options: CreateOptions, mark: Mark) {
    this.#repository = repository;
    this.#ports = ports;
    this.#options = options;
    this.#mark = mark;
    this.#id = ports.newId();
    const { signal } = this.#stop;
    this.#signal = options.signal === undefined ? signal : AbortSignal.any([signal, options.signal]);
  }

  async run(): Promise<Created> {
    const holds = new SnapshotHolds({ ...this.#ports, node: this.#id });
    const pin = holds.open((reason) => this.#stop.abort(reason));
    try {
      await this.#holdOldest(pin);
      this.#copies = await this.#repository.copies();
      for (const name of this.#copies.keys()) this.#byKey.set(parseObjectName(name)?.keyHash ?? "", name);
      const { keyPrefix } = this.#options;
      const staged = await this.#copyListed(objectKeys.allStaged(keyPrefix));
      await this.#copyListed(objectKeys.allDamaged(keyPrefix));
      await this.#copyListed(objectKeys.allImages(keyPrefix));
      const read = await this.#readCatalog(staged);
      // An image may have come between its copy and the catalog that names it.
      await this.#copyListed(objectKeys.allImages(keyPrefix));
      await this.#copyExtents(read);
      pin.check();
      return await this.#publish(read);
    } finally {
      pin.close();
      await holds.close();
    }
  }

  /** Nothing has been read yet, so when the oldest goes before it is held, the one after it does as well. */
  async #holdOldest(pin: SnapshotPin): Promise<void> {
    for (let tries = 1; ; tries++) {
      const oldest = await this.#ports.catalog.oldestSnapshot();
      try {
        await pin.hold(oldest.id);
        return;
      } catch (error) {
        if (!(error instanceof EngineError && error.code === "snapshot_expired") || tries === HOLD_TRIES) throw error;
      }
    }
  }

  /** Copies all objects below a prefix; those that go meanwhile are not needed. Resolves to what was copied. */
  async #copyListed(prefix: string): Promise<BackupObject[]> {
    const found: ObjectInfo[] = [];
    const { store } = this.#ports;
    for await (const info of store.list(prefix)) if (!this.#objects.has(info.key)) found.push(info);
    const copied: BackupObject[] = [];
    this.#say(prefix.includes("/_staged/") ? "staged writes" : "other objects");
    await forEachAtOnce(found, CONCURRENT_COPIES, async (info) => {
      try {
        const checksum = this.#knownChecksum(info) ?? (await checksumIn(store, info, this.#signal));
        const { key, sizeBytes, modifiedAtMs: reachedAtMs } = info;
        const object = { key, sizeBytes, checksum, reachedAtMs };
        await this.#copy(object);
        copied.push(object);
      } catch (error) {
        if (!(error instanceof ObjectNotFound)) throw error;
      }
    });
    for (const object of copied) this.#objects.set(object.key, object);
    return copied;
  }

  /** Objects never change, so one that is here is what it was. */
  #knownChecksum({ key, sizeBytes }: ObjectInfo): string | undefined {
    const name = this.#byKey.get(keyHashOf(key));
    if (name === undefined || this.#copies.get(name) !== sizeBytes) return undefined;
    return parseObjectName(name)?.checksum;
  }

  async #readCatalog(staged: readonly BackupObject[]): Promise<ReadCatalog> {
    const reader = await this.#ports.catalog.openReader();
    try {
      this.#say("catalog");
      const read: ReadCatalog = { reader, snapshot: 0, tables: [], extents: [], names: new TableNames() };
      const committed = new Set<unknown>();
      for (const table of reader.tables) {
        const lines = linesOf(reader, table, (row) => {
          read.names.note(table, row);
          if (table.name === "extents") {
            read.extents.push({ ...extentIn(table, row), tableId: row[placeOf(table, "table_id")] });
          }
          if (table.name === "staged") committed.add(row[placeOf(table, "id")]);
        });
        const file = await this.#write(table.name, lines);
        read.tables.push({ name: table.name, ...file });
      }
      read.snapshot = (await numbersIn(reader)).last_snapshot;
      // Their rows are in the catalog, which does not remember for ever that they are.
      for (const { key } of staged) if (committed.has(key.split("/").at(-1))) this.#objects.delete(key);
      return read;
    } finally {
      await reader.close();
    }
  }

  /** Copies all that are there, also when the backup fails because some are not: the next one has less to do. */
  async #copyExtents({ extents, names }: Pick<ReadCatalog, "extents" | "names">): Promise<void> {
    let done = 0;
    const missing: Extent[] = [];
    await forEachAtOnce(extents, CONCURRENT_COPIES, async ({ tableId, ...object }) => {
      try {
        await this.#copy(object);
        this.#objects.set(object.key, object);
      } catch (error) {
        if (!(error instanceof ObjectNotFound)) throw error;
        missing.push({ ...object, tableId });
      }
      done++;
      const { bytes } = this.#copied;
      this.#say("extents", { objects_done: done, objects_total: extents.length, bytes_copied: bytes });
    });
    const [first] = missing;
    if (first !== undefined) throw missingObjects(first, missing.length, names);
  }

  async #copy(object: BackupObject): Promise<void> {
    this.#signal.throwIfAborted();
    const name = objectName(object);
    const { key, sizeBytes, checksum } = object;
    if (this.#copies.get(name) === sizeBytes) return;
    const { store, newId } = this.#ports;
    const [to, toKey, { tempDir }] = [this.#repository.store, this.#repository.keyOf(name), this.#options];
    const copy = { from: store, fromKey: key, to, toKey, sizeBytes, checksum, tempDir, newId, signal: this.#signal };
    await copyObject(copy);
    this.#copies.set(name, sizeBytes);
    this.#copied.objects++;
    this.#copied.bytes += sizeBytes;
  }

  async #publish({ reader, snapshot, tables }: ReadCatalog): Promise<Created> {
    const objects = [...this.#objects.values()];
    const lines = async function* (): AsyncGenerator<unknown[]> {
      yield [
        { table: OBJECTS, columns: ["key", "size_bytes", "checksum", "reached_at_ms"] },
        ...objects.map(objectLine),
      ];
    };
    const file = await this.#write(OBJECTS, lines());
    const totalBytes = objects.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    const manifest: Manifest = {
      format: MANIFEST_FORMAT,
      id: this.#id,
      created_at: new Date(this.#ports.clock.nowMs()).toISOString(),
      engine_version: VERSION,
      schema: reader.schema,
      snapshot,
      key_prefix: this.#options.keyPrefix,
      tables,
      objects: { ...file, total_bytes: totalBytes },
    };
    await this.#mark.check();
    this.#signal.throwIfAborted();
    await this.#repository.publish(manifest);
    await this.#stillPublished(manifest.id);
    return {
      backup_id: manifest.id,
      snapshot,
      rows: tables.reduce((sum, { rows }) => sum + rows, 0),
      objects: objects.length,
      bytes: totalBytes,
      objects_copied: this.#copied.objects,
      bytes_copied: this.#copied.bytes,
    };
  }

  /** Who stood still between the last look and the manifest may have named what was pruned meanwhile. */
  async #stillPublished(id: string): Promise<void> {
    try {
      await this.#mark.check();
    } catch (error) {
      await this.#repository.delete([`backups/${id}/manifest.json`]);
      throw error;
    }
  }

  #write(table: string, lines: AsyncIterable<readonly unknown[]>): Promise<CatalogFile> {
    const { tempDir } = this.#options;
    const { newId } = this.#ports;
    return this.#repository.writeFile(this.#id, table, { lines, tempDir, newId, signal: this.#signal });
  }

  #say(phase: string, numbers: Omit<Progress, "phase"> = {}): void {
    this.#options.onProgress?.({ phase, ...numbers });
  }
}

type Extent = BackupObject & { tableId: unknown };

type ReadCatalog = {
  reader: Pick<CatalogReader, "schema">;
  snapshot: number;
  tables: Manifest["tables"];
  extents: Extent[];
  names: TableNames;
};

/** How the tables of the catalog are called, for messages. */
class TableNames {
  readonly #databases = new Map<unknown, unknown>();
  readonly #tables = new Map<unknown, { databaseId: unknown; name: unknown }>();

  /** Notes a row of any table of the catalog. */
  note(table: TransferTable, row: readonly unknown[]): void {
    const value = (name: string): unknown => row[placeOf(table, name)];
    if (table.name === "databases") this.#databases.set(value("id"), value("name"));
    if (table.name === "tables")
      this.#tables.set(value("id"), { databaseId: value("database_id"), name: value("name") });
  }

  of(tableId: unknown): string {
    const { databaseId, name } = this.#tables.get(tableId) ?? {};
    return `${String(this.#databases.get(databaseId))}.${String(name)}`;
  }
}

/**
 * A backup without them would look whole and lack rows. Whoever runs it has to decide about them, so it is not tried
 * again by itself.
 */
function missingObjects({ key, tableId }: Extent, count: number, names: TableNames): EngineError {
  const others = count === 1 ? "" : `; ${count - 1} more objects of the catalog are missing`;
  const what = `the table ${names.of(tableId)} needs the object ${key}, which is missing in the object store${others}`;
  return new EngineError(
    "conflict",
    `${what}. Put the object back under that key, or drop the table, and make the backup again (docs/backup.md, ` +
      '"An object is missing")',
  );
}

/** A table as lines: what its columns are, then its rows. `onRow` sees each. */
async function* linesOf(
  reader: CatalogReader,
  table: TransferTable,
  onRow: (row: readonly unknown[]) => void,
): AsyncGenerator<readonly unknown[]> {
  yield [{ table: table.name, columns: table.columns }];
  for await (const rows of reader.rows(table.name)) {
    rows.forEach(onRow);
    yield rows;
  }
}

function placeOf(table: TransferTable, name: string): number {
  return table.columns.findIndex((column) => column.name === name);
}

/** The object of an extent's row. */
export function extentIn(table: TransferTable, row: readonly unknown[]): BackupObject {
  const value = (name: string): unknown => row[placeOf(table, name)];
  return {
    key: String(value("object_key")),
    sizeBytes: Number(value("size_bytes")),
    checksum: String(value("checksum")),
  };
}
