import type { FeatureParts } from "../../feature/feature.ts";

/** Pipelines that write memories without a language model. */
export const PIPELINES: FeatureParts = {
  name: "pipelines",
  title: "Pipelines of memories",
  options: async () => (await import("./options.ts")).PIPELINE_OPTIONS,
  metrics: async () => (await import("./metrics.ts")).PIPELINE_METRICS,
  duties: { compaction: async (deps) => (await import("./duties.ts")).consolidationDuties(deps) },
};
