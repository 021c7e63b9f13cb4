import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { CostPart, Costs, IngestObservation, QueryObservation } from "../../src/capacity/costs/costs.ts";
import { systemCodeOf } from "../../src/core/errors.ts";
import { sleep, systemClock } from "../../src/core/clock.ts";
import { lacking } from "../../src/core/capabilities.test-kit.ts";
import { settle } from "../load/settle.ts";
import type { BenchCluster, Part } from "../support/bench-cluster.ts";
import { startBenchServer } from "../support/server.ts";
import { catalogSizeOf } from "./catalog-size.ts";
import { withPostgres } from "./catalogs.ts";
import { measureCommits, type CommitsObservation } from "./commits.ts";
import { sendOnce } from "./compaction.ts";
import { observeIngest } from "./ingest-load.ts";
import type { IngestTarget } from "./ingest-target.ts";
import { BODIES, sizesOf, type BodiesName } from "./ingest.ts";
import { measureJobs, type JobsObservation } from "./jobs.ts";
import { idleBytesOf, idleCoresOf } from "./memory.ts";
import { measuredRun, settled, type LoadRun } from "./noise.ts";
import { observeQueries, type QueryTarget } from "./queries.ts";
import { writeRows, type RowsFile } from "./rows-file.ts";
import type { StepContext } from "./step.ts";

type Mode = "sync" | "staged";

/** Everything that only a cluster shows beside what ingest costs in it. */
export type SyncFindings = {
  ingest: IngestObservation[];
  commits: CommitsObservation[];
  jobs: JobsObservation[];
  queries: QueryObservation[];
  idleBytes: Partial<Record<CostPart, number>>;
  idleCores: Partial<Record<CostPart, number>>;
  catalog: Costs["catalog"];
};

/** What else queries are asked about: rows of logs, most of which are to be compacted. */
export type QueriedRows = { compacted: RowsFile; fresh: RowsFile };

/** Nothing of it merges by itself, and query nodes are as a user starts them. */
const QUIET = { ENGINE_COMPACTION_POLL_SECS: "0", ENGINE_QUERY_WORKERS: "2" };
const PART_OF: Readonly<Record<Part, CostPart>> = {
  edge: "edge",
  ingest: "ingest",
  committer: "committer",
  compaction: "compaction",
  query: "query",
  postgres: "postgres",
  s3: "store",
};
/** Processes that have a part in ingest. */
const WORKS: Readonly<Record<Mode, readonly CostPart[]>> = {
  sync: ["ingest", "postgres", "store"],
  staged: ["ingest", "committer", "postgres", "store"],
};
const IDLE_AFTER_MS = 1_000;

/** Why no cluster can be started here, in a sentence; undefined where one can. */
export async function whyNoCluster(): Promise<string | undefined> {
  try {
    await import("../support/bench-cluster.ts");
  } catch (error) {
    if (systemCodeOf(error) !== "ERR_MODULE_NOT_FOUND") throw error;
    return "what starts a cluster is not part of a release: measure from the sources";
  }
  return lacking("PostgreSQL", "S3 server", "ps");
}

export async function measureSyncCluster(context: StepContext, rows: QueriedRows): Promise<SyncFindings> {
  return await withCluster("sync", async (cluster) => {
    await sleep(systemClock, IDLE_AFTER_MS);
    const parts = new Map([...cluster.pids].map(([part, pid]) => [PART_OF[part], pid]));
    const idleCores = await idleCoresOf(parts, context);
    const idleBytes = Object.fromEntries([...cluster.pids].map(([part, pid]) => [PART_OF[part], idleBytesOf(pid)]));
    // Before anything else works for the database.
    const { commits, jobs } = await withPostgres(cluster, "measured", async (on) => ({
      commits: await measureCommits(context, on),
      jobs: await measureJobs(context, on),
    }));
    const ingest = await ingestOf(cluster, "sync", context);
    const catalog = await catalogSizeOf(cluster.local.catalogUrl);
    return { idleBytes, idleCores, commits, jobs, ingest, catalog, queries: await queriesOf(cluster, rows, context) };
  });
}

export async function measureStagedCluster(context: StepContext): Promise<IngestObservation[]> {
  return await withCluster("staged", (cluster) => ingestOf(cluster, "staged", context));
}

async function withCluster<T>(mode: Mode, task: (cluster: BenchCluster) => Promise<T>): Promise<T> {
  const { startBenchCluster } = await import("../support/bench-cluster.ts");
  const cluster = await startBenchCluster({ mode, compaction: mode === "sync", env: QUIET });
  try {
    return await task(cluster);
  } finally {
    await cluster.stop();
  }
}

type Way = { viaEdge: boolean; bodies: readonly BodiesName[] };

/** Some of them twice, for how much they differ. */
const FULL: readonly Way[] = [
  { viaEdge: false, bodies: ["lone", "rows1", "kib64", "mib", "kib64"] },
  { viaEdge: true, bodies: ["rows1", "kib64", "mib"] },
];
const BRIEF: readonly Way[] = [
  { viaEdge: false, bodies: ["kib64"] },
  { viaEdge: true, bodies: ["kib64"] },
];

const WARM_UP: readonly BodiesName[] = ["rows1", "kib64"];

