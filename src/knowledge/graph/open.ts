import type { FeatureDeps } from "../../feature/feature.ts";
import type { MemoryService } from "../memory/service.ts";
import { MemoryStore } from "../memory/store.ts";
import type { GraphQueries } from "./queries.ts";
import { GraphRegistry } from "./registry.ts";
import { GraphService } from "./service.ts";

/** The graphs, as one process shows them. */
export function openGraphs(
  deps: Pick<FeatureDeps, "catalog" | "records" | "clock"> & { memory: MemoryService; queries: GraphQueries },
): GraphService {
  const { records } = deps;
  return new GraphService({ ...deps, registry: new GraphRegistry(records), store: new MemoryStore(records) });
}
