/**
 * Fixed limits of the product (specification: Limits; DESIGN: type decisions). Those that an operator may change
 * are options in `src/config`; these are part of the contract with clients.
 */

const MIB = 1024 * 1024;

export const LIMITS = {
  ingestBodyBytes: 64 * MIB,
  queryBodyBytes: 16 * MIB,
  /** Bodies of all other routes (small JSON documents). */
  jsonBodyBytes: 1 * MIB,
  newColumnsPerRequest: 32,
  columnsPerTable: 2_000,
  columnNameBytes: 255,
  /** Characters of a database or table name; an object-store key segment allows 255 bytes. */
  nameChars: 128,
  jsonNesting: 1_000,
  commitAttempts: 20,
  idempotencyKeyChars: 255,
  idempotencyTtlMs: 24 * 3_600_000,
  requestIdChars: 128,
  /** Bytes kept of a string column's minimum and maximum in extent statistics. */
  stringStatBytes: 64,
  vectorDimensions: 16_384,
  /** Of the filter of a live tail. */
  tailFilterChars: 16_384,
} as const;

/** Relations between limits that other code relies on; run at start-up and in tests. */
export function assertLimits(limits: typeof LIMITS = LIMITS): void {
  const rules: [boolean, string][] = [
    [limits.newColumnsPerRequest <= limits.columnsPerTable, "newColumnsPerRequest must not pass columnsPerTable"],
    [limits.nameChars <= 255, "a name must fit one object-store key segment"],
    [limits.queryBodyBytes <= limits.ingestBodyBytes, "the HTTP read buffer is sized for ingest"],
    [limits.stringStatBytes <= limits.columnNameBytes, "catalog keys are sized for names"],
  ];
  for (const [holds, text] of rules) if (!holds) throw new Error(`limits contradict each other: ${text}`);
}
