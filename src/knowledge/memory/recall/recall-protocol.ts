import type { ErrorRecord } from "../../../core/errors.ts";
import type { Asked, RatingOptions } from "./question.ts";
import type { RecordSource } from "./record-source.ts";

/** What the thread of recall and its client say to each other. Answers come in any order. */
export type RecallThreadData = { isolate: "recall"; source: RecordSource; options: RatingOptions };

export type RecallRequest = { id: number; databaseId: number; asked: Asked };

/** The answer is JSON, made on the thread: it goes out as it is. */
export type RecallReply =
  | { id: number; kind: "answer"; json: string }
  | { id: number; kind: "refused"; error: ErrorRecord }
  | { id: number; kind: "failed"; message: string; stack: string | undefined };
