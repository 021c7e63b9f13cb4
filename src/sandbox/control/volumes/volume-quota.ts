import type { RecordStore, Statement } from "../../../catalog/records.ts";
import { EngineError } from "../../../core/errors.ts";
import type { VolumeMount } from "../../contract/spec.ts";

/** What volumes one owner may have at once. */
export type VolumeLimits = { perOwner: number; mbPerOwner: number };

const MIB = 1024 * 1024;
/** One who has too many may try again when some are deleted; nobody knows when that is. */
const RETRY_SECS = "60";

/** Limits as options say them. */
export function volumeLimitsOf({ count, bytes }: { count: number; bytes: number }): VolumeLimits {
  return { perOwner: count, mbPerOwner: Math.floor(bytes / MIB) };
}

const COUNT = "(SELECT count(*) FROM sandbox_volumes WHERE tenant = ?)";
const SIZE = "(SELECT coalesce(sum(size_mb), 0) FROM sandbox_volumes WHERE tenant = ?)";

/** Returns a row while the owner has no more than may be: after what adds to it. */
export function quotaGuard(tenant: string, { perOwner, mbPerOwner }: VolumeLimits): Statement {
  return {
    sql: `SELECT 1 AS fits WHERE ${COUNT} <= CAST(? AS bigint) AND ${SIZE} <= CAST(? AS bigint)`,
    values: [tenant, perOwner, tenant, mbPerOwner],
    mustReturn: 1,
  };
}

/** Rejects with `rate_limited` when these would be more than the owner may have. */
export async function checkVolumeQuota(
  records: Pick<RecordStore, "rows">,
  { tenant, added }: { tenant: string; added: readonly VolumeMount[] },
  limits: VolumeLimits,
): Promise<void> {
  if (added.length === 0) return;
  const problem = await volumeQuotaProblem(records, { tenant, added }, limits);
  if (problem !== undefined) {
    throw new EngineError("rate_limited", `${problem}: delete some`, { headers: { "Retry-After": RETRY_SECS } });
  }
}

/** Why the owner cannot have these beside those that are there; undefined where nothing is in the way. */
export async function volumeQuotaProblem(
  records: Pick<RecordStore, "rows">,
  { tenant, added }: { tenant: string; added: readonly VolumeMount[] },
  { perOwner, mbPerOwner }: VolumeLimits,
): Promise<string | undefined> {
  const [row] = await records.rows(`SELECT ${COUNT} AS volumes, ${SIZE} AS size_mb`, [tenant, tenant]);
  const has = { count: Number(row?.["volumes"]), mb: Number(row?.["size_mb"]) };
  if (has.count + added.length > perOwner)
    return `an owner has at most ${perOwner} volumes, and there are ${has.count}`;
  const addedMb = added.reduce((sum, { sizeMb }) => sum + sizeMb, 0);
  if (has.mb + addedMb <= mbPerOwner) return undefined;
  return (
    `the volumes of an owner have at most ${mbPerOwner} MiB together: there are ${has.count} with ${has.mb} MiB, and ` +
    `the new ones need ${addedMb} MiB`
  );
}
