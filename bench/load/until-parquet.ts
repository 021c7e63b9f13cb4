import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import type { Catalog } from "../../src/catalog/catalog.ts";
import { sleep, systemClock } from "../../src/core/clock.ts";
import { installPeers } from "../peers/install.ts";
import { startInProcessPeer, type PeerName } from "../peers/peer.ts";
import { defineBenchmark, type Side as MeasuredSide } from "../suite/benchmark.ts";
import { mustAgree } from "../support/answers.ts";
import { startBenchCluster, type ByPart, type ClusterCounts } from "../support/bench-cluster.ts";
import { answersByBody } from "../support/body-answers.ts";
import { withCatalog } from "../support/catalog.ts";
import { DATASET_NAMES, requiredDataset, writeDataset, type DataFile } from "../support/data-file.ts";
import { runIngest } from "../support/ingest-run.ts";
import { MIB } from "../support/report.ts";
import { byLabel, scrape } from "../support/scrape.ts";
import { startBenchServer } from "../support/server.ts";
import { runClusterLoad } from "./cluster-run.ts";
import { settle } from "./settle.ts";

export const benchmark = defineBenchmark({
  name: "load/until-parquet",
  question:
    "The same NDJSON until every row of it is in Parquet, here ingested over HTTP in keyed bodies from 4 clients, " +
    "committed, and compacted; there loaded by DuckDB into a Parquet file, by DuckDB into a table of its own, and by " +
    "ClickHouse (chDB): who needs how much CPU?",
  notMeasured:
    "Time: compaction waits until a day is quiet. What it leaves in tlm is merged by a process whose clock is ahead. The " +
    "peers get the file directly: they pay for no HTTP, no small bodies and no keys.",
  options: z.strictObject({
    data: z.enum(DATASET_NAMES).default("logs").describe(DATASET_NAMES.join(", ")),
    rows: z.coerce.number().int().positive().default(1_000_000).describe("in one round"),
    warmUpMs: z.coerce
      .number()
      .int()
      .positive()
      .default(2_000)
      .describe("that each round's fresh server takes the same rows into another table before"),
    bytes: z.coerce.number().int().positive().default(MIB).describe("of one body"),
    format: z.enum(["tlm", "parquet"]).default("tlm").describe("that ingest writes: tlm, parquet"),
    chdb: z.stringbool().default(true).describe("false leaves it out; it is a package of 550 MB"),
    cluster: z.stringbool().default(false).describe("true adds a cluster in sync mode; PostgreSQL and S3 are needed"),
  }),
  measures: {
    cpu: { unit: "MB/CPU-s", better: "more", doc: "per CPU second, until every row is in Parquet" },
    acknowledged: { unit: "CPU s", better: "less", doc: "until the last acknowledgement" },
    idle: { unit: "CPU s", better: "less", doc: "until compaction finds nothing more to do by itself" },
    parquet: { unit: "CPU s", better: "less", doc: "until every row is in Parquet" },
    stores: { unit: "CPU s", better: "less", doc: "of a cluster's PostgreSQL and S3 server, until then" },
    requests: { unit: "requests/GB", better: "less", doc: "of a cluster to its S3 store, until compaction is idle" },
    stored: { unit: "MB/GB", better: "less", doc: "sent by a cluster to its S3 store, until compaction is idle" },
    disk: { unit: "MB", better: "less", doc: "of what there is then" },
  },
  rounds: 3,
  hasPeers: true,
  open: async ({ data: name, rows, warmUpMs, bytes, format, chdb, cluster }, { folder }) => {
    const dataset = requiredDataset(name, rows);
    if (chdb) installPeers();
    await mkdir(folder, { recursive: true });
    const data = await writeDataset(dataset, folder);
    const sides: Side[] = [processSide({ data, warmUpMs, cut: { sizeBytes: bytes }, format })];
    const close = async () => {
      for (const side of sides.toReversed()) await side.stop();
    };
    try {
      if (cluster) sides.push(await clusterSide({ data, cut: { sizeBytes: bytes }, format }, folder));
      for (const peer of chdb ? PEERS : PEERS.filter((one) => one !== "chdb")) {
        sides.push(await peerSide(peer, folder, data));
      }
    } catch (error) {
      await close();
      throw error;
    }
    const measured = sides.map((side): MeasuredSide => {
      const { name, processes = () => ({}) } = side;
      return { name, round: roundsOf(side, data), processes };
    });
    return { sides: measured, close };
  },
});

