import { EngineError } from "../core/errors.ts";
import type { Snapshot } from "./catalog.ts";
import type { SourcePosition } from "./input-positions.ts";

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

/** The input that rows come from is not where they begin: somebody else has committed them, or its position was reset. */
export class PositionMoved extends EngineError {
  readonly source: string;
  /** Where the input is; undefined where it has no position. It may have moved on since: read it anew. */
  readonly position: string | undefined;

  constructor({ name, position }: SourcePosition) {
    super("conflict", `the input ${name} is ${position === undefined ? "at its beginning" : `at ${position}`}`);
    this.name = "PositionMoved";
    this.source = name;
    this.position = position;
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
