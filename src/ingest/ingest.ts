import type { Caller } from "../auth/caller.ts";
import type { SourceStep } from "../catalog/input-positions.ts";
import type { BodyEncoding } from "../format/encodings.ts";
import { boundedMisfits, type Misfit } from "../format/ndjson/misfits.ts";
import type { Rejected } from "../format/ndjson/scanner.ts";
import type { ColumnSpec } from "../format/types.ts";

/**
 * Ingest, as its inputs (HTTP now) see it.
 *
 *     receive   the input: limits, decoding, one buffer per request
 *     batch     per table: bodies gather while a flush of the table is under way (`batcher.ts`)
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

/** How the body of a request is to be read; it goes with the body wherever that is read, also when it was staged. */
export type BodyReading = {
  /** `ndjson` unless given. */
  encoding?: BodyEncoding;
  /**
   * Times of arrival, nanoseconds since the epoch: line `n` of the body (from 1, blank ones counted) has `arrivals[n - 1]`.
   * Lines beyond its end have the time at which the request came, as all have without it.
   */
  arrivals?: BigInt64Array<ArrayBuffer>;
};

/** What of it is given. */
export function readingOf({ encoding, arrivals }: BodyReading): BodyReading {
  return { ...(encoding === undefined ? {} : { encoding }), ...(arrivals === undefined ? {} : { arrivals }) };
}

export type IngestRequest = BodyReading & {
  /** Who sends it; has the role, and is checked for the database here, whatever the input. */
  caller: Pick<Caller, "databases">;
  database: string;
  table: string;
  /** Scoped to (database, table); 1–255 visible ASCII characters. */
  idempotencyKey?: string;
  /** Whether a missing database or table is created. */
  autoCreate: boolean;
  /** The columns of the table if this request creates it; the default shape unless given. `at` must be among them. */
  columns?: readonly ColumnSpec[];
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
  /**
   * Records that were left out, of encodings that refuse them one by one. Absent when there are none, and of a replay. When
   * nothing is left, nothing is stored: neither a snapshot nor the key is made.
   */
  rejected?: Rejected;
};

/** What is acknowledged of a body that has no rows: it was read, and there is nothing to store. */
export function ackOfNothing(rejected: Rejected | undefined): IngestAck {
  const nothing = { snapshotId: undefined, extentCount: 0, rows: 0, sizeBytes: 0, replayed: false };
  return { ...nothing, ...(rejected === undefined ? {} : { rejected }) };
}

/** What an acknowledgement tells of how its body was read: its warnings, bounded, and what was left out. */
export function toldOf(outcome: { misfits?: readonly Misfit[] | undefined; rejected?: Rejected | undefined }) {
  const { misfits, rejected } = outcome;
  const told: Pick<IngestAck, "warnings" | "rejected"> = {
    ...(misfits === undefined ? {} : { warnings: boundedMisfits(misfits) }),
    ...(rejected === undefined ? {} : { rejected }),
  };
  return told;
}

/** The acknowledgement as the answer to another request with the same key. */
export function asReplayOf({ warnings: _warnings, rejected: _rejected, ...first }: IngestAck): IngestAck {
  return { ...first, replayed: true };
}
