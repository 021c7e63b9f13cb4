import type { TableRecord } from "../catalog/catalog.ts";
import { runFlush, type FlushPorts } from "./flush.ts";
import type { IngestRequest, IngestService } from "./ingest.ts";
import { Receiver, type ReceiverOptions } from "./receiver.ts";
import { findTable, keyInLedger } from "./tables.ts";

export type IngestServiceOptions = FlushPorts & ReceiverOptions;

const MAX_CACHED_TABLES = 10_000;

/** Ingest in sync mode: acknowledged means durable and visible. */
export function createIngestService(options: IngestServiceOptions): IngestService {
  const { catalog } = options;
  /**
   * Tables by the names that requests gave them. Tables are never dropped or renamed, so identity does not go stale;
   * columns do, and every flush reads them anew.
   */
  const tables = new Map<string, TableRecord>();
  return new Receiver(options, {
    async table(request: IngestRequest) {
      const spelling = `${request.database}/${request.table}`;
      const cached = tables.get(spelling);
      if (cached !== undefined) return cached;
      const table = await findTable(catalog, request);
      if (table === undefined) return undefined;
      if (tables.size >= MAX_CACHED_TABLES) tables.clear();
      tables.set(spelling, table);
      return table;
    },
    keyState: (table, key) => keyInLedger(catalog, table, key),
    flush: (target, bodies, onSealed) => runFlush(options, target, bodies, onSealed),
  });
}
