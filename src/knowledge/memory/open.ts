import type { FeatureDeps } from "../../feature/feature.ts";
import { MEMORY_METRICS } from "./metrics.ts";
import { MemoryService } from "./service.ts";
import { MemoryStore } from "./store.ts";
import { MemoryWriter } from "./writer.ts";

/** The memories, as one process reads and writes them. */
export function openMemory(
  deps: Pick<FeatureDeps, "catalog" | "records" | "clock" | "random" | "newId" | "metrics" | "audit">,
): MemoryService {
  const { records, newId } = deps;
  const metrics = MEMORY_METRICS.of(deps.metrics);
  const store = new MemoryStore(records);
  const writer = new MemoryWriter({ ...deps, metrics, store, holder: newId() });
  return new MemoryService({ ...deps, metrics, store, writer });
}
