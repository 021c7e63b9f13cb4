import type { TableRecord } from "../catalog/catalog.ts";
import { valuesOf } from "../config/option.ts";
import type { Config } from "../config/options.ts";
import type { StorageDeps } from "../feature/feature.ts";
import { OPEN_TABLE_OPTIONS } from "./options.ts";
import { TableSessions } from "./sessions.ts";

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

/** Keys for readers of the store. */
export type ReaderCredentials = {
  /** As clients take them. */
  properties: Readonly<Record<string, string>>;
  /** For the audit log. */
  details?: Readonly<Record<string, string>>;
};

/** Gives the keys that read a table, of which these are the places. */
export type CredentialSource = (table: TableRecord, places: readonly string[]) => Promise<ReaderCredentials>;

/** Whether there are keys for readers; they bring their own, or need none, where there are not. */
export function givesCredentials(config: Config, root: string): boolean {
  return isBucket(root) && valuesOf(OPEN_TABLE_OPTIONS, config).icebergCredentials !== "none";
}

/** Undefined where `givesCredentials` says no. */
export function readerCredentials(
  deps: Pick<StorageDeps, "config" | "clock" | "log" | "metrics">,
  root: string,
): CredentialSource | undefined {
  if (!givesCredentials(deps.config, root)) return undefined;
  const { icebergCredentials, ...own } = valuesOf(OPEN_TABLE_OPTIONS, deps.config);
  if (icebergCredentials === "sts" && own.icebergRoleArn !== undefined) return sessionsOf(deps, own.icebergRoleArn);
  const { icebergAccessKeyId: id, icebergSecretAccessKey: secret } = own;
  if (icebergCredentials !== "static" || id === undefined || secret === undefined) return undefined;
  const given = { properties: { "s3.access-key-id": id, "s3.secret-access-key": secret } };
  return () => Promise.resolve(given);
}

function sessionsOf(
  deps: Pick<StorageDeps, "config" | "clock" | "log" | "metrics">,
  roleArn: string,
): CredentialSource {
  const { icebergStsEndpoint: endpoint, ...config } = valuesOf(OPEN_TABLE_OPTIONS, deps.config);
  const { objstoreRegion: region, objstoreAllowHttp: allowHttp } = config;
  const { objstoreAccessKeyId: accessKeyId, objstoreSecretAccessKey: secretAccessKey } = config;
  const credentials =
    accessKeyId === undefined || secretAccessKey === undefined ? undefined : { accessKeyId, secretAccessKey };
  // The client of the token service is loaded with the first session.
  const loaded = lazily(async () => {
    const { assumeRoleAt } = await import("./sts.ts");
    return assumeRoleAt({ roleArn, region, endpoint, credentials, allowHttp }, deps.clock);
  });
  const sessions = new TableSessions(deps, roleArn, async (wanted) => await (await loaded())(wanted));
  return async (table, places) => {
    const session = await sessions.of(table, places);
    return {
      properties: {
        "s3.access-key-id": session.accessKeyId,
        "s3.secret-access-key": session.secretAccessKey,
        "s3.session-token": session.sessionToken,
        "s3.session-token-expires-at-ms": String(session.expiresAtMs),
      },
      details: { access_key_id: session.accessKeyId, expires_at: new Date(session.expiresAtMs).toISOString() },
    };
  };
}

function lazily<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => (made ??= make());
}
