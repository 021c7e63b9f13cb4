import * as kinds from "../config/kinds.ts";
import { derived, notAbove, option } from "../config/option.ts";
import { LIMITS } from "../core/limits.ts";

const MIB = 2 ** 20;
const GIB = 2 ** 30;
const TIB = 2 ** 40;
/** Past this the machine, not the number, is the limit. */
const MAX_SEAL_THREADS = 64;

/** The options of taking rows: batches, commits, and what is admitted. */
export const INGEST_OPTIONS = {
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
    // Else a flush would wait for bytes that admission never lets in.
    relation: notAbove("ingestMaxInflightBytes"),
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
    defaultOf: ({ values }) => Math.max(1, 2 * (values["ingestRateRps"] as number)),
    defaultShown: "2 × ENGINE_INGEST_RATE_RPS",
    derivedFrom: "ingestRateRps",
    side: "S",
    doc: "Ingest requests that a database may send at once after it was quiet.",
  }),
  sealThreads: derived({
    env: "ENGINE_SEAL_THREADS",
    toml: "ingest.seal_threads",
    kind: kinds.integer({ min: 1, max: MAX_SEAL_THREADS }),
    defaultOf: ({ cores }) => Math.min(Math.max(cores, 1), MAX_SEAL_THREADS),
    defaultShown: `available cores, at most ${MAX_SEAL_THREADS}`,
    side: "S",
    doc: "Threads that parse bodies and write extents.",
  }),
  ingestVerbose: option({
    env: "ENGINE_INGEST_VERBOSE",
    toml: "client.ingest_verbose",
    kind: kinds.bool,
    default: false,
    side: "C",
    doc: "Has `engine ingest push` say on standard error what became of each of its requests.",
  }),
} as const;