const PEERS: readonly PeerName[] = ["duckdb", "duckdb-table", "chdb"];
const CONNECTIONS = 4;
/** A table of the same rows, by which a server just started becomes as warm as the peers are. */
const WARM_UP = "warm";
const IDLE_WITHIN_MS = 300_000;
const POLL_MS = 100;
/** The peers have nothing left to do by then. */
const SETTLE_MS = 1_000;
/** Looks once a second, not every ten: a benchmark waits for it. */
const COMPACTING = { ENGINE_QUERY_WORKERS: "1", ENGINE_COMPACTION_POLL_SECS: "1" };

/** CPU seconds when all was acknowledged, when nothing more was done by itself, and when all was in place. */
type Run = { ackedCpu: number; idleCpu: number; cpuSeconds: number; diskBytes: number; stores?: StoresRun };
/** What a cluster's stores took, and what its S3 store was asked for. */
type StoresRun = { cpuSeconds: number; s3Requests: number; s3Bytes: number };
type Side = {
  name: string;
  run(round: string): Promise<Run>;
  processes?: () => Readonly<Record<string, number>>;
  stop(): Promise<void>;
};

/** Each round checks what it stored, in a table of its own. */
function roundsOf(side: Side, { sizeBytes }: DataFile): () => Promise<Record<string, number>> {
  let done = 0;
  return async () => {
    const { ackedCpu, idleCpu, cpuSeconds, diskBytes, stores } = await side.run(`round_${done++}`);
    return {
      cpu: sizeBytes / 1e6 / cpuSeconds,
      acknowledged: ackedCpu,
      idle: idleCpu,
      parquet: cpuSeconds,
      ...(stores !== undefined && {
        stores: stores.cpuSeconds,
        requests: (stores.s3Requests * 1e9) / sizeBytes,
        stored: (stores.s3Bytes * 1e3) / sizeBytes,
      }),
      disk: diskBytes / 1e6,
    };
  };
}

type Sent = { data: DataFile; cut: { sizeBytes: number }; format: "tlm" | "parquet" };
type Warmed = Sent & { warmUpMs: number };

/** One process on the local disk, with a home of its own for every round. */
function processSide(warmed: Warmed): Side {
  return {
    name: "engine",
    run: async (round) => {
      const home = await mkdtemp(join(tmpdir(), "engine-bench-"));
      try {
        return await runInHome(home, warmed, round);
      } finally {
        await rm(home, { recursive: true, force: true });
      }
    },
    stop: async () => {},
  };
}

async function runInHome(home: string, { data, cut, format, warmUpMs }: Warmed, round: string): Promise<Run> {
  const tables = [WARM_UP, round].map((name) => ({ database: "default", name, columns: data.columns }));
  const server = await startBenchServer({ home, tables, env: { ...COMPACTING, ENGINE_WRITE_FORMAT: format } });
  let run: Pick<Run, "ackedCpu" | "idleCpu">;
  try {
    const jobInto = (table: string) => {
      return { file: data.path, cut, connections: CONNECTIONS, tables: [table], keyPrefix: table };
    };
    await runIngest(server, { ...jobInto(WARM_UP), repeatForMs: warmUpMs });
    await untilIdle(server.url);
    const before = server.cpuSeconds();
    const { serverCpuSeconds: ackedCpu, failed, firstFailure } = await runIngest(server, jobInto(round));
    if (failed > 0) throw new Error(`requests failed: ${firstFailure ?? ""}`);
    await untilIdle(server.url);
    run = { ackedCpu, idleCpu: server.cpuSeconds() - before };
  } finally {
    await server.stop();
  }
  await withCatalog(home, endWarmUp);
  const settled = await settle({ place: { kind: "home", home }, tempDir: join(home, "tmp", "settle"), table: round });
  const after = await startBenchServer({ home });
  try {
    mustAgree("the engine", await after.answers(round, data.checks), data.expected);
  } finally {
    await after.stop();
  }
  return { ...run, cpuSeconds: run.idleCpu + settled.cpuSeconds, diskBytes: settled.sizeBytes };
}

