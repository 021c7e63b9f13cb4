import { globSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { FEATURE_ROWS } from "../../roles/features.test-kit.ts";
import { FEATURES } from "../../roles/features.ts";
import { OPTIONS } from "../../src/config/options.ts";
import { variablesOf } from "../../src/config/secret-file.ts";
import { ERROR_CODES } from "../../src/core/errors.ts";
import { createMetrics } from "../../src/core/metrics.ts";
import { registerMetrics } from "../../src/feature/collect.ts";

const variables = new Set(Object.values({ ...OPTIONS, ...FEATURE_ROWS }).flatMap(variablesOf));

const { registry } = createMetrics({ process: true });
await registerMetrics(FEATURES, { registry });
const metrics = new Set(registry.getMetricsAsArray().map(({ name }) => name));

/** What programs of jobs are told (`src/cli/worker-exec.ts`), claims of tokens, an option that an upgrade names, and what releases are built with. */
const OTHERS = new Set([
  "ENGINE_JOB_ID",
  "ENGINE_JOB_KIND",
  "ENGINE_JOB_ATTEMPT",
  "ENGINE_JOB_FENCE",
  "ENGINE_SANDBOX_VOLUME_RETENTION_DAYS",
  "ENGINE_RELEASE_KEYS",
  "ENGINE_RELEASE_SCOPE",
  "ENGINE_RELEASE_URL",
  "engine_role",
  "engine_databases",
]);

/** Whole names: what goes on with `_`, `…` or `<` is the beginning of several. */
function namesIn(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map(([name]) => name).filter((name) => !OTHERS.has(name.replace("`", "")));
}

describe.each(["README.md", ...globSync("docs/*.md")])("%s", (path) => {
  const text = readFileSync(path, "utf8");

  test("names options that there are", () => {
    const named = namesIn(text, /\bENGINE_[A-Z0-9_]*[A-Z0-9](?![A-Z0-9_…<*{])/g);
    expect(named.filter((name) => !variables.has(name))).toEqual([]);
  });

  test("names metrics that there are", () => {
    const named = namesIn(text, /`engine_[a-z0-9_]*[a-z0-9](?=[`{])/g).map((name) => name.slice(1));
    const own = named.map((name) => name.replace(/_(bucket|sum|count)$/, ""));
    // Two codes of errors begin as metrics do.
    expect(own.filter((name) => !metrics.has(name) && !Object.hasOwn(ERROR_CODES, name))).toEqual([]);
  });
});
