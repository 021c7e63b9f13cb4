/** What is asked of a provider at once, and how long that may take. */
export const EMBED_LIMITS = {
  /** Of a text, the first ones: models read no more than some thousand tokens. */
  textChars: 8_000,
  /** In one request. */
  batchTexts: 32,
  batchChars: 64_000,
  dimensions: 8_192,
  answerBytes: 32 * 1024 * 1024,
  /** Of one request for memories. */
  requestMs: 60_000,
  attempts: 4,
  retryFirstMs: 500,
  retryMostMs: 10_000,
  /** A provider that asks for more is asked again after this. */
  retryAfterMostMs: 60_000,
  /** A question waits for its vector no longer, and is then answered by words and links. */
  questionMs: 1_000,
  /** A write with `ENGINE_MEMORY_ASYNC=0` waits for its vectors no longer. */
  writeMs: 10_000,
  /** After a question went without, the next ones do not wait for the provider. */
  questionPauseMs: 10_000,
  /** Pauses of the worker while the provider fails. */
  pauseFirstMs: 1_000,
  pauseMostMs: 5 * 60_000,
  /** Nodes that the worker reads at once. */
  pageNodes: 500,
  /** How long a process has the vectors of a database to itself after each sign of life. */
  heldMs: 120_000,
  /** How often a server looks for what processes without a model have saved, as `engine sync` does. */
  lookMs: 5_000,
  /** How soon another process looks whether they are free. */
  heldRetryMs: 5_000,
} as const;
