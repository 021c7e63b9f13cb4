import type { EdgeRecord, NodeRecord, Tombstone } from "./model.ts";

/**
 * How a reader keeps a copy of a database's memory: it asks for the head before each use, and for the versions between
 * the head that it has and the new one. Commits of a database are numbered without gaps, and a version is never
 * committed below a head that somebody has read, so nothing is missed.
 */
export interface MemoryFeed {
  /** The newest commit: one indexed row. `databaseId` is the catalog's. */
  head(databaseId: number): Promise<Head>;
  /**
   * Versions whose commit is in (`afterSeq`, `throughSeq`], by commit, about `limit` of them: a page holds all versions
   * of its last commit, however many. Whatever came in a page may come in the next one again with another state, and
   * is applied by id and version.
   */
  changes(databaseId: number, afterSeq: number, throughSeq: number, limit: number): Promise<FeedPage>;
}

/** The newest commit of a database. */
export type Head = {
  /** 0 before the first commit. */
  seq: number;
  /** 0 before the first commit. Ahead of `nowUs` where commits came faster than the clock counts. */
  stampUs: number;
  /** The time of the database. */
  nowUs: number;
};

export type FeedPage = {
  /** The last commit of the page: what the next page comes after. `throughSeq` when nothing is left. */
  seq: number;
  nodes: readonly RecordChange<NodeRecord>[];
  edges: readonly RecordChange<EdgeRecord>[];
  hasMore: boolean;
};

/**
 * - `current`: what holds now. The version that was current before it, if any, becomes a former one: it does not come
 *   again for that.
 * - `former`: superseded already, or brought by an import that lost against a later change.
 * - `erased`: all versions of the id are gone, and must be forgotten. The id may be used again later.
 */
export type RecordChange<R> =
  | { state: "current" | "former"; seq: number; record: R }
  | { state: "erased"; seq: number; record: Tombstone };
