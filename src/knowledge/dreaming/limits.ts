/** What a dream may take beyond what the settings of a memory say. */
export const DREAMING_LIMITS = {
  /** Of a list of runs. */
  runs: 200,
  focusChars: 1_000,
  /** What the model is shown at a time. */
  batchEvents: 200,
  batchChars: 60_000,
  eventChars: 4_000,
  /** Bytes of rows that are read at a time. */
  pageBytes: 4 * 1024 * 1024,
  /** Memories that the model is shown beside the events, the ones closest to them of those that changed last. */
  neighbours: 100,
  neighbourPool: 2_000,
  neighbourChars: 500,
  /** Of the line of a memory, and of all lines of memories and edges together. */
  memoryLineChars: 700,
  memoriesChars: 60_000,
  shownTags: 5,
  edges: 200,
  /** Old memories that a deep dream is shown. */
  oldMemories: 100,
  /** Proposals of one answer that are looked at. */
  proposals: 200,
  /** Proposals of a run that are looked at, for each record that it may write: most are refused at times, or all. */
  proposalsPerWrite: 3,
  /** Bytes of the proposals that a run keeps until it writes them. */
  keptBytes: 8 * 1024 * 1024,
  evidence: 10,
  /** What is kept of an event that a memory rests on. */
  excerptChars: 200,
  reasonChars: 500,
  attempts: 3,
  /** Events that a run passes over because the engine fails on each of them alone; then it ends, and says so. */
  skippedEvents: 5,
  /** What the model may say to one question, its thinking included. */
  answerBytes: 4 * 1024 * 1024,
  /** Characters of events below which another question is not worth its price. */
  leastBatchChars: 2_000,
  charsPerToken: 4,
} as const;
