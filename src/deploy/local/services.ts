import type { CliContext } from "../../client/context.ts";
import type { LoadedConfig } from "../../config/load.ts";
import { objectStoreSettings } from "../../config/object-store.ts";
import { uuidV7Source } from "../../core/ids.ts";
import { silentLog } from "../../core/log.ts";
import { createMetrics } from "../../core/metrics.ts";

/** PostgreSQL and S3 servers that a deployment uses and does not run. */

const TIMEOUT_MS = 10_000;
/** A person waits: what is wrong at once is not tried for a minute. */
const STORE_LIMITS = { attempts: 2, connectTimeoutMs: 3_000, attemptTimeoutMs: 5_000, deadlineMs: TIMEOUT_MS };

/**
 * Tries those that `engine.toml` names, before anything is started on them. The store gets a small object, which goes
 * again. @throws StartupError that says what is wrong with which one, and what to do
 */
export async function checkServices({ deps: { clock, random } }: CliContext, loaded: LoadedConfig): Promise<void> {
  const { catalogUrl, pathPrefix: prefix } = loaded.config;
  if (catalogUrl.kind === "postgres") {
    const { checkServer } = await import("../../db/postgres/server-check.ts");
    await checkServer(catalogUrl.url, { clock, timeoutMs: TIMEOUT_MS });
  }
  const settings = objectStoreSettings(loaded);
  if (settings.kind === "local") return;
  const { openS3Store } = await import("../../io/objectstore/s3/s3.ts");
  const { checkStore } = await import("../../io/objectstore/s3/check-store.ts");
  const store = openS3Store({
    ...settings,
    clock,
    random,
    log: silentLog,
    metrics: createMetrics(),
    limits: STORE_LIMITS,
  });
  try {
    await checkStore(store, { prefix, newId: uuidV7Source(clock, random) });
  } finally {
    store.close();
  }
}
