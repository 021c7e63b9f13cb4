import type { Feature } from "../feature/feature.ts";
import type { ExportDeps, QueryDeps } from "./routes/deps.ts";
import type { QueryEngineDeps } from "./routes/query-engines.ts";

/** Queries, the exports of their results, and the query engines of others. */
export const QUERY: Feature<{ query: QueryDeps; exports: ExportDeps; queryEngines: QueryEngineDeps }> = {
  name: "query",
  title: "Queries",
  options: async () => {
    const [{ QUERY_OPTIONS }, { FLIGHT_OPTIONS }] = await Promise.all([
      import("./options.ts"),
      import("./flight/options.ts"),
    ]);
    return { ...QUERY_OPTIONS, ...FLIGHT_OPTIONS };
  },
  capabilities: async () => (await import("./capabilities.ts")).QUERY_CAPABILITIES,
  commands: {
    sql: () => import("./commands/sql.ts"),
    kql: () => import("./commands/kql.ts"),
    tail: () => import("./commands/tail.ts"),
    "query-engine": () => import("./commands/query-engine.ts"),
  },
  migrations: async () => (await import("./engines/tables.ts")).QUERY_MIGRATIONS,
  routes: async () => {
    const { FLIGHT_ROUTES } = await import("./flight/routes.ts");
    const { EXPORT_ROUTES, QUERY_ENGINE_ROUTES, QUERY_ROUTES } = await import("./routes/query-routes.ts");
    return [
      { name: "query", answeredBy: "query", routes: QUERY_ROUTES },
      { name: "exports", answeredBy: "exports", routes: EXPORT_ROUTES },
      { name: "query engines", answeredBy: "queryEngines", routes: QUERY_ENGINE_ROUTES },
      { name: "flight", answeredBy: "query", routes: FLIGHT_ROUTES },
    ];
  },
  metrics: async () => {
    const { metricSets } = await import("../core/metric-set.ts");
    const [{ QUERY_METRICS }, { QUERY_LOG_METRICS }, { CACHE_METRICS }, { TAIL_METRICS }, { TRANSLATOR_METRICS }] =
      await Promise.all([
        import("./metrics.ts"),
        import("./system-tables/metrics.ts"),
        import("./fetch/cache/metrics.ts"),
        import("./tail/metrics.ts"),
        import("./translator/metrics.ts"),
      ]);
    return metricSets(QUERY_METRICS, QUERY_LOG_METRICS, CACHE_METRICS, TAIL_METRICS, TRANSLATOR_METRICS);
  },
  jobKinds: async () => [(await import("./exports/export.ts")).QUERY_EXPORT],
  duties: {
    compaction: async ({ config, ...ports }) => {
      const { createExportSweep } = await import("./exports/sweep.ts");
      const options = { keyPrefix: config.pathPrefix, graceMs: config.artifactGcGraceSecs * 1_000 };
      const duty = createExportSweep({ ...ports, nowMs: () => ports.catalog.nowMs() }, options);
      return [{ name: "export sweep", pollMs: config.artifactGcPollSecs * 1_000, duty }];
    },
  },
};
