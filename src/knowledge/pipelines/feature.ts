import type { FeatureParts } from "../../feature/feature.ts";

/** Pipelines that write memories by themselves. Their duties are no contribution: they share what others have made. */
export const PIPELINES: FeatureParts = {
  name: "pipelines",
  title: "Pipelines of memories",
  options: async () => (await import("./options.ts")).PIPELINE_OPTIONS,
  metrics: async () => (await import("./metrics.ts")).PIPELINE_METRICS,
};
