import type { Catalog, LedgerEntry, TableRecord } from "../catalog/catalog.ts";
import { EngineError } from "../core/errors.ts";
import { checkName } from "../core/names.ts";
import { DEFAULT_SHAPE } from "../format/types.ts";
import type { IngestAck, IngestRequest } from "./ingest.ts";

type Named = Pick<IngestRequest, "database" | "table" | "autoCreate">;

/** The table as the catalog has it; created in the default shape where it is missing and may be. */
export async function findOrCreateTable(catalog: Catalog, request: Named): Promise<TableRecord> {
  const known = await catalog.table(request.database, request.table);
  if (known !== undefined) return known;
  const database = checkName("database", request.database);
  const name = checkName("table", request.table);
  if (!request.autoCreate) {
    throw new EngineError("table_not_found", `table ${database}.${name} does not exist, and X-Auto-Create is false`);
  }
  return (await catalog.createTable({ database, name, columns: DEFAULT_SHAPE })).table;
}

/** A key before its request is taken: it was applied before, or it was free then, by the clock of the write path. */
export type KeyState = { ack: IngestAck } | { freeAtMs: number };

/** What the ledger has for the key; the time is the catalog's. */
export async function keyInLedger(catalog: Catalog, table: TableRecord, key: string): Promise<KeyState> {
  const { entry, atMs } = await catalog.lookUpKey(table.id, key);
  return entry === undefined ? { freeAtMs: atMs } : { ack: asReplay(entry) };
}

/** The acknowledgement of a request whose key was committed before. */
export function asReplay({ snapshotId, extentCount, rows, sizeBytes }: LedgerEntry): IngestAck {
  return { snapshotId, extentCount, rows, sizeBytes, replayed: true };
}
