const KIB = 1024;
const MIB = 1024 * KIB;

/** What pipelines without a model may take. */
export const PIPELINE_LIMITS = {
  /** One look at one database; what is left waits for the next. */
  turnMs: 60_000,
  /** Changed records of one commit of consolidation. */
  changedRecords: 1_000,
  /** Memories that a changed one is compared with: those of its realm that changed last. */
  comparedMemories: 2_000,
  /** Pairs that a language model is asked about in one question, in one look at all databases, and in a day. */
  judgedAtOnce: 5,
  judgedPerTurn: 20,
  judgedPerDay: 1_000,
  /** What it is shown of a memory, how long it may take, and what it may say. */
  judgedTextBytes: 4 * KIB,
  judgedMs: 10_000,
  judgedTokens: 1_000,
  /** After that many failed questions about a pair it stays undecided; between them it waits, ever longer. */
  judgedFailures: 5,
  judgedAgainMs: 3_600_000,
  /** An engine that fails is left alone for so long, and longer after each further failure. */
  restMs: 600_000,
  longestRestMs: 21_600_000,
  /** Conversations whose last memory is known. */
  conversations: 200,
  /** Rows of the firehose that are read at once, and for one commit. */
  pageRows: 1_000,
  pageBytes: 4 * MIB,
  pages: 20,
  /** Kinds of failures of one commit; the page that has more is its last. */
  fingerprints: 500,
  /** Failures that were seen once. */
  pending: 500,
  /** Learnings whose latest counts are in the watermark alone, and for how long at most. */
  unwritten: 500,
  unwrittenMs: 3_600_000,
  /** The largest count: it stays there. */
  occurrences: 1_000_000_000,
  /** Repositories whose last commits and files are known. */
  repositories: 20,
  /** Evidence of one failure. */
  commits: 5,
  files: 10,
  fileChars: 200,
  commitChars: 64,
  repositoryChars: 100,
  /** Read of a message; compared; kept. */
  messageChars: 4 * KIB,
  fingerprintChars: 1_000,
  excerptChars: 400,
} as const;
