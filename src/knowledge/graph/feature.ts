import type { Feature } from "../../feature/feature.ts";
import type { GraphDeps } from "./routes/graph.ts";

/** Graphs to look at: the catalog, memories, and tables that are read as nodes and edges. */
export const GRAPH: Feature<{ graph: GraphDeps }> = {
  name: "graph",
  title: "Graphs",
  migrations: async () => (await import("./tables.ts")).GRAPH_MIGRATIONS,
  duties: { compaction: async (deps) => [(await import("./sweep.ts")).graphSweep(deps)] },
  commands: {
    "create-graph": () => import("./commands/create-graph.ts"),
    "list-graphs": () => import("./commands/list-graphs.ts"),
    "drop-graph": () => import("./commands/drop-graph.ts"),
  },
  routes: async () => {
    const { GRAPH_ROUTES } = await import("./routes/graph.ts");
    return [{ name: "graph", answeredBy: "graph", routes: GRAPH_ROUTES }];
  },
};
