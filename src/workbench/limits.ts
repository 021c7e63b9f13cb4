/** What one owner may keep. */
export const WORKBENCH_LIMITS = {
  savedQueries: 1_000,
  nameChars: 200,
  descriptionChars: 2_000,
  queryChars: 65_536,
  /** Queries of the history; earlier ones go when a later one comes. */
  historyEntries: 1_000,
  historyMs: 30 * 86_400_000,
  settingsBytes: 64 * 1024,
  /** Entries of one page of a list. */
  listed: 100,
  /** Of what a list is searched for. */
  searchChars: 200,
} as const;
