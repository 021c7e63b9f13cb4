/** Writes the generated parts of `docs/`. A test fails when they are stale. */
import { writeFileSync } from "node:fs";
import { renderCliDoc } from "../src/cli/docs.ts";
import { renderConfigurationDoc } from "../src/config/docs.ts";
import { renderMetricsDoc } from "../src/core/metrics-docs.ts";

const folder = new URL("../docs/", import.meta.url);
writeFileSync(new URL("configuration.md", folder), renderConfigurationDoc());
writeFileSync(new URL("cli.md", folder), await renderCliDoc());
writeFileSync(new URL("metrics.md", folder), renderMetricsDoc());
console.log("wrote docs/configuration.md, docs/cli.md and docs/metrics.md");
