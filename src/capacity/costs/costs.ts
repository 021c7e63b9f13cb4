import { readFile } from "node:fs/promises";
import { z } from "zod";
import { messageOf } from "../../core/errors.ts";
import { machineSchema } from "../machine.ts";

/**
 * What a machine was seen to spend: the file that `npm run bench -- full` writes and `engine plan` reads. It holds observations, not
 * coefficients: what a request, a byte and a commit cost is fitted where it is used (`fit.ts`), so that the range in
 * which it was measured and how well the fit holds are known there.
 */
export const COSTS_SCHEMA = 1;

/** How the engine was run: one process on SQLite and its disk, or roles on PostgreSQL and an object store. */
export const DEPLOYMENTS = ["single", "sync", "staged"] as const;

/** Processes whose costs are told apart. `server` is the one process; the others are roles, and what they stand on. */
export const PARTS = ["server", "edge", "ingest", "committer", "compaction", "query", "postgres", "store"] as const;
export type CostPart = (typeof PARTS)[number];

/** Classes of queries, by what makes them cost. */
export const QUERY_CLASSES = ["point", "needle", "window", "group", "scan", "fresh"] as const;
export type QueryClass = (typeof QUERY_CLASSES)[number];

const count = z.int().nonnegative();
const amount = z.number().nonnegative();
const byPart = z.partialRecord(z.enum(PARTS), amount);
const latency = z.strictObject({ p50: amount, p99: amount });

/** One load of ingest, until its last row was acknowledged and, in staged mode, visible. */
const ingest = z.strictObject({
  deployment: z.enum(DEPLOYMENTS),
  /** Whether requests passed an edge. */
  viaEdge: z.boolean(),
  /** Name of the data. */
  shape: z.string().min(1),
  rows: count,
  /** NDJSON, with its line ends. */
  rawBytes: count,
  requests: count,
  /** Body bytes of one request, on average. */
  bodyBytes: amount,
  clients: count,
  tables: count,
  /** Requests a second that fell due; null where each client sent its next when it had its answer. */
  offeredPerSecond: amount.nullable(),
  seconds: amount,
  commits: count,
  /** Of tables, each with one or more of the requests; absent where it was not counted. */
  flushes: count.optional(),
  /** User and system CPU, all threads and children. */
  cpuSeconds: byPart,
  /** Of that, what the process's first thread took: it is the one that no second core helps. */
  mainThreadSeconds: byPart,
  /** Of the PostgreSQL log; null on SQLite. */
  walBytes: count.nullable(),
  /** By kind (`put`, `get`, …); empty without an object store. */
  storeRequests: z.record(z.string(), count),
  /** Bytes of extents as they were stored at first. */
  storedBytes: count,
  /** From when a request fell due (or was sent) to its acknowledgement, in ms. */
  latencyMs: latency,
  /** Most resident memory. */
  peakBytes: byPart,
});

/** All rows of a table merged until compaction finds nothing to do. */
const compaction = z.strictObject({
  shape: z.string().min(1),
  rows: count,
  /** As NDJSON. */
  rawBytes: count,
  storedBeforeBytes: count,
  storedAfterBytes: count,
  /** By all merges together. */
  writtenBytes: count,
  cpuSeconds: amount,
  peakBytes: count,
});

/** A loop of the catalog's commits. */
const commits = z.strictObject({
  catalog: z.enum(["sqlite", "postgres"]),
  writers: z.int().positive(),
  commits: count,
  seconds: amount,
  /** Of the process for SQLite, of the server for PostgreSQL. */
  cpuSeconds: amount,
  walBytes: count.nullable(),
});

const query = z.strictObject({
  class: z.enum(QUERY_CLASSES),
  /** Whether what it reads was in the node's cache. */
  isCached: z.boolean(),
  /** NDJSON bytes of the rows that its time range holds, whether or not statistics let it skip them. */
  rangeBytes: count,
  /** Queries that were run for this, one after the other. */
  queries: z.int().positive(),
  latencyMs: latency,
  /** Of one query, on average, server and query process. */
  cpuSeconds: amount,
  /** All that was resident in the query process. */
  peakBytes: count,
});

/** Bytes that the catalog's PostgreSQL keeps, with its indexes. */
const catalog = z.strictObject({ bytesPerExtent: amount, bytesPerKey: amount });

const memory = z.strictObject({
  /** Resident, of a process that has nothing to do, with its children. */
  idleBytes: byPart,
  /** Busy cores of the same; absent where it was not measured. */
  idleCores: byPart.optional(),
  /** Of an open connection without a request. */
  perConnectionBytes: amount,
  /** Beyond idle, per byte of bodies in flight. */
  perInFlightByte: amount,
});

const jobs = z.strictObject({
  catalog: z.enum(["sqlite", "postgres"]),
  claimers: z.int().positive(),
  jobs: count,
  seconds: amount,
  /** From enqueue to done, of the engine's process and of PostgreSQL. */
  cpuSeconds: amount,
});

const sandboxes = z.strictObject({
  /** From asking for one until its first command has ended, in ms. */
  startMs: latency,
  /** With what puts it away and prepares the next. */
  startCpuSeconds: amount,
  idleBytes: amount,
  eventsPerSecond: amount,
});

/** What cannot be measured on one machine, as whoever edits the file knows it. Marked as given in every plan. */
const given = z.strictObject({
  /** Of one PUT, GET of the object store, in ms. */
  storePutMs: amount.optional(),
  storeGetMs: amount.optional(),
  /** There and back between two nodes, in ms. */
  networkMs: amount.optional(),
  /** Of one node, in bits a second. */
  networkBitsPerSecond: amount.optional(),
  /** Commits a second that the catalog's PostgreSQL makes. */
  catalogCommitsPerSecond: amount.optional(),
  /** How much faster one core is than one of the machine that was measured. */
  coreSpeed: z.number().positive().optional(),
});

export const costsSchema = z.strictObject({
  schema: z.literal(COSTS_SCHEMA),
  /** Program whose costs they are. */
  version: z.string(),
  commit: z.string().nullable(),
  measuredAt: z.iso.datetime(),
  seed: z.int(),
  machine: machineSchema,
  ingest: z.array(ingest),
  compaction: z.array(compaction),
  commits: z.array(commits),
  /** Null where PostgreSQL could not be started. */
  catalog: catalog.nullable(),
  queries: z.array(query),
  memory,
  jobs: z.array(jobs),
  /** Null where sandboxes cannot run. */
  sandboxes: sandboxes.nullable(),
  given: given.default({}),
});
export type Costs = z.output<typeof costsSchema>;
export type IngestObservation = z.output<typeof ingest>;
export type QueryObservation = z.output<typeof query>;

/** Throws a sentence with the file, what is wrong with it, and what to do. */
export async function readCosts(path: string): Promise<Costs> {
  const found = await jsonOf(path);
  const schema = z.object({ schema: z.int() }).safeParse(found).data?.schema;
  if (schema !== undefined && schema > COSTS_SCHEMA) {
    throw new Error(`${path} is of schema ${schema}, this program reads up to ${COSTS_SCHEMA}: use the newer program`);
  }
  const parsed = costsSchema.safeParse(found);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const key = issue?.path.join(".") ?? "";
  throw new Error(`${path} is no file of costs: ${key === "" ? "" : `${key}: `}${issue?.message}; measure it again`);
}

async function jsonOf(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, "utf8"));
  } catch (error) {
    throw new Error(`cannot read the costs in ${path}: ${messageOf(error)}`, { cause: error });
  }
}
