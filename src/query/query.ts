/**
 * Queries, as the routes see them.
 *
 *     parse     a warm child process: SQL through DuckDB's own parser, checked against what is allowed
 *     resolve   here: tables at one snapshot of the catalog
 *     prune     here: extents by time
 *     scan      the same child: DuckDB over exactly those extents, result to a spill file, rows counted
 *     stream    NDJSON from that file, at the client's pace
 */
export interface QueryService {
  /** Runs one query. Rejects with `EngineError`. The caller must drain or close `body`. */
  run(request: QueryRequest): Promise<QueryResult>;
}

export type QueryRequest = {
  database: string;
  text: string;
  /** For logs. */
  requestId: string;
  /** Aborted when the client leaves: the query is killed and everything it holds is freed. */
  signal: AbortSignal;
};

export type QueryResult = {
  /** Rows in the result, known before the first byte. */
  rows: number;
  /** NDJSON, one object per row. */
  body: AsyncIterable<Uint8Array>;
};
