import { join } from "node:path";
import { LIMITS } from "../core/limits.ts";
import { AUTH_OPTIONS } from "./auth-options.ts";
import { FABRIC_OPTIONS } from "./fabric-options.ts";
import * as kinds from "./kinds.ts";
import { OAUTH_OPTIONS } from "./oauth-options.ts";
import { derived, option, optional, type Option, type OptionRows } from "./option.ts";
import { TRANSPORT_OPTIONS } from "./transport-options.ts";

const MIB = 2 ** 20;
const GIB = 2 ** 30;
const TIB = 2 ** 40;
const DAY_MS = 86_400_000;
/** Most threads or processes of one kind; past this the machine, not the number, is the limit. */
const MAX_WORKERS = 64;

/**
 * Every option of the program, in one table.
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
    side: "S",
    doc:
      "Seconds that a stopping server goes on taking requests while `/health` says `draining`, so that edges and load " +
      "balancers send theirs elsewhere before any is refused. Part of ENGINE_DRAIN_TIMEOUT_SECS.",
  }),
  ...AUTH_OPTIONS,
  secretKey: optional({
    env: "ENGINE_SECRET_KEY",
    toml: "credentials.secret_key",
    kind: kinds.secretKey,
    whenUnset: "credentials cannot be stored, and variables of sandboxes are stored as they are",
    side: "S",
    secret: true,
    doc: "Key that seals credentials and environment variables of sandboxes: 32 random bytes in base64 (`openssl rand -base64 32`), the same on all nodes. Anything shorter is hashed, with a warning: for development only.",
  }),
  secretKeysFormer: option({
    env: "ENGINE_SECRET_KEYS_FORMER",
    toml: "credentials.secret_keys_former",
    kind: kinds.secretKeys,
    default: [],
    side: "S",
    secret: true,
    doc: "Keys that those may still be sealed with, until `engine credentials rotate` has sealed them for ENGINE_SECRET_KEY.",
  }),
  ...OAUTH_OPTIONS,
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
  schemaCacheTtlSecs: option({
    env: "ENGINE_SCHEMA_CACHE_TTL_SECS",
    toml: "catalog.schema_cache_ttl_secs",
    kind: kinds.integer({ min: 0, max: 86_400 }),
    default: 5,
    side: "S",
    doc: "Seconds that `GET /v1/catalog/schema` may be cached; 0 turns the cache off.",
  }),
  ingestMode: option({
    env: "ENGINE_INGEST_MODE",
    toml: "ingest.mode",
    kind: kinds.oneOf(["sync", "staged"]),
    default: "sync",
    side: "S",
    doc:
      "When ingest acknowledges: `sync` once the rows are visible; `staged` once they are durable in the object store, " +
      "with their commit left to the committer.",
  }),
  stagingDisabled: option({
    env: "ENGINE_STAGING_DISABLED",
    toml: "ingest.staging_disabled",
    kind: kinds.bool,
    default: false,
    side: "S",
    doc: "Turns group commit off: one extent per request.",
  }),
  flushMaxRows: option({
    env: "ENGINE_FLUSH_MAX_ROWS",
    toml: "ingest.flush_max_rows",
    kind: kinds.integer({ min: 1, max: 10_000_000 }),
    default: 8_000,
    side: "S",
    doc: "A table is flushed once this many rows have gathered.",
  }),
  flushMaxBytes: option({
    env: "ENGINE_FLUSH_MAX_BYTES",
    toml: "ingest.flush_max_bytes",
    kind: kinds.bytes({ min: 1_024, max: GIB }),
    default: 16 * MIB,
    side: "S",
    doc: "A table is flushed once this many bytes have gathered.",
  }),
  flushMaxAgeMs: option({
    env: "ENGINE_FLUSH_MAX_AGE_MS",
    toml: "ingest.flush_max_age_ms",
    kind: kinds.integer({ min: 0, max: 60_000 }),
    default: 50,
    side: "S",
    doc: "Milliseconds that a row waits at most for its flush to start.",
  }),
  commitWindowMs: option({
    env: "ENGINE_COMMIT_WINDOW_MS",
    toml: "ingest.commit_window_ms",
    kind: kinds.integer({ min: 0, max: 10_000 }),
    default: 5,
    side: "S",
    doc: "Flushes that finish within so many milliseconds land in one snapshot.",
  }),
  commitMaxExtents: option({
    env: "ENGINE_COMMIT_MAX_EXTENTS",
    toml: "ingest.commit_max_extents",
    kind: kinds.integer({ min: 1, max: 10_000 }),
    default: 128,
    side: "S",
    doc: "Most extents of one snapshot.",
  }),
  ingestInferTypes: option({
    env: "ENGINE_INGEST_INFER_TYPES",
    toml: "ingest.infer_types",
    kind: kinds.bool,
    default: false,
    side: "S",
    doc:
      "Whether new columns get types by their values, where neither the request (`X-Engine-Infer-Types`) nor the table " +
      "says; otherwise they are strings. Tables that a request creates keep what applied to it.",
  }),
  ingestMaxInflightBytes: option({
    env: "ENGINE_INGEST_MAX_INFLIGHT_BYTES",
    toml: "ingest.max_inflight_bytes",
    // The largest single body must be admissible.
    kind: kinds.bytes({ min: LIMITS.ingestBodyBytes, max: TIB }),
    default: 128 * MIB,
    side: "S",
    doc:
      "Bytes of bodies accepted and not yet acknowledged; past them ingest answers 429. " +
      "One database may hold half of them while others have bytes in flight or wait.",
  }),
  ingestRateRps: option({
    env: "ENGINE_INGEST_RATE_RPS",
    toml: "ingest.rate_rps",
    kind: kinds.integer({ min: 0, max: 1_000_000 }),
    default: 0,
    side: "S",
    doc: "Ingest requests per second and database, replays included; over the rate ingest answers 429. 0 sets no limit.",
  }),
  ingestRateBurst: derived({
    env: "ENGINE_INGEST_RATE_BURST",
    toml: "ingest.rate_burst",
    kind: kinds.integer({ min: 1, max: 2_000_000 }),
    defaultOf: ({ ingestRateRps }) => Math.max(1, 2 * ingestRateRps),
    defaultShown: "2 × ENGINE_INGEST_RATE_RPS",
    derivedFrom: "ingestRateRps",
    side: "S",
    doc: "Ingest requests that a database may send at once after it was quiet.",
  }),
  sealThreads: derived({
    env: "ENGINE_SEAL_THREADS",
    toml: "ingest.seal_threads",
    kind: kinds.integer({ min: 1, max: MAX_WORKERS }),
    defaultOf: ({ cores }) => Math.min(Math.max(cores, 1), MAX_WORKERS),
    defaultShown: `available cores, at most ${MAX_WORKERS}`,
    side: "S",
    doc: "Threads that parse bodies and write extents.",
  }),
  queryMemoryBytes: option({
    env: "ENGINE_QUERY_MEMORY_BYTES",
    toml: "query.memory_bytes",
    kind: kinds.bytes({ min: 1 * MIB, max: TIB }),
    default: 4 * GIB,
    side: "S",
    doc:
      "Memory of one query; what needs more spills to disk, and fails where it cannot. The default shrinks until the " +
      "query processes fit into 60 % of the memory of the machine or control group.",
  }),
  queryWallMs: option({
    env: "ENGINE_QUERY_WALL_MS",
    toml: "query.wall_ms",
    kind: kinds.integer({ min: 10, max: DAY_MS }),
    default: 300_000,
    side: "S",
    doc: "Milliseconds that one query may take.",
  }),
  queryObjectStoreBytes: option({
    env: "ENGINE_QUERY_OBJECT_STORE_BYTES",
    toml: "query.object_store_bytes",
    kind: kinds.bytes({ min: 0, max: 1024 * TIB }),
    default: 10 * GIB,
    side: "S",
    doc:
      "Bytes that one query may read from the object store. What the cache has is free; on a local store the columns " +
      "that the query reads count.",
  }),
  queryCacheBytes: option({
    env: "ENGINE_QUERY_CACHE_BYTES",
    toml: "query.cache_bytes",
    kind: kinds.bytes({ min: 0, max: 1024 * TIB }),
    default: 16 * GIB,
    side: "S",
    doc:
      "Disk for extents of a remote object store that stay here for later queries; 0 keeps none. What running queries " +
      "read may go past it. Not used on a local store.",
  }),
  queryCacheDir: derived({
    env: "ENGINE_QUERY_CACHE_DIR",
    toml: "query.cache_dir",
    kind: kinds.path,
    defaultOf: ({ home }) => join(home, "cache", "extents"),
    defaultShown: "$ENGINE_HOME/cache/extents",
    derivedFrom: "home",
    side: "S",
    doc: "Folder of that cache, for one server alone; everything in it may be deleted while the server is stopped.",
  }),
  queryMaxConcurrent: option({
    env: "ENGINE_QUERY_MAX_CONCURRENT",
    toml: "query.max_concurrent",
    kind: kinds.integer({ min: 0, max: 10_000 }),
    default: 0,
    side: "S",
    doc: "Queries in flight per node, excess answers 429; 0 sets no limit.",
  }),
  queryMaxConcurrentPerTenant: option({
    env: "ENGINE_QUERY_MAX_CONCURRENT_PER_TENANT",
    toml: "query.max_concurrent_per_tenant",
    kind: kinds.integer({ min: 0, max: 10_000 }),
    default: 0,
    side: "S",
    doc: "Queries in flight per tenant, which is a caller in a database; excess answers 429; 0 sets no limit.",
  }),
  queryRetryAfterSecs: option({
    env: "ENGINE_QUERY_RETRY_AFTER_SECS",
    toml: "query.retry_after_secs",
    kind: kinds.integer({ min: 1, max: 3_600 }),
    default: 1,
    side: "S",
    doc: "`Retry-After`, in seconds, of a rejected query.",
  }),
  querySlowMs: option({
    env: "ENGINE_QUERY_SLOW_MS",
    toml: "query.slow_ms",
    kind: kinds.integer({ min: 0, max: DAY_MS }),
    default: 1_000,
    side: "S",
    doc: "Queries that take at least that many milliseconds are logged with where the time went; 0 logs none.",
  }),
  queryConfinement: option({
    env: "ENGINE_QUERY_CONFINEMENT",
    toml: "query.confinement",
    kind: kinds.oneOf(["auto", "required", "off"]),
    default: "auto",
    side: "S",
    doc:
      "Whether the operating system closes all files, the network and other processes to processes that run queries or " +
      "read dropped files (Landlock and seccomp, on Linux, with perl): `auto` where it can, `required` or the server does not start, `off`.",
  }),
  queryWorkers: option({
    env: "ENGINE_QUERY_WORKERS",
    toml: "query.workers",
    kind: kinds.integer({ min: 1, max: MAX_WORKERS }),
    default: 2,
    side: "S",
    doc:
      "Query processes that are kept warm. A few more are started, as far as memory goes, while long queries occupy " +
      "those; one process is always left to short queries.",
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
  ...FABRIC_OPTIONS,
  serverUrl: optional({
    env: "ENGINE_SERVER_URL",
    toml: "client.server_url",
    flag: "--server",
    kind: kinds.baseUrl,
    whenUnset: "the address saved by `engine connect`, else http://127.0.0.1:7777",
    side: "C",
    doc: "Server that the client commands talk to.",
  }),
  ingestVerbose: option({
    env: "ENGINE_INGEST_VERBOSE",
    toml: "client.ingest_verbose",
    kind: kinds.bool,
    default: false,
    side: "C",
    doc: "Has `engine ingest push` say on standard error what became of each of its requests.",
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

/** The value of every option. */
export type Config = {
  readonly [K in OptionName]: (typeof OPTIONS)[K] extends Option<infer T> ? T : never;
};

export const OPTION_NAMES = Object.keys(OPTIONS) as OptionName[];

/** The table with the options of features behind it. Throws for a name, a variable or a key that is taken. */
export function withRows(rows: OptionRows): OptionRows {
  const taken = new Set(Object.entries(OPTIONS).flatMap(([name, { env, toml }]) => [name, env, toml]));
  for (const [name, { env, toml }] of Object.entries(rows)) {
    for (const word of [name, env, toml]) {
      if (word !== undefined && taken.has(word)) throw new Error(`two options are called ${word}`);
      taken.add(word);
    }
  }
  return { ...OPTIONS, ...rows };
}

/** An option whose value type does not matter to the caller. */
export function optionOf(name: OptionName): Option<unknown> {
  return OPTIONS[name];
}
