import { renderCliDoc } from "../src/cli/docs.ts";
import { renderConfigurationDoc } from "../src/config/docs.ts";
import { renderMetricsDoc } from "../src/core/metrics-docs.ts";
import { metricSetsOf } from "../src/feature/collect.ts";
import type { FeatureParts } from "../src/feature/feature.ts";

/** The generated documents of a program that consists of these features, by their names in `docs/`. */
export async function referenceDocs(features: readonly FeatureParts[]): Promise<Readonly<Record<string, string>>> {
  const withOptions = features.flatMap(({ name, title, options }) =>
    options === undefined ? [] : [{ name, title, options }],
  );
  return {
    "configuration.md": renderConfigurationDoc(withOptions),
    "cli.md": await renderCliDoc(features),
    "metrics.md": renderMetricsDoc(await metricSetsOf(features)),
  };
}
