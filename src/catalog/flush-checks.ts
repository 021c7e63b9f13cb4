import { LIMITS } from "../core/limits.ts";
import type { FlushCommit, FlushOutcome, NewLedgerEntry } from "./catalog.ts";
import type { SourceStep } from "./input-positions.ts";
import { isStorableText } from "./invariants.ts";

/**
 * For how long it holds that a key was free when it was looked up.
 *
 * A process can stand still (stopped, its machine suspended) between the look-up and the commit, for days, while its
 * client sends the request again elsewhere. That other commit came after the look-up, so its entry lives at least until
 * `idempotencyTtlMs` after it: a commit that comes sooner finds the entry, a later one may not, and would store the rows
 * twice. No clock of the process can tell, for some stand still with it and some do not. So both times are the catalog's:
 * the look-up brings one, and the commit compares it with its own, the same by which it judges the keys.
 *
 * Half of an entry's life, for what comes on top: a commit has its time before others see it, the embedded catalog takes
 * the time just before it begins to write, and clocks of servers are corrected. No request is under way for hours.
 */
export const KEYS_FREE_FOR_MS = LIMITS.idempotencyTtlMs / 2;

/** Flushes before they are committed: one may come too late. */
export function tooLate({ keysFreeAtMs }: Pick<FlushCommit, "keysFreeAtMs">, nowMs: number): FlushOutcome | undefined {
  const lookedUpByMs = nowMs - KEYS_FREE_FOR_MS;
  return keysFreeAtMs !== undefined && keysFreeAtMs <= lookedUpByMs ? { kind: "too_late", lookedUpByMs } : undefined;
}

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

const SOURCE_BYTES = 1_024;
const POSITION_BYTES = 64 * 1024;

/** The steps of a flush can be stored. */
export function checkSteps(steps: readonly SourceStep[]): void {
  for (const { name, from, to } of steps) {
    checkText("source", name, SOURCE_BYTES);
    if (from !== undefined) checkText("position", from, POSITION_BYTES);
    checkText("position", to, POSITION_BYTES);
  }
}

function checkText(what: string, text: string, maxBytes: number): void {
  const isFine = isStorableText(text) && Buffer.byteLength(text) <= maxBytes;
  if (!isFine) throw new Error(`the ${what} ${JSON.stringify(text.slice(0, 200))} of an input cannot be stored`);
}
