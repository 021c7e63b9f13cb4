import { join } from "node:path";
import * as kinds from "./kinds.ts";
import { derived, notAbove, option, optional, type Option, type OptionRows } from "./option.ts";
import { variablesOf } from "./secret-file.ts";
import { TRANSPORT_OPTIONS } from "./transport-options.ts";

/**
 * The options that belong to no feature; those of features come behind them (`withRows`).
 *
 * An option may be set in four places; later ones win: its default, the TOML file, the environment, a flag of the
 * command line. `load.ts` reads them, `docs/configuration.md` is printed from here, and `Config` takes its type from
 * here. A row is added with the code that obeys it: an option that does nothing is a lie.
 *
 * Rows are resolved in order, so a default may depend on options above it.
 */
export const OPTIONS = {
  configFile: optional({
    env: "ENGINE_CONFIG",
    flag: "--config",
    kind: kinds.path,
    whenUnset: "no file is read",
    side: "SC",
    doc: "TOML file with any of the options of this table.",
  }),
  home: derived({
    env: "ENGINE_HOME",
    toml: "storage.home",
    kind: kinds.path,
    defaultOf: ({ userHome }) => join(userHome, ".engine"),
    defaultShown: "~/.engine",
    side: "SC",
    doc: "Folder of the local engine: its catalog, its data and the saved client settings.",
  }),
  runtimeDir: optional({
    env: "ENGINE_RUNTIME_DIR",
    kind: kinds.path,
    whenUnset: "`$XDG_CACHE_HOME/engine`, else `~/.cache/engine`; where that cannot be written, `$ENGINE_HOME`",
    side: "SC",
    doc: "Folder that the single file unpacks itself into, in a folder of the user's own (see [releases](releases.md)). It must be on a file system that runs programs. Read before all other options, so from the environment only.",
  }),
  localDb: derived({
    env: "ENGINE_LOCAL_DB",
    toml: "storage.local_db",
    kind: kinds.path,
    defaultOf: ({ home }) => join(home, "catalog.db"),
    defaultShown: "$ENGINE_HOME/catalog.db",
    derivedFrom: "home",
    side: "SC",
    doc: "Catalog file of the local engine.",
  }),
  localData: derived({
    env: "ENGINE_LOCAL_DATA",
    toml: "storage.local_data",
    kind: kinds.path,
    defaultOf: ({ home }) => join(home, "data"),
    defaultShown: "$ENGINE_HOME/data",
    derivedFrom: "home",
    side: "S",
    doc: "Root folder of the local object store.",
  }),
  catalogUrl: derived({
    env: "ENGINE_CATALOG_URL",
    toml: "catalog.url",
    flag: "--catalog-url",
    kind: kinds.catalogUrl,
    defaultOf: ({ localDb }) => ({ kind: "sqlite" as const, path: localDb }),
    defaultShown: "sqlite:$ENGINE_LOCAL_DB",
    derivedFrom: "localDb",
    side: "SC",
    secret: true,
    doc: "Catalog: a SQLite file, or a database of a PostgreSQL server that all nodes share. TLS by the URL's parameters as for libpq: `sslmode`, `sslrootcert`, `sslcert`, `sslkey`.",
  }),
  catalogMaxConns: option({
    env: "ENGINE_CATALOG_MAX_CONNS",
    toml: "catalog.max_conns",
    kind: kinds.integer({ min: 1, max: 1_000 }),
    default: 16,
    side: "S",
    doc: "Connections that a node opens to a PostgreSQL catalog, at most.",
  }),
  catalogAcquireTimeoutSecs: option({
    env: "ENGINE_CATALOG_ACQUIRE_TIMEOUT_SECS",
    toml: "catalog.acquire_timeout_secs",
    kind: kinds.integer({ min: 1, max: 3_600 }),
    default: 10,
    side: "S",
    doc: "Seconds that a request waits for a connection to a PostgreSQL catalog, be they all in use or the server away; then it fails with `unavailable`.",
  }),
  roles: option({
    env: "ENGINE_ROLES",
    toml: "server.roles",
    kind: kinds.roles,
    default: ["all_in_one"],
    side: "S",
    doc:
      "What this server is: everything, or parts of a cluster, which share a PostgreSQL catalog. A name that is no role " +
      "gets a warning and runs everything.",
  }),
  queryPeers: optional({
    env: "ENGINE_QUERY_PEERS",
    toml: "server.query_peers",
    kind: kinds.peerUrls,
    whenUnset: "an edge answers queries itself",
    side: "S",
    doc:
      "Servers to which the role `edge` forwards queries and reads of the catalog; an array in TOML. Each address of a " +
      "DNS name is a peer of its own, and names are looked up again every few seconds.",
  }),
  ingestPeers: optional({
    env: "ENGINE_INGEST_PEERS",
    toml: "server.ingest_peers",
    kind: kinds.peerUrls,
    whenUnset: "an edge ingests itself",
    side: "S",
    doc: "Servers to which the role `edge` forwards ingest and the administration of tables; as above.",
  }),
  serverPort: optional({
    toml: "server.port",
    kind: kinds.integer({ min: 0, max: 65_535 }),
    whenUnset: "8080; of `engine serve` 7777",
    side: "SC",
    doc: "Port of `engine server`, and of `engine serve`, where the address is not set as a whole.",
  }),
  httpAddr: derived({
    env: "ENGINE_HTTP_ADDR",
    toml: "server.http_addr",
    flag: "--addr",
    kind: kinds.address,
    defaultOf: ({ serverPort = 8080 }) => ({ host: "0.0.0.0", port: serverPort }),
    defaultShown: "0.0.0.0:8080",
    derivedFrom: "serverPort",
    side: "S",
    doc: "Address on which `engine server` listens. Port 0 lets the system choose.",
  }),
  advertiseUrl: optional({
    env: "ENGINE_ADVERTISE_URL",
    toml: "server.advertise_url",
    kind: kinds.baseUrl,
    whenUnset: "the address that the server listens on, by the host's name where that is all of them",
    side: "S",
    doc:
      "Where other servers on the catalog reach this one, for what is asked of all of them: the queries that run. It is " +
      "the address of this process, not of a load balancer.",
  }),
  localHttpAddr: derived({
    env: "ENGINE_LOCAL_HTTP_ADDR",
    toml: "server.local_http_addr",
    flag: "--addr",
    kind: kinds.address,
    defaultOf: ({ serverPort = 7777 }) => ({ host: "127.0.0.1", port: serverPort }),
    defaultShown: "127.0.0.1:7777",
    derivedFrom: "serverPort",
    side: "C",
    doc: "Address on which `engine serve` listens. Port 0 lets the system choose.",
  }),
  httpDriver: option({
    env: "ENGINE_HTTP_DRIVER",
    toml: "server.http_driver",
    kind: kinds.oneOf(["auto", "uws", "node"]),
    default: "auto",
    side: "S",
    doc:
      "HTTP implementation: `node` (node:http), which `auto` takes too, or `uws` (uWebSockets.js), which reads HTTP loosely " +
      "and listens on loopback only; see [operations](operations.md#http).",
  }),
  httpKeepAliveSecs: option({
    env: "ENGINE_HTTP_KEEP_ALIVE_SECS",
    toml: "server.http_keep_alive_secs",
    // More than an edge keeps its connections to peers for.
    kind: kinds.integer({ min: 5, max: 7_200 }),
    default: 75,
    side: "S",
    doc:
      "Seconds that a connection may wait for its next request. It must be more than the idle time of a load balancer in " +
      "front (60 for most): one that sends a request on a connection that the server is just closing answers 502.",
  }),
  drainTimeoutSecs: option({
    env: "ENGINE_DRAIN_TIMEOUT_SECS",
    toml: "server.drain_timeout_secs",
    kind: kinds.integer({ min: 0, max: 3_600 }),
    default: 30,
    side: "SC",
    doc: "Seconds that a stopping server gives to the requests in flight, and a stopping node to its jobs.",
  }),
  drainNoticeSecs: optional({
    env: "ENGINE_DRAIN_NOTICE_SECS",
    toml: "server.drain_notice_secs",
    kind: kinds.integer({ min: 0, max: 3_600 }),
    whenUnset: "0 for `all_in_one`, 5 for other roles (at most half of ENGINE_DRAIN_TIMEOUT_SECS)",
    relation: notAbove("drainTimeoutSecs"),
    side: "S",
    doc:
      "Seconds that a stopping server goes on taking requests while `/health` says `draining`, so that edges and load " +
      "balancers send theirs elsewhere before any is refused. Part of ENGINE_DRAIN_TIMEOUT_SECS.",
  }),
  ...TRANSPORT_OPTIONS,
  logLevel: option({
    env: "ENGINE_LOG_LEVEL",
    toml: "log.level",
    kind: kinds.oneOf(["trace", "debug", "info", "warn", "error", "fatal", "silent"]),
    default: "info",
    side: "SC",
    doc: "Least severe level that is logged.",
  }),
  pathPrefix: option({
    env: "ENGINE_PATH_PREFIX",
    toml: "storage.path_prefix",
    kind: kinds.keyPrefix,
    default: "engine",
    side: "S",
    doc: "Prefix of every object key.",
  }),
  localMode: option({
    env: "ENGINE_LOCAL_MODE",
    toml: "storage.local_mode",
    kind: kinds.bool,
    default: false,
    side: "SC",
    doc:
      "Keeps objects in the local folder whatever ENGINE_OBJSTORE_… says. That folder is used too when none of those " +
      "options is set; any one of them selects the S3 store.",
  }),
  objstoreEndpoint: optional({
    env: "ENGINE_OBJSTORE_ENDPOINT",
    toml: "objstore.endpoint",
    kind: kinds.baseUrl,
    whenUnset: "the cloud's own for the region",
    side: "S",
    doc: "Address of the S3 store.",
  }),
  objstoreRegion: option({
    env: "ENGINE_OBJSTORE_REGION",
    toml: "objstore.region",
    kind: kinds.regionName,
    default: "us-east-1",
    side: "S",
    doc: "Region of the bucket.",
  }),
  objstoreBucket: option({
    env: "ENGINE_OBJSTORE_BUCKET",
    toml: "objstore.bucket",
    kind: kinds.bucketName,
    default: "engine",
    side: "S",
    doc: "Bucket; it must exist.",
  }),
  objstoreAccessKeyId: optional({
    env: "ENGINE_OBJSTORE_ACCESS_KEY_ID",
    toml: "objstore.access_key_id",
    kind: kinds.accessKeyId,
    whenUnset: "the standard credential chain",
    side: "S",
    doc:
      "Access key. Unset together with the secret key, credentials come from where AWS tools look for them: AWS_… " +
      "variables, profile files, web identity, the container or the machine.",
  }),
  objstoreSecretAccessKey: optional({
    env: "ENGINE_OBJSTORE_SECRET_ACCESS_KEY",
    toml: "objstore.secret_access_key",
    kind: kinds.secretAccessKey,
    whenUnset: "the standard credential chain",
    side: "S",
    secret: true,
    doc: "Secret key; set both keys or neither.",
  }),
  objstorePathStyle: option({
    env: "ENGINE_OBJSTORE_PATH_STYLE",
    toml: "objstore.path_style",
    kind: kinds.bool,
    default: true,
    side: "S",
    doc: "Names the bucket in the path of requests; `false` names it in the host.",
  }),
  objstoreAllowHttp: option({
    env: "ENGINE_OBJSTORE_ALLOW_HTTP",
    toml: "objstore.allow_http",
    kind: kinds.bool,
    default: true,
    side: "S",
    doc: "Allows an endpoint without TLS; `false` refuses it at the start.",
  }),
  writeFormat: option({
    env: "ENGINE_WRITE_FORMAT",
    toml: "storage.write_format",
    kind: kinds.oneOf(["tlm", "parquet"]),
    default: "tlm",
    side: "S",
    doc:
      "Format of the extents that ingest writes: `tlm` (Arrow IPC) or `parquet`. Extents of both are always readable. " +
      "Compaction writes Parquet in either case; with `parquet` it migrates what is left in `tlm`, too.",
  }),
  parquetEncodings: option({
    env: "ENGINE_PARQUET_ENCODINGS",
    toml: "storage.parquet_encodings",
    kind: kinds.oneOf(["v2", "plain"]),
    default: "v2",
    side: "S",
    doc:
      "How new Parquet extents hold columns without a dictionary: `v2` by the encodings of Parquet 2, which make files " +
      "smaller and their reading faster; `plain` by those of Parquet 1, for programs that read no others.",
  }),
  artifactGcPollSecs: option({
    env: "ENGINE_ARTIFACT_GC_POLL_SECS",
    toml: "retention.artifact_gc_poll_secs",
    kind: kinds.integer({ min: 1, max: 86_400 }),
    default: 300,
    side: "S",
    doc:
      "Seconds between two searches for what has expired: results of exports, finished jobs with their results and logs, " +
      "and the layers of deleted images.",
  }),
  artifactGcGraceSecs: option({
    env: "ENGINE_ARTIFACT_GC_GRACE_SECS",
    toml: "retention.artifact_gc_grace_secs",
    kind: kinds.integer({ min: 60, max: 315_360_000 }),
    default: 21_600,
    side: "S",
    doc:
      "Seconds from when something expires until it is deleted: results of exports, finished jobs with their results and " +
      "logs, events of sandboxes, and the layers of deleted images. Whoever began to fetch something just before has that " +
      "long to finish.",
  }),
  serverUrl: optional({
    env: "ENGINE_SERVER_URL",
    toml: "client.server_url",
    flag: "--server",
    kind: kinds.baseUrl,
    whenUnset: "the address saved by `engine connect`, else http://127.0.0.1:7777",
    side: "C",
    doc: "Server that the client commands talk to.",
  }),
  token: optional({
    env: "ENGINE_TOKEN",
    toml: "client.token",
    flag: "--token",
    kind: kinds.bearerToken,
    whenUnset: "the token saved by `engine connect` for that server",
    side: "C",
    secret: true,
    doc: "Bearer token of the client commands.",
  }),
} as const;

