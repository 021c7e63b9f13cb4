import type { TableRecord } from "../catalog/catalog.ts";
import { foldName } from "../core/names.ts";
import { runFlush, type FlushPorts } from "./flush.ts";
import type { IngestRequest, IngestService } from "./ingest.ts";
import { Receiver, type ReceiverOptions, type WritePath } from "./receiver.ts";
import { findTable, keyInLedger } from "./tables.ts";

export type IngestServiceOptions = FlushPorts & ReceiverOptions;

const MAX_CACHED_TABLES = 10_000;

/** Ingest in sync mode: acknowledged means durable and visible. */
export function createIngestService(options: IngestServiceOptions): IngestService {
  return new Receiver(options, syncPath(options));
}

/** How requests are written in sync mode, and those from inputs in every mode. */
export function syncPath(options: FlushPorts): WritePath {
  const { catalog } = options;
  /**
   * Tables by the names that requests gave them. Columns go stale, and every flush reads them anew; so does identity
   * when a table is dropped, and the next flush tells. Until then a key is looked up in vain, for the ledger of a dropped
   * table is empty: it is the commit that judges it, by the table as it is.
   */
  const tables = new Map<string, TableRecord>();
  /** Ids of those tables by their folded names. */
  const ids = new Map<string, number>();
  const forgetTables = (): void => {
    tables.clear();
    ids.clear();
  };
  const onTable = (table: TableRecord): void => {
    const id = ids.get(nameOf(table));
    if (id !== undefined && id !== table.id) forgetTables();
  };
  const ports = { ...options, onTable };
  return {
    async table(request: IngestRequest) {
      const spelling = `${request.database}/${request.table}`;
      const cached = tables.get(spelling);
      if (cached !== undefined) return cached;
      const table = await findTable(catalog, request);
      if (table === undefined) return undefined;
      if (tables.size >= MAX_CACHED_TABLES) forgetTables();
      tables.set(spelling, table);
      ids.set(nameOf(table), table.id);
      return table;
    },
    keyState: (table, key) => keyInLedger(catalog, table, key),
    flush: (target, bodies, onSealed) => runFlush(ports, target, bodies, onSealed),
  };
}

function nameOf({ database, name }: TableRecord): string {
  return foldName(`${database}/${name}`);
}
