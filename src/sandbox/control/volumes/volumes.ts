import { NOW, type RecordStore, type RecordValue, type Statement } from "../../../catalog/records.ts";
import { ownerFilter, type Asker } from "../../../auth/owner.ts";
import type { IdSource } from "../../../core/ids.ts";
import { textOf } from "../../../fabric/job.ts";
import type { SandboxSpec, VolumeMount } from "../../contract/spec.ts";
import { invalidField } from "../refusals.ts";
import { keyIn, toVolume, VOLUME_COLUMNS, type Volume } from "./volume.ts";
import { quotaGuard, type VolumeLimits } from "./volume-quota.ts";

/**
 * Volumes are found by owner and name; on its node each has a key, which nobody chooses: so a volume keeps its bytes when
 * its owner changes, and whoever takes the name after that gets another one.
 */
function newVolumeKey(newId: IdSource): string {
  return newId().replaceAll("-", "");
}

/**
 * What a node is to mount for the volumes that a spec names: their keys by their names, and the spec's volumes with the
 * sizes they have. That of a spec is only asked for, and is not what quotas and the node's room count.
 */
export async function volumesToMount(
  records: Pick<RecordStore, "rows">,
  tenant: string,
  { volumes }: Pick<SandboxSpec, "volumes">,
): Promise<{ volumeKeys: Record<string, string>; volumes: readonly VolumeMount[] }> {
  if (volumes.length === 0) return { volumeKeys: {}, volumes };
  const rows = await records.rows(
    "SELECT name, size_mb, volume_key, keyed_by FROM sandbox_volumes WHERE tenant = ? " +
      `AND name IN (${volumes.map(() => "?").join(", ")})`,
    [tenant, ...volumes.map(({ name }) => name)],
  );
  const sizes = new Map(rows.map((row) => [textOf(row, "name"), Number(row["size_mb"])]));
  return {
    volumeKeys: Object.fromEntries(rows.map((row) => [textOf(row, "name"), keyIn(row)])),
    volumes: volumes.map((volume) => ({ ...volume, sizeMb: sizes.get(volume.name) ?? volume.sizeMb })),
  };
}

/** Volumes that are there, by name: where they lie. */
export type KnownVolumes = ReadonlyMap<string, string>;

/** Rejects with `config_validation_error` when they lie on several nodes. */
export async function knownVolumes(
  records: Pick<RecordStore, "rows">,
  tenant: string,
  volumes: readonly VolumeMount[],
): Promise<KnownVolumes> {
  if (volumes.length === 0) return new Map();
  const rows = await records.rows(
    `SELECT name, node_id FROM sandbox_volumes WHERE tenant = ? AND name IN (${volumes.map(() => "?").join(", ")})`,
    [tenant, ...volumes.map(({ name }) => name)],
  );
  const known = new Map(rows.map((row) => [textOf(row, "name"), textOf(row, "node_id")]));
  if (new Set(known.values()).size > 1) {
    throw invalidField("volumes", `${[...known.keys()].toSorted().join(", ")} do not lie on the same node`);
  }
  return known;
}

export function newVolumesIn(volumes: readonly VolumeMount[], known: KnownVolumes): VolumeMount[] {
  return volumes.filter(({ name }) => !known.has(name));
}

type PlacedVolumes = { tenant: string; nodeId: string; spec: Pick<SandboxSpec, "volumes">; known: KnownVolumes };

/** New ones are on the node from here on, within what their owner may have; those that are there must be. */
export function volumeStatements(
  { newId, volumeLimits }: { newId: IdSource; volumeLimits: VolumeLimits },
  { tenant, nodeId, spec: { volumes }, known }: PlacedVolumes,
): Statement[] {
  if (volumes.length === 0) return [];
  const added = newVolumesIn(volumes, known);
  return [
    ...useStatements(tenant, known),
    ...(added.length === 0 ? [] : [insertion({ newId }, { tenant, nodeId, added })]),
    {
      sql:
        "SELECT name FROM sandbox_volumes WHERE tenant = ? AND node_id = ? " +
        `AND name IN (${volumes.map(() => "?").join(", ")})`,
      values: [tenant, nodeId, ...volumes.map(({ name }) => name)],
      mustReturn: volumes.length,
    },
    ...(added.length > 0 ? [quotaGuard(tenant, volumeLimits)] : []),
  ];
}

/** One that was deleted since it was looked up undoes the transaction: it would come back without a look at the quota. */
function useStatements(tenant: string, known: KnownVolumes): Statement[] {
  if (known.size === 0) return [];
  const names = [...known.keys()];
  return [
    {
      sql:
        "UPDATE sandbox_volumes SET used_at_ms = ? WHERE tenant = ? " +
        `AND name IN (${names.map(() => "?").join(", ")}) RETURNING name`,
      values: [NOW, tenant, ...names],
      mustReturn: names.length,
    },
  ];
}

type AddedVolumes = { tenant: string; nodeId: string; added: readonly VolumeMount[] };

function insertion({ newId }: { newId: IdSource }, { tenant, nodeId, added }: AddedVolumes): Statement {
  const rows = added.map(({ name, sizeMb }): RecordValue[] => [
    newId(),
    tenant,
    name,
    nodeId,
    sizeMb,
    newVolumeKey(newId),
    NOW,
    NOW,
  ]);
  return {
    sql:
      "INSERT INTO sandbox_volumes (volume_id, tenant, name, node_id, size_mb, volume_key, created_at_ms, used_at_ms) VALUES " +
      `${rows.map(() => "(?, ?, ?, ?, ?, ?, ?, ?)").join(", ")} ` +
      "ON CONFLICT (tenant, name) DO UPDATE SET used_at_ms = excluded.used_at_ms",
    values: rows.flat(),
  };
}

export type VolumePage = {
  limit: number;
  /** The id of the last one of the page before. */
  before?: string | undefined;
};

/** See `toVolume`. */
type VolumeKept = { keptMs: number | undefined };

/** Newest first; those that the asker may see. */
export async function listVolumes(
  records: Pick<RecordStore, "rows">,
  { limit, before, keptMs }: VolumePage & VolumeKept,
  asker: Asker,
): Promise<Volume[]> {
  const owner = ownerFilter(asker);
  const conditions = [
    "volume_id IS NOT NULL",
    ...(owner === undefined ? [] : ["tenant = ?"]),
    ...(before === undefined ? [] : ["volume_id < ?"]),
  ];
  const values = [NOW, ...(owner === undefined ? [] : [owner]), ...(before === undefined ? [] : [before]), limit];
  const sql = `SELECT ${VOLUME_COLUMNS} FROM sandbox_volumes WHERE ${conditions.join(" AND ")} ORDER BY volume_id DESC LIMIT ?`;
  return (await records.rows(sql, values)).map((row) => toVolume(row, keptMs));
}
