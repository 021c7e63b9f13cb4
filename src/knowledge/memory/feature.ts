import type { Feature } from "../../feature/feature.ts";
import type { MemoryDeps } from "./routes/deps.ts";

/** What people, agents and their tools remember: see `model.ts`. */
export const MEMORY: Feature<{ memory: MemoryDeps }> = {
  name: "memory",
  title: "Memory",
  options: async () => ({
    ...(await import("./recall/options.ts")).RECALL_OPTIONS,
    ...(await import("./embed/options.ts")).EMBED_OPTIONS,
    ...(await import("./rerank/options.ts")).RERANK_OPTIONS,
  }),
  metrics: async () => (await import("./metrics.ts")).MEMORY_METRICS,
  migrations: async () => (await import("./tables.ts")).MEMORY_MIGRATIONS,
  capabilities: async () => (await import("./embed/capabilities.ts")).EMBED_CAPABILITIES,
  duties: { compaction: async (deps) => [(await import("./sweep/duty.ts")).memorySweep(deps)] },
  routes: async () => {
    const { MEMORY_ROUTES } = await import("./routes/memory-routes.ts");
    return [{ name: "memory", answeredBy: "memory", routes: MEMORY_ROUTES }];
  },
  systemTables: async () => {
    const { MEMORY_EDGES_TABLE, MEMORY_NODES_TABLE } = await import("./system-tables.ts");
    return [MEMORY_NODES_TABLE, MEMORY_EDGES_TABLE];
  },
};
