/** Writes the generated parts of `docs/`. A test fails when they are stale. */
import { readFileSync, writeFileSync } from "node:fs";
import { renderCliDoc } from "../src/cli/docs.ts";
import { renderConfigurationDoc } from "../src/config/docs.ts";
import { renderMetricsDoc } from "../src/core/metrics-docs.ts";
import { withSandboxStates } from "../src/sandbox/contract/states-docs.ts";

const folder = new URL("../docs/", import.meta.url);
writeFileSync(new URL("configuration.md", folder), renderConfigurationDoc());
writeFileSync(new URL("cli.md", folder), await renderCliDoc());
writeFileSync(new URL("metrics.md", folder), renderMetricsDoc());
const sandboxes = new URL("sandboxes.md", folder);
writeFileSync(sandboxes, withSandboxStates(readFileSync(sandboxes, "utf8")));
console.log("wrote docs/configuration.md, docs/cli.md, docs/metrics.md and the states in docs/sandboxes.md");
