/** A table whose records have owners: what a transfer of ownership changes. */
export type OwnedTable = {
  name: string;
  /** The column that holds the owner. */
  column: string;
  /** Of records that an owner has once each: the columns that tell them apart, and which records count. */
  unique?: { columns: readonly string[]; where?: string };
  /** What else holds the owner, as assignments of an UPDATE with their values. */
  also?: (from: string, to: string) => { set: string; values: readonly string[] };
};
