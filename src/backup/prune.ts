import { EngineError } from "../core/errors.ts";
import { objectName } from "./manifest.ts";
import { Mark, type MarkPorts } from "./marks.ts";
import { isBackupId, manifestName, type Repository } from "./repository.ts";

export type Pruned = {
  backups_deleted: string[];
  backups_kept: number;
  objects_deleted: number;
  /** A backup was being made: objects that nobody needs were left for the next time. */
  objects_left: boolean;
};

const AT_ONCE = 1_000;

/**
 * Deletes all but the newest `keep` backups: their manifests first, so that a backup is either whole or not there; then
 * what is left of them, and the objects that no backup needs. A backup that cannot be read is none of the newest ones, and
 * keeps all objects, for nobody knows what it needs.
 */
export async function pruneBackups(repository: Repository, keep: number, ports: MarkPorts): Promise<Pruned> {
  if (!Number.isSafeInteger(keep) || keep < 1)
    throw new EngineError("invalid_parameter", "at least one backup is kept");
  const listed = await repository.list();
  const unusable = listed.find((one) => "problem" in one);
  if (unusable !== undefined && "problem" in unusable) {
    const what = `backup ${unusable.id} cannot be read (${unusable.problem}), so nobody knows which objects it needs`;
    throw new EngineError("conflict", `${what}: delete its folder backups/${unusable.id} first, and prune again`);
  }
  const gone = listed.slice(0, Math.max(0, listed.length - keep)).map(({ id }) => id);
  await repository.delete(gone.map(manifestName));
  const pruned: Pruned = {
    backups_deleted: gone,
    backups_kept: listed.length - gone.length,
    objects_deleted: 0,
    objects_left: false,
  };
  const mark = await Mark.set(repository, "pruning", ports);
  try {
    if (await mark.seesOther()) pruned.objects_left = true;
    else pruned.objects_deleted = await deleteUnneeded(repository, mark);
  } finally {
    await mark.end();
  }
  return pruned;
}

async function deleteUnneeded(repository: Repository, mark: Mark): Promise<number> {
  const needed = new Set<string>();
  const kept = new Set<string>();
  for (const one of await repository.list()) {
    // One that came just now by somebody without a mark would be lost by what follows.
    if ("problem" in one) throw new EngineError("conflict", `backup ${one.id} cannot be read: ${one.problem}`);
    kept.add(one.id);
    for await (const object of repository.objects(one.manifest)) needed.add(objectName(object));
  }
  const files: string[] = [];
  for await (const { name } of repository.names("backups")) {
    const id = name.split("/")[1] ?? "";
    if (isBackupId(id) && !kept.has(id)) files.push(name);
  }
  const objects = [...(await repository.copies()).keys()].filter((name) => !needed.has(name));
  const all = [...files, ...objects];
  for (let from = 0; from < all.length; from += AT_ONCE) {
    await mark.check();
    await repository.delete(all.slice(from, from + AT_ONCE));
  }
  return objects.length;
}
