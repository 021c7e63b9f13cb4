import type { EngineRun } from "../contract/engines.ts";

/** What a kind of query engine can do; `trino/` is the one that there is. */
export interface EnginePort {
  /** Begins a text there, in a way that only reads. Rejects with `EngineError`. */
  begin(statement: Statement): Promise<EngineRun>;
  /** Ends a query by its id; nothing where it is over. Rejects with `engine_failed`. */
  cancel(queryId: string): Promise<void>;
}

export type Statement = {
  text: string;
  /** The catalog and the schema of names that have none. */
  catalog: string;
  schema: string;
  /** For the operator of the engine: on whose behalf, and by which request. */
  onBehalfOf: string;
  requestId: string;
  signal: AbortSignal;
};

/** Where an engine is, and who this program is there. */
export type EnginePlace = {
  /** Without a path. */
  url: string;
  user: string;
  secret: EngineSecret | undefined;
};

export type EngineSecret = { header: string; value: string };
