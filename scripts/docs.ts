/** Writes the generated parts of `docs/`. A test fails when they are stale. */
import { readFileSync, writeFileSync } from "node:fs";
import { performanceDoc } from "../bench/report/performance.ts";
import { FEATURES } from "../roles/features.ts";
import { referenceDocs } from "../roles/reference.ts";
import { withKqlReference } from "../src/query/kql/reference.ts";
import { withSandboxStates } from "../src/sandbox/contract/states-docs.ts";

const folder = new URL("../docs/", import.meta.url);
const documents = Object.entries(await referenceDocs(FEATURES));
for (const [name, text] of documents) writeFileSync(new URL(name, folder), text);
for (const [name, withPrinted] of [
  ["kql.md", withKqlReference],
  ["sandboxes.md", withSandboxStates],
] as const) {
  const document = new URL(name, folder);
  writeFileSync(document, withPrinted(readFileSync(document, "utf8")));
}
writeFileSync(new URL("performance.md", folder), await performanceDoc());
console.log(
  `wrote ${documents.map(([name]) => `docs/${name}`).join(", ")}, docs/performance.md, and parts of docs/kql.md and docs/sandboxes.md`,
);
