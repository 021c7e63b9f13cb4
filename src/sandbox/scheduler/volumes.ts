import type { RecordStore } from "../../catalog/records.ts";
import { textOf } from "../../fabric/job.ts";
import { volumeKey } from "../volume-key.ts";

/**
 * Forgets those volumes of a node that no sandbox names, of those that the node would remove, and returns them: whoever
 * names one from here on gets a new one. Keys that are not known here are of volumes that were forgotten before.
 */
export async function forgetVolumes(records: RecordStore, nodeId: string, keys: readonly string[]): Promise<string[]> {
  if (keys.length === 0) return [];
  const rows = await records.rows("SELECT tenant, name FROM sandbox_volumes WHERE node_id = ?", [nodeId]);
  const known = new Map(
    rows.map((row) => {
      const [tenant, name] = [textOf(row, "tenant"), textOf(row, "name")];
      return [volumeKey(tenant, name), { tenant, name }];
    }),
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
