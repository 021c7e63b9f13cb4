import type { DatabaseRecord } from "../../catalog/catalog.ts";
import { valuesOf } from "../../config/option.ts";
import type { FeatureDuty, StorageDeps } from "../../feature/feature.ts";
import { PipelineRuns } from "../dreaming/runs.ts";
import { FILE_SYNC_OPTIONS } from "../filesync/options.ts";
import type { AgentEngines } from "../agent/engines/engines.ts";
import { EMBED_OPTIONS } from "../memory/embed/options.ts";
import { openStoredVectors } from "../memory/embed/stored-vectors.ts";
import { MEMORY_METRICS } from "../memory/metrics.ts";
import { MemoryStore } from "../memory/store.ts";
import { Verdicts } from "../memory/verdicts.ts";
import { MemoryWriter } from "../memory/writer.ts";
import { Consolidations } from "./consolidation/consolidation.ts";
import { Judging } from "./consolidation/judging.ts";
import { ConsolidationReader } from "./consolidation/reader.ts";
import { correlate, type EventReader } from "./correlation/correlation.ts";
import { PIPELINE_LIMITS } from "./limits.ts";
import { PIPELINE_METRICS } from "./metrics.ts";
import { PIPELINE_OPTIONS } from "./options.ts";

/**
 * Links memories. `engines` says which language model is asked whether memories that are alike say the same; undefined in a
 * process that asks none.
 */
export function consolidationDuties(
  deps: StorageDeps,
  engines: Pick<AgentEngines, "current" | "open"> | undefined,
): FeatureDuty[] {
  const { config, records } = deps;
  const { memoryConsolidationPollSecs } = valuesOf(PIPELINE_OPTIONS, config);
  const { caCurate, caDupCosine: band } = valuesOf(FILE_SYNC_OPTIONS, config);
  const vectors = openStoredVectors(valuesOf(EMBED_OPTIONS, config), records);
  const verdicts = caCurate ? new Verdicts(records) : undefined;
  const consolidation = { ...deps, ...pipelineDeps(deps), reader: new ConsolidationReader(records), band, vectors };
  const consolidations = new Consolidations({ ...consolidation, verdicts });
  const judging = verdicts === undefined ? undefined : new Judging({ ...consolidation, verdicts, engines });
  const changed = async (): Promise<DatabaseRecord[]> => {
    const ids = await consolidations.changed();
    return ids.size === 0 ? [] : (await deps.catalog.databases()).filter(({ id }) => ids.has(id));
  };
  return [
    {
      name: "memory consolidation",
      pollMs: memoryConsolidationPollSecs * 1_000,
      duty: async ({ signal }) => {
        try {
          await inEach(deps, await changed(), signal, ({ id }) => consolidations.consolidate(id));
        } finally {
          // A database that fails keeps no other one.
          await judging?.turn(signal);
        }
      },
    },
  ];
}

/** Remembers failures that repeat. */
export function correlationDuties(deps: StorageDeps, arrivals: EventReader): FeatureDuty[] {
  const { config, catalog } = deps;
  const { ciCorrelatePollSecs } = valuesOf(PIPELINE_OPTIONS, config);
  const correlation = { ...pipelineDeps(deps), arrivals };
  return [
    {
      name: "failure correlation",
      pollMs: ciCorrelatePollSecs * 1_000,
      duty: async ({ signal }) => {
        await inEach(deps, await catalog.databases(), signal, (database) => correlate(correlation, database, signal));
      },
    },
  ];
}

function pipelineDeps(deps: StorageDeps) {
  const { records, newId, clock, log, random } = deps;
  const store = new MemoryStore(records);
  const memoryMetrics = MEMORY_METRICS.of(deps.metrics);
  const writer = new MemoryWriter({ records, store, clock, random, metrics: memoryMetrics, holder: newId() });
  const metrics = PIPELINE_METRICS.of(deps.metrics);
  return { records, runs: new PipelineRuns({ records, newId }), writer, store, newId, clock, log, metrics };
}

/** Works on in each database while there is more, for a time. One that fails does not keep the others. */
async function inEach(
  { clock, log }: Pick<StorageDeps, "clock" | "log">,
  databases: readonly DatabaseRecord[],
  signal: AbortSignal,
  work: (database: DatabaseRecord) => Promise<boolean>,
): Promise<void> {
  let failed = 0;
  for (const database of databases) {
    const untilMs = clock.monotonicMs() + PIPELINE_LIMITS.turnMs;
    try {
      for (let hasMore = true; hasMore && clock.monotonicMs() < untilMs;) {
        signal.throwIfAborted();
        hasMore = await work(database);
      }
    } catch (error) {
      if (signal.aborted) throw error;
      failed++;
      log.error({ err: error, database: database.name }, "a pipeline of memories failed in a database");
    }
  }
  if (failed > 0) throw new Error(`a pipeline of memories failed in ${failed} of ${databases.length} databases`);
}
