import type { NewLedgerEntry } from "./catalog.ts";
import { isStorableText } from "./invariants.ts";

/** What a caller of `Catalog.commit` must have seen to: each throws an `Error` for a mistake of the program. */

/** The keys of one flush can be stored, and differ. */
export function checkKeys(ledger: readonly NewLedgerEntry[]): void {
  const keys = ledger.map(({ key }) => key);
  if (new Set(keys).size < keys.length) throw new Error("a flush has the same idempotency key twice");
  for (const key of keys) {
    if (!isStorableText(key)) throw new Error(`the idempotency key ${JSON.stringify(key)} cannot be stored`);
  }
}

/** The id of a staged object can be stored. */
export function checkStagedId(id: string): void {
  if (!isStorableText(id)) throw new Error(`the staged object id ${JSON.stringify(id)} cannot be stored`);
}
