import { mkdir, rm } from "node:fs/promises";
import type { LoadOptions } from "../catalog/transfer/load.ts";
import type { SchemaNumbers, TransferRow, TransferSource, TransferTable } from "../catalog/transfer/transfer.ts";
import { EngineError, messageOf } from "../core/errors.ts";
import type { IdSource } from "../core/ids.ts";
import { checkObjectKey, objectKeys, ObjectNotFound, type ObjectStore } from "../io/objectstore/objectstore.ts";
import { checksumIn, CONCURRENT_COPIES, copyObject, DamagedObject, forEachAtOnce } from "./copy.ts";
import { extentIn } from "./create.ts";
import { objectName, type BackupObject, type Manifest } from "./manifest.ts";
import { DamagedBackup, fileName, type Repository } from "./repository.ts";
import { verifyBackups } from "./verify.ts";

/**
 * Brings a backup back: the files of its catalog are read and compared with their hashes first, then each object is
 * copied and the copy compared, and the catalog is loaded at last, whole or not at all. Until then the catalog is as empty
 * as before; so what was interrupted is repeated, and finds the objects that it copied. When an object is damaged, those
 * that were copied are deleted again.
 */
export type RestorePorts = {
  store: ObjectStore;
  newId: IdSource;
  /** Loads into the empty catalog. */
  load: (options: Pick<LoadOptions, "source" | "signal">) => Promise<void>;
};

export type RestoreOptions = {
  keyPrefix: string;
  tempDir: string;
  /** How many migrations this program knows. */
  known: SchemaNumbers;
  signal?: AbortSignal;
  onProgress?: (phase: string, done: number, total: number) => void;
};

export type Restored = { backup_id: string; snapshot: number; rows: number; objects: number; bytes: number };

export async function restoreBackup(
  repository: Repository,
  manifest: Manifest,
  ports: RestorePorts,
  options: RestoreOptions,
): Promise<Restored> {
  checkFits(manifest, options);
  await mkdir(options.tempDir, { recursive: true, mode: 0o700 });
  try {
    await verifyCatalog(repository, manifest, options);
    const objects = await objectsOf(repository, manifest);
    await copyAll(repository, objects, ports, options);
    const source = await sourceOf(repository, manifest, new Map(objects.map((object) => [object.key, object])));
    await ports.load({ source, ...(options.signal !== undefined && { signal: options.signal }) });
    return {
      backup_id: manifest.id,
      snapshot: manifest.snapshot,
      rows: manifest.tables.reduce((sum, { rows }) => sum + rows, 0),
      objects: objects.length,
      bytes: manifest.objects.total_bytes,
    };
  } finally {
    await rm(options.tempDir, { recursive: true, force: true });
  }
}

function checkFits({ id, key_prefix: prefix, schema }: Manifest, { keyPrefix, known }: RestoreOptions): void {
  if (prefix !== keyPrefix) {
    const what = `the objects of backup ${id} lie below ${prefix}, those of this configuration below ${keyPrefix}`;
    throw new EngineError("conflict", `${what}: set ENGINE_PATH_PREFIX to ${prefix}`);
  }
  if (schema.sqlite > known.sqlite || schema.postgres > known.postgres) {
    throw new EngineError("conflict", `backup ${id} was made by a newer version of this program: restore it with that`);
  }
}

async function verifyCatalog(repository: Repository, manifest: Manifest, { signal }: RestoreOptions): Promise<void> {
  const options = { isCatalogOnly: true, ...(signal !== undefined && { signal }) } as const;
  const { problems } = await verifyBackups(repository, [manifest], options);
  const [first] = problems;
  if (first !== undefined) throw new DamagedBackup(first.file, `${first.problem}. ${NOTHING_RESTORED}`);
}

const NOTHING_RESTORED = "Nothing was restored; `engine backup verify` names everything that is damaged";

async function objectsOf(repository: Repository, manifest: Manifest): Promise<BackupObject[]> {
  const objects: BackupObject[] = [];
  for await (const object of repository.objects(manifest)) {
    checkObjectKey(object.key);
    if (!object.key.startsWith(`${manifest.key_prefix}/`)) {
      throw new DamagedBackup(
        fileName(manifest.id, "objects"),
        `the key ${object.key} is outside ${manifest.key_prefix}`,
      );
    }
    objects.push(object);
  }
  return objects;
}

/** Reads each object of the backup once; throws `DamagedBackup`, with no copy left, when one is not as it was written. */
async function copyAll(
  repository: Repository,
  objects: readonly BackupObject[],
  ports: RestorePorts,
  options: RestoreOptions,
): Promise<void> {
  const { keyPrefix, signal, onProgress } = options;
  const copied: string[] = [];
  let done = 0;
  try {
    await forEachAtOnce(objects, CONCURRENT_COPIES, async (object) => {
      signal?.throwIfAborted();
      const isStaged = object.key.startsWith(objectKeys.allStaged(keyPrefix));
      const toKey = isStaged ? objectKeys.restored(object.key, object.reachedAtMs ?? 0) : object.key;
      if (!(await isThere(ports.store, toKey, object, signal))) {
        copied.push(toKey);
        await copyCompared(repository, object, toKey, ports, options);
      }
      onProgress?.("copying", ++done, objects.length);
    });
  } catch (error) {
    if (error instanceof DamagedBackup) await ports.store.delete(copied);
    throw error;
  }
}

