import { StartupError } from "../core/errors.ts";
import { optionOf, type Config, type OptionName, type Origins } from "./options.ts";

type Loaded = { config: Config; origins: Origins };

/** Where objects are kept, from `ENGINE_OBJSTORE_*`, `ENGINE_LOCAL_MODE` and `ENGINE_LOCAL_DATA`. */
export type ObjectStoreSettings =
  | { kind: "local"; root: string }
  | {
      kind: "s3";
      bucket: string;
      region: string;
      /** Undefined: the cloud's own for the region. */
      endpoint: string | undefined;
      /** Undefined: the standard credential chain. */
      credentials: { accessKeyId: string; secretAccessKey: string } | undefined;
      pathStyle: boolean;
      allowHttp: boolean;
    };

/** The options of the S3 store. */
export const OBJECT_STORE_OPTIONS = [
  "objstoreEndpoint",
  "objstoreRegion",
  "objstoreBucket",
  "objstoreAccessKeyId",
  "objstoreSecretAccessKey",
  "objstorePathStyle",
  "objstoreAllowHttp",
] as const satisfies readonly OptionName[];

/** The first of them that somebody set, to whatever value. */
export function objectStoreOptionSet(origins: Loaded["origins"]): OptionName | undefined {
  return OBJECT_STORE_OPTIONS.find((name) => origins[name] !== "default");
}

/**
 * The store that the configuration selects: the local folder when `ENGINE_LOCAL_MODE` is on or no option of the S3
 * store is set anywhere, else the S3 store. Throws `StartupError` (exit code 2) for settings that contradict each
 * other.
 */
export function objectStoreSettings({ config, origins }: Loaded): ObjectStoreSettings {
  if (config.localMode || objectStoreOptionSet(origins) === undefined) return { kind: "local", root: config.localData };
  const { objstoreEndpoint: endpoint, objstoreAllowHttp: allowHttp } = config;
  if (!allowHttp && endpoint?.startsWith("http:") === true) {
    throw new StartupError(
      `${origins.objstoreEndpoint} is ${endpoint}, and ${origins.objstoreAllowHttp} forbids an object store without TLS: ` +
        "give an https endpoint, or allow plain HTTP",
      2,
    );
  }
  return {
    kind: "s3",
    bucket: config.objstoreBucket,
    region: config.objstoreRegion,
    endpoint,
    credentials: keyPair({ config, origins }),
    pathStyle: config.objstorePathStyle,
    allowHttp,
  };
}

function keyPair({ config, origins }: Loaded) {
  const { objstoreAccessKeyId: accessKeyId, objstoreSecretAccessKey: secretAccessKey } = config;
  if (accessKeyId !== undefined && secretAccessKey !== undefined) return { accessKeyId, secretAccessKey };
  if (accessKeyId === undefined && secretAccessKey === undefined) return undefined;
  const [given, missing]: [OptionName, OptionName] =
    accessKeyId === undefined
      ? ["objstoreSecretAccessKey", "objstoreAccessKeyId"]
      : ["objstoreAccessKeyId", "objstoreSecretAccessKey"];
  throw new StartupError(
    `${origins[given]} is set and ${optionOf(missing).env ?? missing} is not: set both keys of the object store, or ` +
      "neither to use the standard credential chain",
    2,
  );
}
