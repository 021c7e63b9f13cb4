import type { RecordRow, RecordStore } from "../../catalog/records.ts";
import type { IdSource } from "../../core/ids.ts";
import { optionalText, textOf } from "../../fabric/job.ts";
import type { SandboxSpec } from "../spec.ts";
import { volumeKey } from "../volume-key.ts";

/**
 * Volumes are found by owner and name; on its node each has a key, which nobody chooses: so a volume keeps its bytes when
 * its owner changes, and whoever takes the name after that gets another one.
 */
export function newVolumeKey(newId: IdSource): string {
  return newId().replaceAll("-", "");
}

/** Keys of the volumes that a spec names, by their names, for the node that mounts them. */
export async function volumeKeysOf(
  records: Pick<RecordStore, "rows">,
  tenant: string,
  { volumes }: Pick<SandboxSpec, "volumes">,
): Promise<Record<string, string>> {
  if (volumes.length === 0) return {};
  const rows = await records.rows(
    "SELECT name, volume_key, keyed_by FROM sandbox_volumes WHERE tenant = ? " +
      `AND name IN (${volumes.map(() => "?").join(", ")})`,
    [tenant, ...volumes.map(({ name }) => name)],
  );
  return Object.fromEntries(rows.map((row) => [textOf(row, "name"), keyIn(row)]));
}

function keyIn(row: RecordRow): string {
  return optionalText(row, "volume_key") ?? volumeKey(textOf(row, "keyed_by"), textOf(row, "name"));
}

/**
 * Forgets those volumes of a node that no sandbox names, of those that the node would remove, and returns them: whoever
 * names one from here on gets a new one. Keys that are not known here are of volumes that were forgotten before.
 */
export async function forgetVolumes(records: RecordStore, nodeId: string, keys: readonly string[]): Promise<string[]> {
  if (keys.length === 0) return [];
  const rows = await records.rows("SELECT tenant, name, volume_key, keyed_by FROM sandbox_volumes WHERE node_id = ?", [
    nodeId,
  ]);
  const known = new Map(
    rows.map((row) => [keyIn(row), { tenant: textOf(row, "tenant"), name: textOf(row, "name") }] as const),
  );
  const forgotten: string[] = [];
  for (const key of keys) {
    const volume = known.get(key);
    if (volume === undefined || (await forget(records, nodeId, volume))) forgotten.push(key);
  }
  return forgotten;
}

async function forget(
  records: RecordStore,
  nodeId: string,
  { tenant, name }: { tenant: string; name: string },
): Promise<boolean> {
  const sql =
    "DELETE FROM sandbox_volumes WHERE tenant = ? AND name = ? AND node_id = ? " +
    // What is stopped, lost, or not put away yet counts; a name that is something else in a spec keeps the volume, too.
    "AND NOT EXISTS (SELECT 1 FROM sandboxes WHERE sandboxes.tenant = ? AND sandboxes.spec LIKE ?) RETURNING name";
  const values = [tenant, name, nodeId, tenant, `%"name":${JSON.stringify(name)}%`];
  return (await records.transact([{ sql, values, mustReturn: 1 }])).done;
}
