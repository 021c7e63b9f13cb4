const KIB = 1024;
const MIB = 1024 * KIB;

/** What one request to MCP may bring, and what is answered. */
export const MCP_LIMITS = {
  bodyBytes: 4 * MIB,
  /** Messages of one request: protocols before 2025-06-18 have batches. */
  messages: 32,
  /** Of the text of one answer: more would crowd a model's context. */
  textBytes: 48 * KIB,
  /** Of the list of tools, which every client reads before anything else. */
  toolListBytes: 16 * KIB,
  /** Streams of list changes: of one node, and of one caller among them. */
  streams: 1_024,
  streamsPerCaller: 16,
  queryChars: 64 * KIB,
  /** Rows that one tool call answers with, or brings. */
  rows: 1_000,
  rowBytes: MIB,
  memories: 100,
  /** Of a question to the agent. */
  questionBytes: 32 * KIB,
  /** Nodes of a graph that one call names, or finds. */
  nodes: 200,
  links: 50,
  messagesOfTranscript: 2_000,
  transcriptChars: MIB,
  /** Statements that are saved of one transcript, and the longest of them. */
  statements: 50,
  statementChars: 2_000,
} as const;