/** What the server was warmed up with is not to be settled. */
async function endWarmUp(catalog: Catalog): Promise<void> {
  const table = await catalog.table("default", WARM_UP);
  if (table === undefined) throw new Error("there is no table that the server was warmed up with");
  const extents = await catalog.extents(table.id, (await catalog.head()).id, {}, []);
  await catalog.endExtents(
    table.id,
    extents.map(({ id }) => id),
  );
}

/** Edge, ingest node, committer and compaction, in sync mode, with PostgreSQL and an S3 server beside them. */
async function clusterSide({ data, cut, format }: Sent, folder: string): Promise<Side> {
  const cluster = await startBenchCluster({
    mode: "sync",
    compaction: true,
    env: { ...COMPACTING, ENGINE_WRITE_FORMAT: format },
  });
  const { compactionUrl } = cluster;
  if (compactionUrl === undefined) throw new Error("the cluster has no compaction");
  const clusterData = { data, answersOf: answersByBody(data, cut) };
  return {
    name: "engine, cluster",
    run: async (round) => {
      const job = { file: data.path, cut, connections: CONNECTIONS, table: round, keyPrefix: round };
      const countsBefore = await cluster.counts();
      const before = cluster.cpuSeconds();
      const { cpu } = await runClusterLoad(cluster, cluster.edgeUrl, job, clusterData);
      await untilIdle(compactionUrl);
      const idleCpu = engineOf(cluster.cpuSeconds()) - engineOf(before);
      const counts = await cluster.counts();
      const { catalogUrl, store } = cluster.local;
      const place = { kind: "cluster", catalogUrl, store } as const;
      const settled = await settle({ place, tempDir: join(folder, "settle"), table: round });
      const stores = {
        cpuSeconds: storesOf(cluster.cpuSeconds()) - storesOf(before),
        s3Requests: requestsIn(counts) - requestsIn(countsBefore),
        s3Bytes: counts.s3BytesOut - countsBefore.s3BytesOut,
      };
      mustAgree("the cluster", await cluster.answers(round, data.checks), data.expected);
      const cpuSeconds = idleCpu + settled.cpuSeconds;
      return { ackedCpu: engineOf(cpu), idleCpu, cpuSeconds, stores, diskBytes: settled.sizeBytes };
    },
    processes: () => Object.fromEntries(cluster.pids),
    stop: cluster.stop,
  };
}

function engineOf({ edge, ingest, committer, compaction }: ByPart): number {
  return edge + ingest + committer + compaction;
}

function storesOf({ postgres, s3 }: ByPart): number {
  return postgres + s3;
}

function requestsIn({ s3Requests }: ClusterCounts): number {
  return [...s3Requests.values()].reduce((sum, requests) => sum + requests, 0);
}

async function peerSide(name: PeerName, folder: string, data: DataFile): Promise<Side> {
  const own = join(folder, name);
  await mkdir(own);
  const peer = startInProcessPeer(name, own, SETTLE_MS);
  return {
    name,
    run: async (round) => {
      const run = await peer.load(data, round);
      mustAgree(name, run.answers, data.expected);
      const { cpuSeconds: ackedCpu, settledCpuSeconds: cpuSeconds, diskBytes } = run;
      return { ackedCpu, idleCpu: cpuSeconds, cpuSeconds, diskBytes };
    },
    stop: () => peer.stop(),
  };
}

/** Resolves when compaction has looked twice and found nothing to do: the first look may have begun before. */
async function untilIdle(url: string): Promise<void> {
  const looks = async () => {
    const metrics = await scrape(url);
    if ((byLabel(metrics, "engine_compaction_merges_total", "outcome").get("failed") ?? 0) > 0) {
      throw new Error("a merge failed");
    }
    return byLabel(metrics, "engine_duty_runs_total", "duty").get("compaction") ?? 0;
  };
  const wanted = (await looks()) + 2;
  const deadlineMs = systemClock.monotonicMs() + IDLE_WITHIN_MS;
  while ((await looks()) < wanted) {
    if (systemClock.monotonicMs() > deadlineMs) throw new Error("compaction did not come to an end in time");
    await sleep(systemClock, POLL_MS);
  }
}