async function ingestOf(cluster: BenchCluster, mode: Mode, context: StepContext): Promise<IngestObservation[]> {
  const { rowsBytes, ...times } = sizesOf(context);
  const { folder, seed, signal, brief } = context;
  const data = await writeRows(folder, { name: `ingest-${mode}`, shape: "logs", sizeBytes: rowsBytes, seed });
  const runs: LoadRun[] = [];
  // As with one process: first seconds cost more, and are not counted.
  for (const name of brief ? [] : WARM_UP) {
    const load = { name: `warm_${name}`, data, ...BODIES[name], tables: 1, ...times };
    await observeIngest(targetIn(cluster, mode, true), load);
  }
  for (const { viaEdge, bodies } of brief ? BRIEF : FULL) {
    const target = targetIn(cluster, mode, viaEdge);
    for (const [i, name] of bodies.entries()) {
      signal.throwIfAborted();
      const measure = (own: string) => observeIngest(target, { name: own, data, ...BODIES[name], tables: 1, ...times });
      runs.push(await measuredRun(`${viaEdge ? "edge" : "direct"}_${name}_${i}`, measure));
    }
  }
  const observations = await settled(runs);
  await rm(data.path);
  return observations;
}

/** How often a cluster is asked whether rows are visible. */
const LOOK_MS = 50;
const VISIBLE_WITHIN_MS = 60_000;

function targetIn(cluster: BenchCluster, mode: Mode, viaEdge: boolean): IngestTarget {
  const works = new Set(viaEdge ? [...WORKS[mode], "edge"] : WORKS[mode]);
  const pids = [...cluster.pids].map(([part, pid]) => [PART_OF[part], pid] as const);
  return {
    deployment: mode,
    viaEdge,
    url: viaEdge ? cluster.edgeUrl : cluster.ingestUrl,
    queryUrl: cluster.edgeUrl,
    urls: [...cluster.local.urls.values()],
    pids: new Map(pids.filter(([part]) => works.has(part))),
    walBytes: async () => (await cluster.counts()).walBytes,
    createTable: (name, { columns }) => cluster.createTable(name, columns),
    untilVisible: async (tables, requests) => {
      // Visible when they were acknowledged.
      if (mode === "sync") return;
      const untilMs = performance.now() + VISIBLE_WITHIN_MS;
      while ((await committedTo(cluster, tables)) < requests) {
        if (performance.now() > untilMs)
          throw new Error(`not all requests to ${tables.join(", ")} were committed in time`);
        await sleep(systemClock, LOOK_MS);
      }
    },
  };
}

async function committedTo(cluster: BenchCluster, tables: readonly string[]): Promise<number> {
  let requests = 0;
  for (const table of tables) requests += await cluster.committedKeys(table);
  return requests;
}

/** By two query nodes over the same tables: one that has read everything before, and one that keeps nothing. */
async function queriesOf(
  cluster: BenchCluster,
  { compacted, fresh }: QueriedRows,
  context: StepContext,
): Promise<QueryObservation[]> {
  const tables = { compacted: { table: "queried", data: compacted }, fresh: { table: "fresh", data: fresh } };
  await cluster.createTable("queried", compacted.columns);
  await sendOnce(cluster.ingestUrl, "queried", compacted);
  const { catalogUrl, store } = cluster.local;
  const tempDir = join(context.folder, "settle");
  await settle({ place: { kind: "cluster", catalogUrl, store }, tempDir, table: "queried" });
  await cluster.createTable("fresh", fresh.columns);
  await sendOnce(cluster.ingestUrl, "fresh", fresh);
  const observations: QueryObservation[] = [];
  for (const isCached of [true, false]) {
    context.signal.throwIfAborted();
    observations.push(...(await askNode(cluster, { tables, isCached, context })));
  }
  return observations;
}

type NodeOptions = { tables: Pick<QueryTarget, "compacted" | "fresh">; isCached: boolean; context: StepContext };

async function askNode(
  { local: { catalogUrl, store } }: BenchCluster,
  { tables, isCached, context }: NodeOptions,
): Promise<QueryObservation[]> {
  const home = join(context.folder, `query-node-${isCached ? "cached" : "not-cached"}`);
  await mkdir(home, { recursive: true });
  const node = await startBenchServer({
    home,
    env: {
      ENGINE_ROLES: "query",
      ENGINE_CATALOG_URL: catalogUrl,
      ENGINE_OBJSTORE_ENDPOINT: store.endpoint ?? "",
      ENGINE_OBJSTORE_REGION: store.region,
      ENGINE_OBJSTORE_BUCKET: store.bucket,
      ENGINE_OBJSTORE_ACCESS_KEY_ID: store.credentials?.accessKeyId ?? "",
      ENGINE_OBJSTORE_SECRET_ACCESS_KEY: store.credentials?.secretAccessKey ?? "",
      ENGINE_OBJSTORE_ALLOW_HTTP: "true",
      ...(isCached ? {} : { ENGINE_QUERY_CACHE_BYTES: "0" }),
    },
  });
  try {
    return await observeQueries({ url: node.url, pid: node.pid, ...tables }, isCached, context);
  } finally {
    await node.stop();
    await rm(home, { recursive: true, force: true });
  }
}
