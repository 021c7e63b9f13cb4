import { EngineError } from "../core/errors.ts";
import type { Snapshot } from "./catalog.ts";

/** Why the catalog refuses what is right in itself but comes too late. Nothing of the call was stored. */

/** What a read of a snapshot gets that can no longer be read. */
export function snapshotExpired(
  snapshotId: number,
  oldest: Snapshot,
  place: { line?: number; column?: number } = {},
): EngineError {
  const since = new Date(oldest.committedAtMs).toISOString();
  const message = `snapshot ${snapshotId} can no longer be read; the oldest that can is ${oldest.id}, of ${since}`;
  return new EngineError("snapshot_expired", message, place);
}

/** The lease that the write was given is not held any more. */
export class LeaseLost extends Error {
  /** The lease's name. */
  readonly lease: string;

  constructor(lease: string) {
    super(`the lease ${JSON.stringify(lease)} is not held any more`);
    this.name = "LeaseLost";
    this.lease = lease;
  }
}

/** Extents that are pending deletion: their objects are deleted, or soon will be. */
export class ExtentPendingDeletion extends Error {
  /** All of the call that are. */
  readonly extentIds: readonly string[];

  constructor(extentIds: readonly string[]) {
    super(`extents that are pending deletion cannot be committed: ${extentIds.join(", ")}`);
    this.name = "ExtentPendingDeletion";
    this.extentIds = extentIds;
  }
}