export type OptionName = keyof typeof OPTIONS;

/** The values of these options; those of a feature by `valuesOf`. */
export type Config = {
  readonly [K in OptionName]: (typeof OPTIONS)[K] extends Option<infer T> ? T : never;
};

/** What set each option: `default`, a variable, a flag, or a key and its file. Features have theirs among them. */
export type Origins = Readonly<Record<OptionName, string>> & Readonly<Record<string, string | undefined>>;

export const OPTION_NAMES = Object.keys(OPTIONS) as OptionName[];

/** The table with the options of features behind it. Throws for a name, a variable or a key that is taken. */
export function withRows(rows: OptionRows): OptionRows {
  const taken = new Set(Object.entries(OPTIONS).flatMap(wordsOf));
  for (const row of Object.entries(rows)) {
    for (const word of wordsOf(row)) {
      if (word !== undefined && taken.has(word)) throw new Error(`two options are called ${word}`);
      taken.add(word);
    }
  }
  return { ...OPTIONS, ...rows };
}

/** What an option is called: by its value, its variables and its key. */
function wordsOf([name, option]: readonly [string, Option<unknown>]): readonly (string | undefined)[] {
  return [name, option.toml, ...variablesOf(option)];
}

/** An option whose value type does not matter to the caller. */
export function optionOf(name: OptionName): Option<unknown> {
  return OPTIONS[name];
}
