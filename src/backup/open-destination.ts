import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { Config } from "../config/options.ts";
import { valuesOf } from "../config/option.ts";
import { EngineError, StartupError, systemCodeOf } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import type { Clock } from "../core/clock.ts";
import type { Metrics } from "../core/metrics.ts";
import type { Random } from "../core/random.ts";
import { openFilesystemStore } from "../io/objectstore/filesystem.ts";
import { showDestination, type Destination } from "./destination.ts";
import { BACKUP_OPTIONS } from "./options.ts";
import { Repository } from "./repository.ts";

export type OpenPorts = { config: Config; clock: Clock; random: Random; log: Log; metrics: Metrics };

/** `read`: it must be there, and is not changed. */
export type Access = "read" | "write";

/** Runs work on the backups in a destination. Throws `not_found` where there is none to read, and `StartupError`. */
export async function withRepository<T>(
  destination: Destination,
  access: Access,
  ports: OpenPorts,
  work: (repository: Repository) => Promise<T>,
): Promise<T> {
  if (destination.kind === "folder") {
    if (access === "read") await checkFolder(destination.path);
    const readOnly = access === "read" ? { readOnly: true as const } : {};
    const store = await openFilesystemStore({ root: destination.path, ...ports, ...readOnly });
    return await work(new Repository(store, ""));
  }
  const { openS3Store } = await import("../io/objectstore/s3/s3.ts");
  const store = openS3Store({ ...ports, bucket: destination.bucket, ...s3Settings(ports.config) });
  try {
    return await work(new Repository(store, destination.prefix === "" ? "" : `${destination.prefix}/`));
  } finally {
    store.close();
  }
}

/** A folder that a destination was written to has this, as every store of files. */
async function checkFolder(path: string): Promise<void> {
  try {
    await stat(join(path, ".tmp"));
  } catch (error) {
    if (systemCodeOf(error) !== "ENOENT" && systemCodeOf(error) !== "ENOTDIR") throw error;
    const where = showDestination({ kind: "folder", path });
    throw new EngineError("not_found", `there are no backups in ${where}`);
  }
}

/** Options of their own where an endpoint or keys are set, else those of the object store. */
function s3Settings(config: Config) {
  const { backupEndpoint, backupRegion, backupAccessKeyId, backupSecretAccessKey } = valuesOf(BACKUP_OPTIONS, config);
  const isOwn = backupEndpoint !== undefined || backupAccessKeyId !== undefined || backupSecretAccessKey !== undefined;
  const [accessKeyId, secretAccessKey] = isOwn
    ? [backupAccessKeyId, backupSecretAccessKey]
    : [config.objstoreAccessKeyId, config.objstoreSecretAccessKey];
  if ((accessKeyId === undefined) !== (secretAccessKey === undefined)) {
    throw new StartupError("one of the two S3 keys for backups is set and the other is not: set both, or neither", 2);
  }
  const endpoint = backupEndpoint ?? config.objstoreEndpoint;
  if (endpoint?.startsWith("http:") === true && !config.objstoreAllowHttp) {
    throw new StartupError(
      `the S3 server for backups, ${endpoint}, is without TLS, which ENGINE_OBJSTORE_ALLOW_HTTP forbids`,
      2,
    );
  }
  return {
    region: backupRegion ?? config.objstoreRegion,
    endpoint,
    credentials:
      accessKeyId === undefined || secretAccessKey === undefined ? undefined : { accessKeyId, secretAccessKey },
    pathStyle: config.objstorePathStyle,
    allowHttp: config.objstoreAllowHttp,
  };
}