async function copyCompared(
  repository: Repository,
  object: BackupObject,
  toKey: string,
  { store, newId }: RestorePorts,
  { tempDir, signal }: RestoreOptions,
): Promise<void> {
  const { key, sizeBytes, checksum } = object;
  const name = objectName(object);
  const copy = { from: repository.store, fromKey: repository.keyOf(name), to: store, toKey, sizeBytes, checksum };
  const isWhole = async (): Promise<boolean> => {
    const seen = await copyObject({ ...copy, tempDir, newId, ...(signal !== undefined && { signal }) });
    // The bytes are still in the page cache where a file system copied them.
    return seen === "compared" || (await isThere(store, toKey, object, signal));
  };
  try {
    if (await isWhole()) return;
  } catch (error) {
    if (error instanceof ObjectNotFound) throw new DamagedBackup(name, `it is missing (${key}). ${NOTHING_RESTORED}`);
    if (!(error instanceof DamagedObject)) throw signal?.aborted === true ? error : notCopied(name, key, error);
  }
  throw new DamagedBackup(name, `its size or checksum is another one (${key}). ${NOTHING_RESTORED}`);
}

function notCopied(name: string, key: string, error: unknown): EngineError {
  if (error instanceof EngineError) return error;
  const what = `${name} (${key}) could not be copied: ${messageOf(error)}`;
  return new EngineError("unavailable", `${what}. The catalog is still empty: restore again`, { cause: error });
}

/** Where the store was not lost, or a restore was interrupted. What is damaged there is copied again. */
async function isThere(
  store: ObjectStore,
  key: string,
  { sizeBytes, checksum }: BackupObject,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const info = await store.head(key);
  return info?.sizeBytes === sizeBytes && (await checksumIn(store, info, signal)) === checksum;
}

/** The catalog as a load takes it. Every object that an extent names is among those that were copied. */
async function sourceOf(
  repository: Repository,
  { id, tables: files, schema }: Manifest,
  objects: ReadonlyMap<string, BackupObject>,
): Promise<TransferSource> {
  const tables: TransferTable[] = [];
  const fileOf = new Map(files.map((file) => [file.name, file]));
  for (const file of files) {
    const reading = repository.readFile(id, file.name, file);
    tables.push(headerIn((await reading.next()).value, file.name, id));
    await reading.return(undefined);
  }
  const rows = async function* (name: string): AsyncGenerator<TransferRow[]> {
    const [table, file] = [tables.find((one) => one.name === name), fileOf.get(name)];
    if (table === undefined || file === undefined) return;
    let batch: TransferRow[] = [];
    let isHeader = true;
    for await (const line of repository.readFile(id, name, file)) {
      if (isHeader) {
        isHeader = false;
        continue;
      }
      const row = rowIn(line, table, id);
      if (name === "extents") checkHasObject(table, row, objects, id);
      batch.push(row);
      if (batch.length < BATCH_ROWS) continue;
      yield batch;
      batch = [];
    }
    yield batch;
  };
  return { schema, tables, rows };
}

const BATCH_ROWS = 200;

function isColumn(column: unknown): column is TransferTable["columns"][number] {
  const { name, type } = (column ?? {}) as Record<string, unknown>;
  return typeof name === "string" && (type === "int" || type === "text" || type === "blob");
}

function headerIn(line: unknown, name: string, id: string): TransferTable {
  const header = line as { table?: unknown; columns?: unknown } | undefined;
  const columns: unknown[] = Array.isArray(header?.columns) ? header.columns : [];
  if (header?.table === name && columns.length > 0 && columns.every(isColumn)) return { name, columns };
  throw new DamagedBackup(fileName(id, name), "its first line does not say what its columns are");
}

function rowIn(line: unknown, { name, columns }: TransferTable, id: string): TransferRow {
  const isRow = Array.isArray(line) && line.length === columns.length;
  if (isRow && line.every((value) => value === null || typeof value === "string" || typeof value === "number")) {
    return line as TransferRow;
  }
  throw new DamagedBackup(fileName(id, name), "a line is no row of its columns");
}

function checkHasObject(
  table: TransferTable,
  row: TransferRow,
  objects: ReadonlyMap<string, BackupObject>,
  id: string,
): void {
  const wanted = extentIn(table, row);
  const found = objects.get(wanted.key);
  if (found?.checksum === wanted.checksum && found.sizeBytes === wanted.sizeBytes) return;
  throw new DamagedBackup(fileName(id, table.name), `an extent names ${wanted.key}, which is no object of the backup`);
}
