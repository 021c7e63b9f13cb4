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

/** The acknowledgement that the ledger has for the key. */
export async function replayFromLedger(
  catalog: Catalog,
  table: TableRecord,
  key: string,
): Promise<IngestAck | undefined> {
  const entry = await catalog.ledgerEntry(table.id, key);
  return entry && asReplay(entry);
}

/** The acknowledgement of a request whose key was committed before. */
export function asReplay({ snapshotId, extentCount, rows, sizeBytes }: LedgerEntry): IngestAck {
  return { snapshotId, extentCount, rows, sizeBytes, replayed: true };
}
