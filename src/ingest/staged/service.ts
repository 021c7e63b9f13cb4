import type { Catalog } from "../../catalog/catalog.ts";
import { EngineError } from "../../core/errors.ts";
import type { IngestService } from "../ingest.ts";
import { Receiver, type ReceiverOptions } from "../receiver.ts";
import { replayFromLedger } from "../tables.ts";
import { CatalogReach } from "./catalog-reach.ts";
import { SchemaCache } from "./schema-cache.ts";
import { stageFlush, type StagePorts } from "./stage-flush.ts";
import { StagedKeys } from "./staged-keys.ts";

export type StagedIngestOptions = ReceiverOptions &
  Omit<StagePorts, "reach" | "schemas" | "keys"> & {
    catalog: Catalog;
  };

/** Ingest in staged mode: acknowledged means durable, and certain to become visible (`staged.ts`). */
export function createStagedIngestService(options: StagedIngestOptions): IngestService {
  const { catalog, clock, log } = options;
  const reach = new CatalogReach({ catalog, clock, log });
  const schemas = new SchemaCache(reach, clock);
  const keys = new StagedKeys(clock);
  const ports: StagePorts = { ...options, reach, schemas, keys };
  return new Receiver(options, {
    table: (request) => schemas.table(request),
    async replay(table, key) {
      const staged = keys.replay(table.id, key);
      if (staged !== undefined) return staged;
      try {
        return await reach.ask((catalog) => replayFromLedger(catalog, table, key));
      } catch (error) {
        // Without the catalog the commit tells: a key that is in the ledger then is left out.
        if (error instanceof EngineError && error.code === "unavailable") return undefined;
        throw error;
      }
    },
    flush: (target, bodies, onSealed) => stageFlush(ports, target, bodies, onSealed),
  });
}
