import { EngineError } from "../../core/errors.ts";
import { ExtentFull, type ColumnSet } from "../columns/column-set.ts";
import { BufferFull } from "../columns/growth.ts";
import type { Evidence, Guesses, InferredType } from "./infer-types.ts";
import type { Misfits } from "./misfits.ts";

/**
 * Scanning: bodies of NDJSON into column builders. What a row becomes, whichever scanner reads it:
 *
 * **Lines.** One JSON object per line, UTF-8. Lines of only spaces, tabs and carriage returns are skipped, and counted.
 * A body is taken whole or not at all, and one without rows is refused.
 *
 * **Fields and columns.** A field belongs to the column of the same name, else of the same name but for ASCII case. If
 * several fields of a row belong to one column, the one that has its exact name is its value, else the first; the
 * others go to `props`. Of one key written twice the last value counts, at the place of the first.
 *
 * **Unknown fields.** With evolution each becomes a new string column, null ones too (a query for the field should not
 * fail because it was null so far): at most `LIMITS.newColumnsPerRequest` per body and `LIMITS.columnsPerTable` per
 * table. Those beyond, and those whose name no column can have, go to `props`. Without evolution they are dropped.
 *
 * Where types are inferred, an unknown field gets the column that all its values in the body call for, none while they are
 * all null (`infer-types.ts`); `label`, `body` and `props` stay as they are in every table.
 *
 * **Values.** null is NULL, everywhere. A `string` column takes strings as they are and anything else as compact JSON;
 * `dynamic` takes everything as compact JSON. Other types take what `types.ts` says, and nothing is coerced. A value
 * An inferred column takes only what it gives back exactly, but `string` and `dynamic` take everything. A value
 * that does not fit leaves NULL and goes to `props`; for `vector` the body is refused, and so it is for a row without a
 * value in such a column.
 *
 * **`at`.** The first of the fields `at`, `timestamp`, `_timestamp` that can be read as a time (`../time-text.ts`). If
 * none can, the row gets the time of arrival. A field that was looked at before, and could not be read, goes to `props`
 * unless a column of its own holds it. The fields looked at on the way do not become new columns, but fill a column of
 * their name that exists.
 *
 * **`props`.** What goes to `props` is appended to the row's own `props` (see `props.ts`), under the field's own name;
 * nulls never go there. A table without a `props` that can hold JSON refuses the body, naming line and column.
 */
export interface BodyScanner {
  /**
   * Appends the body's rows. Throws `EngineError` (`bad_request_body`; `body_too_large` or
   * `too_many_requests` when its rows would take too much memory), having changed nothing.
   */
  scan(body: NdjsonBody, into: ColumnSet): Scanned;
}

/** How many rows a body has, and how many lines, blank ones counted too. */
export type Scanned = {
  rows: number;
  lines: number;
  /** Of encodings whose records are refused one by one: those that were left out. NDJSON is taken whole or not at all. */
  rejected?: Rejected;
};

/** How many records of a body were left out, and why the first. */
export type Rejected = { rows: number; reason: string };

export type NdjsonBody = {
  bytes: Uint8Array;
  /** Whether unknown fields become columns (else they are dropped). */
  evolve: boolean;
  /** Whether columns that come of unknown fields get types by their values (else they are strings). */
  inferTypes?: boolean;
  /** The types of new columns, by name, when they are known already. */
  types?: ReadonlyMap<string, InferredType>;
  /** The types of new columns as far as they are known; is told of what does not fit. What becomes of the rows then is void. */
  guesses?: Guesses;
  /** Gets what the values of new columns have in common; all of these are `dynamic` then. */
  evidence?: Map<string, Evidence>;
  /** Time of arrival, nanoseconds since the epoch; of lines beyond the end of `arrivals`, if there are any. */
  arrivedAtNs: bigint;
  /** Times of arrival by line, blank ones counted, nanoseconds since the epoch. */
  arrivals?: BigInt64Array<ArrayBuffer>;
  /** Columns that the body may add; `LIMITS.newColumnsPerRequest` unless given. */
  maxNewColumns?: number;
  /** Whether a body without rows is no failure. */
  mayBeEmpty?: boolean;
  /** Whether a `vector` column is like any other: NULL without a value, and a value that does not fit goes to `props`. */
  lenient?: boolean;
  /** Gets what did not fit, also of a body that fails in the end. */
  misfits?: Misfits;
};

/** When the row on that line arrived; lines count from 1. */
export function arrivalOf(
  { arrivals, arrivedAtNs }: Pick<NdjsonBody, "arrivals" | "arrivedAtNs">,
  line: number,
): bigint {
  return arrivals?.[line - 1] ?? arrivedAtNs;
}

/** Runs the scan of one body under a savepoint; `scan` may return to it by `into.rollback()`. */
export function allOrNothing(into: ColumnSet, scan: () => Scanned): Scanned {
  into.mark();
  try {
    return scan();
  } catch (error) {
    into.rollback();
    const isFull = error instanceof ExtentFull || error instanceof BufferFull;
    throw isFull ? tooLarge(error, into.rows === 0) : error;
  }
}

/** A body that only its neighbours in the flush make too much may come again; one that is too much alone may not. */
function tooLarge(full: Error, isAlone: boolean): EngineError {
  if (isAlone) return new EngineError("body_too_large", `${full.message}; send them in smaller parts`);
  return new EngineError("too_many_requests", `with others' in the same flush, ${full.message}`, {
    headers: { "Retry-After": "1" },
  });
}
