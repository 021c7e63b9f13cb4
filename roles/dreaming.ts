import type { JobHandler } from "../src/fabric/handler.ts";
import type { FeatureDeps } from "../src/feature/feature.ts";
import type { Credentials } from "../src/credentials/credentials.ts";
import { dreamHandler } from "../src/knowledge/dreaming/dream.ts";
import { DREAMING_METRICS } from "../src/knowledge/dreaming/metrics.ts";
import type { EventSource } from "../src/knowledge/dreaming/ports.ts";
import type { DreamingDeps } from "../src/knowledge/dreaming/routes.ts";
import { PipelineRuns } from "../src/knowledge/dreaming/runs.ts";
import { DreamQueue } from "../src/knowledge/dreaming/queue.ts";
import { DreamingService } from "../src/knowledge/dreaming/service.ts";
import { openMemory } from "../src/knowledge/memory/open.ts";
import type { MemoryService } from "../src/knowledge/memory/service.ts";
import { MemoryStore } from "../src/knowledge/memory/store.ts";
import { Arrivals, type ArrivalPosition } from "../src/query/arrivals.ts";
import type { QueryService } from "../src/query/contract/query.ts";
import { enginesHere } from "./agent.ts";

/** What answers the routes of dreaming in this process. */
export function dreamingHere(deps: FeatureDeps, memory: MemoryService): DreamingDeps {
  const store = new MemoryStore(deps.records);
  const runs = new PipelineRuns(deps);
  return { dreaming: new DreamingService({ ...deps, memory, store, runs, queue: new DreamQueue({ ...deps, runs }) }) };
}

export type DreamerPorts = {
  credentials: Credentials;
  query: () => Promise<QueryService>;
  /** Of this process, where it answers questions about memories. */
  memory: MemoryService | undefined;
};

/** What runs dreams in this process. */
export function dreamer(deps: FeatureDeps, { credentials, query, memory }: DreamerPorts): JobHandler {
  return dreamHandler({
    ...deps,
    memory: memory ?? openMemory(deps),
    store: new MemoryStore(deps.records),
    runs: new PipelineRuns(deps),
    engines: enginesHere(deps, credentials),
    events: eventsOf(new Arrivals({ ...deps, query, nowMs: () => deps.clock.nowMs() })),
    metrics: DREAMING_METRICS.of(deps.metrics),
  });
}

/** Only arrivals themselves have made a position. */
function eventsOf(arrivals: Arrivals): EventSource {
  return { read: ({ position, ...request }) => arrivals.read({ ...request, position: position as ArrivalPosition }) };
}
