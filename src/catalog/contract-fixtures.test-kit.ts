import type { ManualClock } from "../core/clock.ts";
import { messageOf, systemCodeOf } from "../core/errors.ts";
import type { ColumnSpec, ScalarTypeName } from "../format/types.ts";
import type {
  Catalog,
  FlushCommit,
  FlushOutcome,
  LedgerEntry,
  NewExtent,
  NewLedgerEntry,
  Snapshot,
  TableRecord,
} from "./catalog.ts";

/** What the parts of the contract share: the catalog under test, and valid things to put into it. */
export type Subject = {
  catalog: () => Catalog;
  clock: () => ManualClock;
  /** `default.events`, made on the first call. */
  table: (columns?: ColumnSpec[]) => Promise<TableRecord>;
};

export function column(name: string, kind: ScalarTypeName = "string"): ColumnSpec {
  return { name, type: { kind } };
}

let made = 0;

/** A valid extent of ten rows with statistics of `at`. */
export function anExtent(overrides: Partial<NewExtent> = {}): NewExtent {
  const id = overrides.id ?? `0190a000-0000-7000-8000-${String(++made).padStart(12, "0")}`;
  return {
    id,
    key: `engine/default/events/2026-01-01/${id}.tlm`,
    format: "tlm",
    formatVersion: 1,
    rows: 10,
    sizeBytes: 1_000,
    checksum: "crc32:01234567",
    minAtNs: 1_700_000_000_000_000_000n,
    maxAtNs: 1_700_000_000_000_000_009n,
    stats: [{ name: "at", nullCount: 0, min: "1700000000000000000", max: "1700000000000000009" }],
    ...overrides,
  };
}

export function aFlush(table: TableRecord, overrides: Partial<FlushCommit> = {}): FlushCommit {
  const { id: tableId, schemaVersion } = table;
  return { tableId, schemaVersion, newColumns: [], extents: [anExtent()], ledger: [], ...overrides };
}

export function aLedgerEntry(key: string, rows = 10): NewLedgerEntry {
  return { key, extentCount: 1, rows, sizeBytes: 1_000 };
}

/** The outcome of a flush that must have been committed. */
export function committed(outcome: FlushOutcome | undefined): { snapshot: Snapshot; schemaVersion: number } {
  if (outcome?.kind !== "committed") throw new Error(`not committed: ${JSON.stringify(outcome)}`);
  return { snapshot: outcome.snapshot, schemaVersion: outcome.schemaVersion };
}

/** The entry as it reads back when the given snapshot committed it. */
export function entryOf(key: string, snapshotId: number): LedgerEntry {
  return { ...aLedgerEntry(key), snapshotId };
}

/** What a call that must fail fails with: its code, else its message. */
export async function failureOf(call: Promise<unknown>): Promise<string> {
  try {
    return `no failure, but ${JSON.stringify(await call)}`;
  } catch (error) {
    return systemCodeOf(error) ?? messageOf(error);
  }
}
