import type { RecordRow } from "../../../catalog/records.ts";
import { optionalNumber, optionalText, textOf } from "../../../fabric/job.ts";
import { volumeKey } from "../../contract/volume-key.ts";

/** Named storage as the control plane keeps it. Times are the database's, in ms since 1970. */
export type Volume = {
  id: string;
  /** Its owner: see `auth/owner.ts`. */
  tenant: string;
  name: string;
  nodeId: string;
  sizeMb: number;
  /** Whether any sandbox names it, stopped and failed ones included. */
  isInUse: boolean;
  createdAtMs: number;
  /** Now, while a sandbox that names it is up; undefined for one of an earlier version that nobody has looked at yet. */
  usedAtMs: number | undefined;
  /** When it expires, unless a sandbox names it by then; undefined: it does not, or it is not known yet. */
  expiresAtMs: number | undefined;
};

/** In these, a machine has the volumes, or is about to. */
const UP = "('creating', 'running', 'pausing', 'paused', 'stopping')";

// The mounts of a sandbox as `JSON.stringify` writes them. No text inside them, or elsewhere in a spec, can look so: a
// quote in it has a backslash before it. Neither names nor this text have characters that JSON would write otherwise.
const MOUNTS = "coalesce(sandboxes.volumes, sandboxes.spec)";
const MOUNT = `'"name":"' || sandbox_volumes.name || '","mountPath":'`;

/** Condition, of a row of `sandboxes` and one of `sandbox_volumes`, that the sandbox names the volume. */
export const NAMES_VOLUME = `sandboxes.tenant = sandbox_volumes.tenant AND replace(${MOUNTS}, ${MOUNT}, '') <> ${MOUNTS}`;

/** With one value: the time of the database. */
export const VOLUME_COLUMNS =
  "volume_id, tenant, name, node_id, size_mb, created_at_ms, used_at_ms, CAST(? AS bigint) AS now_ms, coalesce((SELECT " +
  `max(CASE WHEN state IN ${UP} THEN 2 ELSE 1 END) FROM sandboxes WHERE sandboxes.deleted_at_ms IS NULL ` +
  `AND ${NAMES_VOLUME}), 0) AS use_of_it`;

/** `keptMs`: how long one is kept that no sandbox names; undefined: for ever. */
export function toVolume(row: RecordRow, keptMs: number | undefined): Volume {
  const use = Number(row["use_of_it"]);
  const usedAtMs = use === 2 ? Number(row["now_ms"]) : optionalNumber(row, "used_at_ms");
  const expires = use === 0 && usedAtMs !== undefined && keptMs !== undefined;
  return {
    id: textOf(row, "volume_id"),
    tenant: textOf(row, "tenant"),
    name: textOf(row, "name"),
    nodeId: textOf(row, "node_id"),
    sizeMb: Number(row["size_mb"]),
    isInUse: use > 0,
    createdAtMs: Number(row["created_at_ms"]),
    usedAtMs,
    expiresAtMs: expires ? usedAtMs + keptMs : undefined,
  };
}

/** How its node calls a volume. */
export function keyIn(row: RecordRow): string {
  return optionalText(row, "volume_key") ?? volumeKey(textOf(row, "keyed_by"), textOf(row, "name"));
}
