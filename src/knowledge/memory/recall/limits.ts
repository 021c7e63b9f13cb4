/** What one question may ask for and cost. */
export const RECALL_LIMITS = {
  queryChars: 8_192,
  /** Of a question, the first ones. */
  terms: 512,
  realms: 100,
  /** The best by their words, out of which the others are found. */
  lexicalCandidates: 200,
  /** The best by meaning: out of so many whose one-bit codes are closest. */
  vectorCandidates: 100,
  vectorsRescored: 500,
  entityCandidates: 32,
  linkedCandidates: 100,
  /** Candidates from which edges are followed. */
  seeds: 20,
  /** Of a node, the weightiest and newest ones; and of one question. */
  edgesPerNode: 128,
  edgesLooked: 20_000,
  /** In the answer. */
  entities: 20,
  edges: 200,
  /** Memories that are read and compared for each one in the answer, when many say the same. */
  readForEach: 4,
  /** How long a question waits for an index that is being built. */
  buildWaitMs: 10_000,
  /** Questions of one process that wait for an answer. */
  waiting: 1_000,
  /** Of the indexes of all databases. */
  indexBytes: 2 ** 30,
} as const;
