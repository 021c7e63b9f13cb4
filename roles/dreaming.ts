import type { JobHandler } from "../src/fabric/handler.ts";
import type { FeatureDeps } from "../src/feature/feature.ts";
import type { Credentials } from "../src/credentials/credentials.ts";
import { dreamHandler } from "../src/knowledge/dreaming/dream.ts";
import { DREAMING_METRICS } from "../src/knowledge/dreaming/metrics.ts";
import type { EventSource } from "../src/knowledge/dreaming/ports.ts";
import { DreamDesk } from "../src/knowledge/dreaming/remote/desk.ts";
import { RemoteDreamStore } from "../src/knowledge/dreaming/remote/store.ts";
import { PipelineRuns } from "../src/knowledge/dreaming/runs.ts";
import { DreamQueue } from "../src/knowledge/dreaming/queue.ts";
import { DreamingService } from "../src/knowledge/dreaming/service.ts";
import { openMemory } from "../src/knowledge/memory/open.ts";
import type { MemoryService } from "../src/knowledge/memory/service.ts";
import { MemoryStore } from "../src/knowledge/memory/store.ts";
import { Arrivals, type ArrivalPosition } from "../src/query/arrivals.ts";
import type { QueryService } from "../src/query/contract/query.ts";
import type { AgentEngines } from "../src/knowledge/agent/engines/engines.ts";
import { enginesHere } from "./agent.ts";
import type { AnsweredDeps } from "./answerers.ts";

/** What answers the routes of dreaming in this process. */
export function dreamingHere(
  deps: FeatureDeps,
  { memory, engines, query }: { memory: MemoryService; engines: AgentEngines; query: QueryService },
): AnsweredDeps["dreaming"] {
  const parts = dreamParts(deps, memory, () => Promise.resolve(query));
  const { fabric } = deps;
  return {
    dreaming: new DreamingService({ ...parts, queue: new DreamQueue(parts) }),
    desk: new DreamDesk({ ...parts, engines, remote: new RemoteDreamStore(deps.records) }),
    fabric,
  };
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
    ...dreamParts(deps, memory ?? openMemory(deps), query),
    engines: enginesHere(deps, credentials),
  });
}

/** What a dream works with, wherever its model is asked. */
function dreamParts(deps: FeatureDeps, memory: MemoryService, query: () => Promise<QueryService>) {
  return {
    ...deps,
    memory,
    store: new MemoryStore(deps.records),
    runs: new PipelineRuns(deps),
    events: eventsOf(new Arrivals({ ...deps, query, nowMs: () => deps.clock.nowMs() })),
    metrics: DREAMING_METRICS.of(deps.metrics),
  };
}

/** Only arrivals themselves have made a position. */
function eventsOf(arrivals: Arrivals): EventSource {
  return { read: ({ position, ...request }) => arrivals.read({ ...request, position: position as ArrivalPosition }) };
}
