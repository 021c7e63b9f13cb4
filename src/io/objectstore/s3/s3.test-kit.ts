import { systemClock } from "../../../core/clock.ts";
import { silentLog } from "../../../core/log.ts";
import { createMetrics } from "../../../core/metrics.ts";
import { systemRandom } from "../../../core/random.ts";
import { type S3StoreOptions, openS3Store } from "./s3.ts";
import type { Versitygw } from "./versitygw.test-kit.ts";

/** Options for a bucket of a test server, and some of them changed. */
export function storeOptions(server: Versitygw, changed: Partial<S3StoreOptions> & { bucket: string }): S3StoreOptions {
  return {
    region: server.region,
    endpoint: server.endpoint,
    credentials: server.credentials,
    pathStyle: true,
    allowHttp: true,
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
    metrics: createMetrics(),
    ...changed,
  };
}

/** A store over a new bucket of the server. */
export async function openInNewBucket(server: Versitygw, changed: Partial<S3StoreOptions> = {}) {
  const options = storeOptions(server, { ...changed, bucket: await server.makeBucket() });
  return { store: openS3Store(options), options };
}

/** What tells an engine to keep its objects in a bucket of a test server. */
export function storeEnvironment(server: Versitygw, bucket: string): Record<string, string> {
  return {
    ENGINE_OBJSTORE_ENDPOINT: server.endpoint,
    ENGINE_OBJSTORE_REGION: server.region,
    ENGINE_OBJSTORE_BUCKET: bucket,
    ENGINE_OBJSTORE_ACCESS_KEY_ID: server.credentials.accessKeyId,
    ENGINE_OBJSTORE_SECRET_ACCESS_KEY: server.credentials.secretAccessKey,
    ENGINE_OBJSTORE_PATH_STYLE: "1",
    ENGINE_OBJSTORE_ALLOW_HTTP: "1",
  };
}
