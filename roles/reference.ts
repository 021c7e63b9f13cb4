import { renderCliDoc } from "../src/cli/docs.ts";
import { renderConfigurationDoc } from "../src/config/docs.ts";
import { renderMetricsDoc } from "../src/core/metrics-docs.ts";
import { metricSetsOf, optionsOf } from "../src/feature/collect.ts";
import type { FeatureParts } from "../src/feature/feature.ts";

/** The generated documents of a program that consists of these features, by their names in `docs/`. */
export async function referenceDocs(features: readonly FeatureParts[]): Promise<Readonly<Record<string, string>>> {
  return {
    "configuration.md": renderConfigurationDoc(await optionsOf(features)),
    "cli.md": await renderCliDoc(features),
    "metrics.md": renderMetricsDoc(await metricSetsOf(features)),
  };
}
