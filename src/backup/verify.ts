import { messageOf } from "../core/errors.ts";
import { checksumIn, CONCURRENT_COPIES, forEachAtOnce } from "./copy.ts";
import { objectName, type BackupObject, type Manifest } from "./manifest.ts";
import { DamagedBackup, fileName, manifestName, type Repository } from "./repository.ts";

/** Something that is not as it was written. */
export type Problem = {
  backup_id: string;
  /** Its name in the destination. */
  file: string;
  /** The object of the store that it is a copy of. */
  object_key?: string;
  problem: string;
};

export type Verified = { backups: number; files: number; objects: number; bytes: number; problems: Problem[] };

export type VerifyOptions = {
  signal?: AbortSignal;
  onProgress?: (done: number) => void;
  /** Of the catalog alone; the objects are not read. */
  isCatalogOnly?: true;
};

/** Rereads backups, all of them or the given ones, and compares every hash. Objects that several share are read once. */
export async function verifyBackups(
  repository: Repository,
  manifests: readonly Manifest[],
  options: VerifyOptions = {},
): Promise<Verified> {
  const verified: Verified = { backups: 0, files: 0, objects: 0, bytes: 0, problems: [] };
  const seen = new Map<string, string | undefined>();
  for (const manifest of manifests) {
    verified.backups++;
    await verifyFiles(repository, manifest, verified);
    if (options.isCatalogOnly !== true) await verifyObjects(repository, manifest, verified, seen, options);
  }
  return verified;
}

/** Those that cannot even be read. */
export async function unusableBackups(repository: Repository): Promise<Problem[]> {
  const listed = await repository.list();
  return listed.flatMap((one) =>
    "problem" in one ? [{ backup_id: one.id, file: manifestName(one.id), problem: one.problem }] : [],
  );
}

async function verifyFiles(repository: Repository, manifest: Manifest, verified: Verified): Promise<void> {
  for (const { name, ...file } of manifest.tables) {
    verified.files++;
    verified.bytes += file.size_bytes;
    try {
      for await (const line of repository.readFile(manifest.id, name, file)) void line;
    } catch (error) {
      if (!(error instanceof DamagedBackup)) throw error;
      verified.problems.push({ backup_id: manifest.id, file: error.file, problem: error.message });
    }
  }
}

async function verifyObjects(
  repository: Repository,
  manifest: Manifest,
  verified: Verified,
  seen: Map<string, string | undefined>,
  { signal, onProgress }: VerifyOptions,
): Promise<void> {
  const objects: BackupObject[] = [];
  try {
    for await (const object of repository.objects(manifest)) objects.push(object);
  } catch (error) {
    if (!(error instanceof DamagedBackup)) throw error;
    verified.problems.push({ backup_id: manifest.id, file: fileName(manifest.id, "objects"), problem: error.message });
    return;
  }
  await forEachAtOnce(objects, CONCURRENT_COPIES, async (object) => {
    signal?.throwIfAborted();
    const file = objectName(object);
    if (!seen.has(file)) {
      seen.set(file, await problemOf(repository, object, signal));
      verified.objects++;
      verified.bytes += object.sizeBytes;
      onProgress?.(verified.objects);
    }
    const problem = seen.get(file);
    if (problem !== undefined)
      verified.problems.push({ backup_id: manifest.id, file, object_key: object.key, problem });
  });
}

async function problemOf(
  repository: Repository,
  object: BackupObject,
  signal: AbortSignal | undefined,
): Promise<string | undefined> {
  try {
    const info = await repository.store.head(repository.keyOf(objectName(object)));
    if (info === undefined) return "it is missing";
    if (info.sizeBytes !== object.sizeBytes) return `it has ${info.sizeBytes} bytes, not ${object.sizeBytes}`;
    const found = await checksumIn(repository.store, info, signal);
    return found === object.checksum ? undefined : `its checksum is ${found}, not ${object.checksum}`;
  } catch (error) {
    signal?.throwIfAborted();
    return `it cannot be read: ${messageOf(error)}`;
  }
}
