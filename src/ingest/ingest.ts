import type { Caller } from "../auth/caller.ts";
import type { SourceStep } from "../catalog/input-positions.ts";
import { boundedMisfits, type Misfit } from "../format/ndjson/misfits.ts";

/**
 * Ingest, as its inputs (HTTP now) see it.
 *
 *     receive   the input: limits, decoding, one buffer per request
 *     stage     per table: bodies gather while a flush of the table is under way (`stager.ts`)
 *     seal      a worker thread: bodies into one extent, an outcome for each body (`seal.ts`)
 *     upload    the object store: durable bytes
 *     commit    the catalog: flushes that finish together share one snapshot (`committer.ts`)
 *     ack       every request gets its own acknowledgement
 *
 * `ingest` resolves when the rows are durable and visible to every later query (in staged mode: durable, and certain to
 * become visible; `staged/staged.ts` has the steps from `seal` on). When it rejects, nothing of the request
 * was stored, and neither a table nor a column was made for it. A key that was applied before gives the acknowledgement
 * of then, with `replayed: true`, less its warnings.
 */
export interface IngestService {
  ingest(request: IngestRequest): Promise<IngestAck>;
  /** Refuses new requests and resolves when every accepted one is answered. */
  drain(): Promise<void>;
}

export type IngestRequest = {
  /** Who sends it; has the role, and is checked for the database here, whatever the input. */
  caller: Pick<Caller, "databases">;
  database: string;
  table: string;
  /** Scoped to (database, table); 1–255 visible ASCII characters. */
  idempotencyKey?: string;
  /** Whether a missing database or table is created, with the default shape. */
  autoCreate: boolean;
  /** Whether unknown fields become columns; else they are dropped. */
  evolve: boolean;
  /** Whether those columns get types by their values; where it does not say, the table does, or the configuration. */
  inferTypes?: boolean;
  /**
   * Of an input that can be read again: where the rows lie in it. They are stored where the catalog's position of the
   * source is `from`, and it moves with them; else the request rejects with `PositionMoved`. Such a request commits
   * before it is acknowledged in every mode.
   */
  source?: SourceStep;
  /**
   * Bytes that the body has on the wire, if known: they are reserved before `readBody` is called, so that a server at
   * its bound refuses before it reads.
   */
  expectedBytes?: number;
  /**
   * Reads and decodes the body. Not called when the key was applied before. Calls `onGrow` before it takes more memory
   * than was announced, with all that it takes then; `onGrow` throws when there is no room for that, and so must it.
   */
  readBody: (onGrow: (sizeBytes: number) => void) => Promise<Uint8Array>;
};

export type IngestAck = {
  /** The snapshot that has the rows; undefined while they are staged. */
  snapshotId: number | undefined;
  /** Extents that have the rows; none while they are staged. */
  extentCount: number;
  rows: number;
  /**
   * This request's share of the encoded extents, by rows: requests that share an extent divide its bytes, so that the
   * sum over acknowledgements is what was written.
   */
  sizeBytes: number;
  replayed: boolean;
  /** The rows were staged: durable and certain to become visible, and not visible yet (`staged/staged.ts`). */
  staged?: true;
  /**
   * What did not fit: rows that got the time of arrival for their own, and values that went to `props`. Absent when
   * everything fitted, and of a replay. Of staged rows, what the node could tell by the columns that it knew: a column
   * that comes in between may yet send values to `props`.
   */
  warnings?: readonly Misfit[];
};

/** The warnings of an acknowledgement, bounded, if there are any. */
export function warningsOf(misfits: readonly Misfit[] | undefined): Pick<IngestAck, "warnings"> {
  return misfits === undefined ? {} : { warnings: boundedMisfits(misfits) };
}

/** The acknowledgement as the answer to another request with the same key. */
export function asReplayOf({ warnings: _warnings, ...first }: IngestAck): IngestAck {
  return { ...first, replayed: true };
}
