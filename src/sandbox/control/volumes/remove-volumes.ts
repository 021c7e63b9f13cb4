import type { AuditLog, Origin } from "../../../auth/audit.ts";
import { mayReach, type Asker } from "../../../auth/owner.ts";
import { NOW, type RecordRow, type RecordStore, type Statement } from "../../../catalog/records.ts";
import { EngineError } from "../../../core/errors.ts";
import type { IdSource } from "../../../core/ids.ts";
import type { Log } from "../../../core/log.ts";
import { optionalText, textOf } from "../../../fabric/job.ts";
import type { SandboxSignals } from "../signals.ts";
import { keyIn, NAMES_VOLUME } from "./volume.ts";

/**
 * Volumes that go: by their owner's wish, or because no sandbox has named them for long. The record goes at once, and the
 * name is free; the disk goes when its node has heard of it (`gone_volumes`), however long that is away.
 */

type VolumeDeps = {
  records: RecordStore;
  audit: AuditLog;
  signals: Pick<SandboxSignals, "roomFreed">;
  log: Log;
  newId: IdSource;
};

const COLUMNS = "volume_id, tenant, name, node_id, size_mb, used_at_ms, volume_key, keyed_by";
const SHOWN_USERS = 5;
const AT_ONCE = 100;
/** A sandbox may name the volume meanwhile: a deletion that meets it begins again so often. */
const ATTEMPTS = 20;

export function volumeNotFound(id: string): EngineError {
  return new EngineError("volume_not_found", `there is no volume ${id}`);
}

/** Rejects with `volume_not_found`, and `conflict` while a sandbox names it. */
export async function deleteVolume(
  { records, audit, signals }: Pick<VolumeDeps, "records" | "audit" | "signals">,
  id: string,
  { asker, origin }: { asker: Asker; origin: Origin },
): Promise<void> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const sql = `SELECT ${COLUMNS} FROM sandbox_volumes WHERE volume_id = ?`;
    const [row] = id.includes("\0") ? [] : await records.rows(sql, [id]);
    if (row === undefined || !mayReach(asker, textOf(row, "tenant"))) throw volumeNotFound(id);
    await checkUnused(records, row);
    const name = textOf(row, "name");
    const details = { name, tenant: textOf(row, "tenant"), size_mb: Number(row["size_mb"]) };
    const { done } = await records.transact([
      // What is about to be put away needs no volume any more.
      ...removal(row, "sandboxes.deleted_at_ms IS NULL"),
      audit.statement({ origin, action: "volume.delete", target: id, outcome: "ok", details }),
    ]);
    if (done) return signals.roomFreed();
  }
  throw new EngineError("unavailable", `volume ${id} is being changed by others: try again`);
}

async function checkUnused(records: Pick<RecordStore, "rows">, volume: RecordRow): Promise<void> {
  const users = await records.rows(
    "SELECT sandboxes.id AS id, sandboxes.name AS name FROM sandbox_volumes JOIN sandboxes " +
      `ON ${NAMES_VOLUME} WHERE volume_id = ? AND sandboxes.deleted_at_ms IS NULL ORDER BY sandboxes.id LIMIT ?`,
    [textOf(volume, "volume_id"), SHOWN_USERS + 1],
  );
  if (users.length === 0) return;
  const shown = users.slice(0, SHOWN_USERS).map((row) => {
    const name = optionalText(row, "name");
    return name === undefined ? textOf(row, "id") : `${textOf(row, "id")} (${name})`;
  });
  const more = users.length > SHOWN_USERS ? " and others" : "";
  const why = `sandboxes name the volume ${textOf(volume, "name")}: ${shown.join(", ")}${more}; delete them first`;
  throw new EngineError("conflict", why);
}

