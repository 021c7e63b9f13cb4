const KIB = 1024;
const MIB = 1024 * KIB;

/** What a record, and a request about records, may take. */
export const MEMORY_LIMITS = {
  contentBytes: 16 * KIB,
  propsBytes: 16 * KIB,
  realmChars: 200,
  nameChars: 500,
  typeChars: 64,
  topicKeyChars: 200,
  sourceChars: 500,
  reasonChars: 1_000,
  tags: 50,
  tagChars: 100,
  idChars: 128,
  maxWeight: 1_000,
  importBytes: 64 * MIB,
  importItems: 20_000,
  /** Items that commits of several writers take together. */
  commitItems: 1_000,
  /** Items that wait to be written; more are turned away. */
  waitingItems: 100_000,
  historyVersions: 1_000,
  changesItems: 5_000,
  recallItems: 100,
  recallHops: 3,
  dreamRealms: 20,
  /** Pairs of memories of a database that wait to be judged by a model. */
  openPairs: 2_000,
} as const;
