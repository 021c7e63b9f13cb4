import { join } from "node:path";
import * as kinds from "../config/kinds.ts";
import { derived, option } from "../config/option.ts";

const MIB = 2 ** 20;
const GIB = 2 ** 30;
const TIB = 2 ** 40;
const DAY_MS = 86_400_000;
/** Past this the machine, not the number, is the limit. */
const MAX_WORKERS = 64;

/** The options of queries: their limits, their processes, and the cache of extents. */
export const QUERY_OPTIONS = {
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
      "read dropped files (Landlock and seccomp, on Linux, with perl): `auto` where it can, `required` or the server does " +
      "not start, `off`.",
  }),
  queryWorkers: option({
    env: "ENGINE_QUERY_WORKERS",
    toml: "query.workers",
    kind: kinds.integer({ min: 1, max: MAX_WORKERS }),
    default: 2,
    side: "S",
    doc:
      "Query processes that are kept warm; until the first query comes, only one is. A few more are started, as far as " +
      "memory goes, while long queries occupy those; one process is always left to short queries.",
  }),
  kqlWarm: option({
    env: "ENGINE_KQL_WARM",
    toml: "query.kql_warm",
    kind: kinds.bool,
    default: false,
    side: "S",
    doc:
      "Whether the process that translates KQL starts with the server. Otherwise the first query in KQL starts it, and " +
      "waits for it.",
  }),
  schemaCacheTtlSecs: option({
    env: "ENGINE_SCHEMA_CACHE_TTL_SECS",
    toml: "catalog.schema_cache_ttl_secs",
    kind: kinds.integer({ min: 0, max: 86_400 }),
    default: 5,
    side: "S",
    doc: "Seconds that `GET /v1/catalog/schema` may be cached; 0 turns the cache off.",
  }),
} as const;
