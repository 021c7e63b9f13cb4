import type { ErrorRecord } from "../../../core/errors.ts";
import type { RerankOutcome } from "../rerank/reranker.ts";
import type { RerankModel } from "../rerank/setup.ts";
import type { RerankState } from "../rerank/state.ts";
import type { Asking, RatingOptions } from "./question.ts";
import type { RecordSource } from "./record-source.ts";

/** What the thread of recall and its client say to each other. Replies come in any order. */
export type RecallThreadData = {
  isolate: "recall";
  source: RecordSource;
  options: RatingOptions;
  /** Whose vectors are compared; none unless given. */
  model?: string | undefined;
  /** What reranks; nothing unless given. */
  rerankModel?: RerankModel | undefined;
};

export type RecallCall =
  /** The answer is a `RecalledJson`. */
  | { kind: "recall"; databaseId: number; asking: Asking }
  /** Builds the indexes of these. */
  | { kind: "prepare"; databaseIds: readonly number[] }
  /** Lets go of indexes whose memory is gone. */
  | { kind: "dropGone" }
  /** The answer is an `IndexState`. */
  | { kind: "state"; databaseId: number };

export type RecallRequest = { id: number; call: RecallCall };

/** The index of one database in this process; `commits` says how many commits are in. */
export type IndexState = { state: "none" | "building" | "ready"; commits: number; sizeBytes: number };

export const NO_INDEX: IndexState = { state: "none", commits: 0, sizeBytes: 0 };

/** The answer as JSON, made on the thread: it goes out as it is. */
export type RecalledJson = { json: string; reranking: RerankOutcome | undefined };

/** With what the indexes of all databases take, and the state of reranking where a model is configured. */
export type RecallReply = { id: number; indexBytes: number; rerankState: RerankState | undefined } & (
  | { kind: "answer"; value: unknown }
  | { kind: "refused"; error: ErrorRecord }
  | { kind: "failed"; message: string; stack: string | undefined }
);
