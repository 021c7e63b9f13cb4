import type { SessionOptions } from "../onnx/onnx-model.ts";
import type { ModelFiles } from "../onnx/model-folder.ts";

/** What the thread of a session and its owner say to each other: one request at a time. */
export type RerankThreadData = { isolate: "rerank"; files: ModelFiles; options: SessionOptions };

/** To rate each text by the query. A thread that is later than the limit answers that it has failed. */
export type RerankRequest = { query: string; texts: readonly string[]; limitMs: number };

export type RerankReply =
  /** Once, when the model is loaded. */
  | { kind: "ready" }
  /** From 0 to 1, in the order of the texts. */
  | { kind: "rated"; relevances: readonly number[] }
  | { kind: "failed"; message: string };
