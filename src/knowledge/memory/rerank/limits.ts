/** What a model that reranks is given, and how long that may take. */
export const RERANK_LIMITS = {
  /** The best of a recall: the others keep their places below. */
  candidates: 32,
  /** The first characters of a question, and of each text. */
  queryChars: 400,
  textChars: 1_000,
  /** Pairs that the model takes at once. Between batches a session notices that it is late. */
  batchPairs: 8,
  /** A question waits no longer for a free session, */
  waitMs: 500,
  /** and no longer for its answer. */
  runMs: 1_000,
  /** After a failure questions are not reranked for so long, longer after each further one. */
  pauseFirstMs: 10_000,
  pauseMostMs: 5 * 60_000,
} as const;