/** Unless a sandbox that is meant names it by then. */
function removal(volume: RecordRow, meant: string, unusedMs = 0): Statement[] {
  return [
    {
      sql:
        "DELETE FROM sandbox_volumes WHERE volume_id = ? AND tenant = ? AND coalesce(used_at_ms, 0) <= ? AND NOT EXISTS (SELECT 1 FROM sandboxes WHERE " +
        `${meant} AND ${NAMES_VOLUME}) RETURNING volume_id`,
      values: [textOf(volume, "volume_id"), textOf(volume, "tenant"), { nowPlusMs: -unusedMs }],
      mustReturn: 1,
    },
    {
      sql: "INSERT INTO gone_volumes (volume_key, node_id, gone_at_ms) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
      values: [keyIn(volume), textOf(volume, "node_id"), NOW],
    },
  ];
}

/** Deletes volumes that no sandbox has named for so long. Any number of processes may do so at once. */
export async function expireVolumes(
  { records, signals, log, newId }: Omit<VolumeDeps, "audit">,
  keptMs: number | undefined,
): Promise<void> {
  await completeRecords(records, newId);
  if (keptMs === undefined) return;
  const rows = await records.rows(
    `SELECT ${COLUMNS} FROM sandbox_volumes WHERE used_at_ms <= ? ` +
      `AND NOT EXISTS (SELECT 1 FROM sandboxes WHERE ${NAMES_VOLUME}) ORDER BY used_at_ms LIMIT ?`,
    [{ nowPlusMs: -keptMs }, AT_ONCE],
  );
  for (const row of rows) {
    const { done } = await records.transact(removal(row, "1 = 1", keptMs));
    if (!done) continue;
    const used = new Date(Number(row["used_at_ms"])).toISOString();
    const volume = { volume: textOf(row, "volume_id"), name: textOf(row, "name"), owner: textOf(row, "tenant") };
    log.info({ ...volume, sizeMb: Number(row["size_mb"]), lastUsedAt: used }, "a volume that no sandbox names expired");
    signals.roomFreed();
  }
}

/** Of those of earlier versions nobody knows when they were used: their time begins now. */
async function completeRecords(records: RecordStore, newId: IdSource): Promise<void> {
  await records.write({ sql: "UPDATE sandbox_volumes SET used_at_ms = ? WHERE used_at_ms IS NULL", values: [NOW] });
  // Servers of earlier versions make some while this one is there already.
  const rows = await records.rows("SELECT tenant, name FROM sandbox_volumes WHERE volume_id IS NULL LIMIT ?", [
    AT_ONCE,
  ]);
  for (const row of rows) {
    await records.write({
      sql: "UPDATE sandbox_volumes SET volume_id = ? WHERE tenant = ? AND name = ? AND volume_id IS NULL",
      values: [newId(), textOf(row, "tenant"), textOf(row, "name")],
    });
  }
}

/** What a node is to remove, by what it calls it; `removed` is what it has. */
export async function goneVolumesOf(
  records: RecordStore,
  nodeId: string,
  removed: readonly string[],
): Promise<string[]> {
  if (removed.length > 0) {
    await records.write({
      sql: `DELETE FROM gone_volumes WHERE node_id = ? AND volume_key IN (${removed.map(() => "?").join(", ")})`,
      values: [nodeId, ...removed],
    });
  }
  const sql = "SELECT volume_key FROM gone_volumes WHERE node_id = ? ORDER BY gone_at_ms LIMIT ?";
  return (await records.rows(sql, [nodeId, AT_ONCE])).map((row) => textOf(row, "volume_key"));
}

/** Those keys that are of no volume of the node: of ones that it has kept for long, and nobody will ask for. */
export async function unknownVolumes(
  records: Pick<RecordStore, "rows">,
  nodeId: string,
  keys: readonly string[],
): Promise<string[]> {
  if (keys.length === 0) return [];
  const sql = "SELECT name, volume_key, keyed_by FROM sandbox_volumes WHERE node_id = ?";
  const known = new Set((await records.rows(sql, [nodeId])).map(keyIn));
  return keys.filter((key) => !known.has(key));
}
