/** Writes the generated parts of `docs/`. A test fails when they are stale. */
import { writeFileSync } from "node:fs";
import { renderCliDoc } from "../src/cli/docs.ts";
import { renderConfigurationDoc } from "../src/config/docs.ts";

const folder = new URL("../docs/", import.meta.url);
writeFileSync(new URL("configuration.md", folder), renderConfigurationDoc());
writeFileSync(new URL("cli.md", folder), await renderCliDoc());
console.log("wrote docs/configuration.md and docs/cli.md");
