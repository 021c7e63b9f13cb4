import type { Catalog } from "../../catalog/catalog.ts";
import { EngineError } from "../../core/errors.ts";
import type { FlushPorts } from "../flush.ts";
import type { IngestService } from "../ingest.ts";
import { Receiver, type ReceiverOptions } from "../receiver.ts";
import { syncPath } from "../service.ts";
import { keyInLedger } from "../tables.ts";
import { CatalogReach } from "./catalog-reach.ts";
import { SchemaCache } from "./schema-cache.ts";
import { stageFlush, type StagePorts } from "./stage-flush.ts";
import { StagedKeys } from "./staged-keys.ts";

export type StagedIngestOptions = ReceiverOptions &
  Pick<FlushPorts, "committer" | "random"> &
  Omit<StagePorts, "reach" | "schemas" | "keys"> & {
    catalog: Catalog;
  };

/**
 * Ingest in staged mode: acknowledged means durable, and certain to become visible (`staged.ts`). Requests from inputs
 * that can be read again are committed before they are acknowledged: their source is what keeps them.
 */
export function createStagedIngestService(options: StagedIngestOptions): IngestService {
  const { catalog, clock, log } = options;
  const reach = new CatalogReach({ catalog, clock, log });
  const schemas = new SchemaCache(reach, clock);
  const keys = new StagedKeys(clock);
  const ports: StagePorts = { ...options, reach, schemas, keys };
  const sync = syncPath(options);
  return new Receiver(options, {
    table: (request) => (request.source === undefined ? schemas : sync).table(request),
    async keyState(table, key, receivedAtMs) {
      // By the node's own clock, for the catalog may be away.
      const free = { freeAtMs: receivedAtMs };
      const staged = table === undefined ? undefined : keys.replay(table.id, key);
      if (staged !== undefined) return { ack: staged };
      try {
        if (table === undefined) return free;
        const state = await reach.ask((catalog) => keyInLedger(catalog, table, key));
        return "ack" in state ? state : free;
      } catch (error) {
        // Without the catalog the commit tells: a key that is in the ledger then is left out.
        if (error instanceof EngineError && error.code === "unavailable") return free;
        throw error;
      }
    },
    // Bodies from inputs gather apart from all others.
    flush: (target, bodies, onSealed) =>
      bodies.some(({ source }) => source !== undefined)
        ? sync.flush(target, bodies, onSealed)
        : stageFlush(ports, target, bodies, onSealed),
  });
}
