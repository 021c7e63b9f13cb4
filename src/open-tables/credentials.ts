import { valuesOf } from "../config/option.ts";
import type { Config } from "../config/options.ts";
import { OPEN_TABLE_OPTIONS } from "./options.ts";

/** What a client needs to know of an S3 store besides where an object is; nothing of a local one. */
export function storeProperties(config: Config, root: string): Record<string, string> {
  if (!isBucket(root)) return {};
  const { objstoreEndpoint: endpoint, objstoreRegion, objstorePathStyle } = config;
  return {
    "client.region": objstoreRegion,
    "s3.region": objstoreRegion,
    ...(endpoint !== undefined && { "s3.endpoint": endpoint }),
    "s3.path-style-access": String(objstorePathStyle),
  };
}

/** Whether that place of the store is in a bucket, and not on a disk. */
function isBucket(root: string): boolean {
  return root.startsWith("s3://");
}

/** The key pair for readers of the store; undefined where they bring their own, or need none. */
export function readerCredentials(config: Config, root: string): Record<string, string> | undefined {
  if (!isBucket(root)) return undefined;
  const { icebergCredentials, icebergAccessKeyId, icebergSecretAccessKey } = valuesOf(OPEN_TABLE_OPTIONS, config);
  if (icebergCredentials === "none" || icebergAccessKeyId === undefined || icebergSecretAccessKey === undefined) {
    return undefined;
  }
  return { "s3.access-key-id": icebergAccessKeyId, "s3.secret-access-key": icebergSecretAccessKey };
}
