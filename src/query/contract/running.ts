import type { Asker } from "../../auth/owner.ts";
import { EngineError } from "../../core/errors.ts";
import type { QueryState } from "../system-tables/query-log.ts";

/**
 * Queries of this process as others see them while they run, and for a while after: whose they are, how far they are, and
 * how they are ended early. Who may see one may end it: its caller, and admins of its database.
 */
export interface RunningQueries {
  /** Those that the asker may see: the running ones, the oldest first, then the others, the newest first. */
  states(asker: Asker): QueryState[];
  /** The query of that id that the asker may see; the asker's own before those of others, a running one before others. */
  state(asker: Asker, id: string): QueryState | undefined;
  /** Ends that query as if its client had left, who is told by whom. False where it does not run. */
  end(ender: Ender, id: string): boolean;
  /**
   * Has a query that others do the work of be one of these until its answer is read. Rejects with `conflict` while the
   * caller has another of its id.
   */
  follow<A extends Followable>(query: FollowedQuery, work: (query: Followed) => Promise<A>): Promise<A>;
}

export type Ender = { caller: Asker; address: string; requestId: string };

export type FollowedQuery = {
  caller: Asker;
  address?: string;
  queryId?: string | undefined;
  requestId: string;
  database: string;
  text: string;
  signal: AbortSignal;
};

export type Followed = {
  /** Aborted when the client leaves, and when somebody ends the query. */
  signal: AbortSignal;
  /** Is told how much of the work is done, 0 to 100. */
  onProgress: (percent: number) => void;
};

export type Followable = { rows: number; body: AsyncIterable<Uint8Array> };

/** Somebody ended the query. */
export class QueryEnded extends EngineError {
  constructor(subject: string) {
    super("cancelled", `the query was ended by ${JSON.stringify(subject)}`);
  }
}
