import type { Catalog, Lease } from "../../catalog/catalog.ts";
import type { Random } from "../../core/random.ts";
import type { PreparePorts } from "./prepare.ts";

/**
 * Staged ingest: acknowledged when durable in the object store, committed by another node.
 *
 *     node        seal      as in sync mode, under the columns that the node remembers (`schema-cache.ts`)
 *                 stage     one object: extents, bodies as they came, manifest (`object.ts`, `stage-flush.ts`)
 *                 ack       durable, and certain to become visible
 *     committer   list      all that is staged, the oldest first (`listing.ts`)
 *                 seal      the bodies that came as they are, under the columns as they now are (`prepare.ts`)
 *                 upload    extents, under ids of their own
 *                 commit    many objects as one snapshot, each recorded with its id (`staged-committer.ts`)
 *                 delete    the staged objects
 *
 * **Nothing is refused after the acknowledgement.** Columns never vanish and never change their type, so a body whose
 * every field has a column that the node knows of comes out the same under whatever columns there are at the commit. Of
 * any other body the tokens themselves travel, and the scanner casts them at the commit, as it does in sync mode. What
 * does not fit goes to `props`, also where sync mode would refuse the body (`vector`). A table without a `props` is settled with the
 * catalog before the acknowledgement.
 *
 * **Each exactly once.** The commit records the object's id in its transaction; an object whose id is recorded is only
 * deleted. Ids are remembered for longer than a write can be retried, so one that comes back after its deletion changes
 * nothing. Idempotency keys are in the ledger by the same transaction, whichever mode they came by; a request whose key
 * is there already is left out, and the rest of its object committed. That counts which keys were there when the write
 * was accepted, however late it is committed (`sweep.ts`).
 *
 * **In order, and never past one.** Every round lists from the start, where only uncommitted objects are. One that
 * cannot be read or committed is passed over for a while and stays; one whose bytes are damaged is moved aside.
 */
export type StagedCommitterOptions = PreparePorts & {
  catalog: Catalog;
  random: Random;
  /** Most extents of one snapshot. */
  maxExtents: number;
  /** Bytes of staged objects that are held at a time; a single object may be larger. */
  maxBytes: number;
};

/** The duty of the node that leads: what is staged, into the catalog. */
export interface StagedCommitService {
  /**
   * Commits all that is staged. Returns early when the signal is aborted. Rejects when the catalog or the store fails,
   * and with `LeaseLost`; it may always be called again, by any process.
   */
  commitRound(lease: Lease | undefined, signal: AbortSignal): Promise<{ isIdle: boolean }>;
}
