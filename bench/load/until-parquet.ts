import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Catalog } from "../../src/catalog/catalog.ts";
import { sleep, systemClock } from "../../src/core/clock.ts";
import { installPeers } from "../peers/install.ts";
import { startInProcessPeer, type PeerName } from "../peers/peer.ts";
import { mustAgree } from "../support/answers.ts";
import { readArguments, type Arguments } from "../support/arguments.ts";
import { startBenchCluster, type ByPart } from "../support/bench-cluster.ts";
import { answersByBody } from "../support/body-answers.ts";
import { withCatalog } from "../support/catalog.ts";
import { datasetOf, withTemporaryFolder, writeDataset, type DataFile } from "../support/data-file.ts";
import { runIngest } from "../support/ingest-run.ts";
import { median } from "../../src/capacity/quantile.ts";
import { machine, MIB, printTable, shown } from "../support/report.ts";
import { byLabel, scrape } from "../support/scrape.ts";
import { startBenchServer } from "../support/server.ts";
import { runClusterLoad } from "./cluster-run.ts";
import { settle } from "./settle.ts";

/**
 * Question: the same NDJSON until every row of it is in Parquet, here ingested over HTTP in keyed bodies of 1 MiB from 4
 * clients, committed, and compacted; there loaded by DuckDB into a Parquet file, by DuckDB into a table of its own, and
 * by ClickHouse (chDB): who needs how much CPU?
 *
 *     node bench/load/until-parquet.ts [duckdb] [duckdb-table] [chdb] [--rows 1000000] [--rounds 3] [--cluster]
 *
 * Compaction runs as a server runs it by default, until it finds nothing more to do. What it leaves in `tlm` then is
 * what it merges once the day is quiet for long enough; that is done by a process whose clock is ahead (`settle.ts`).
 */
const OPTIONS = {
  data: { type: "string", default: "logs" },
  rows: { type: "string", default: "1000000" },
  rounds: { type: "string", default: "3" },
  "warm-up-ms": { type: "string", default: "2000" },
  cluster: { type: "boolean" },
} as const;

const PEERS: readonly PeerName[] = ["duckdb", "duckdb-table", "chdb"];
const CUT = { sizeBytes: MIB };
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
type Run = { ackedCpu: number; idleCpu: number; cpuSeconds: number; storeCpu: number; diskBytes: number };
type Side = { name: string; warmsUpItself?: boolean; run(round: string): Promise<Run>; stop(): Promise<void> };

export async function main(args: readonly string[]): Promise<void> {
  const options = readArguments(args, OPTIONS);
  const names = namesOf(options);
  if (names.includes("chdb")) installPeers();
  console.log(machine());
  await withTemporaryFolder(async (folder) => {
    const dataset = datasetOf(options.text("data") ?? "", options.count("rows"));
    if (dataset === undefined) return;
    const data = await writeDataset(dataset, folder);
    const sides: Side[] = [];
    try {
      sides.push(processSide({ data, warmUpMs: options.count("warm-up-ms") }));
      if (options.has("cluster")) sides.push(await clusterSide(data, folder));
      for (const name of names) sides.push(await peerSide(name, folder, data));
      await compare(sides, data, options.count("rounds"));
    } finally {
      for (const side of sides.toReversed()) await side.stop();
    }
  });
}

function namesOf({ positionals }: Arguments): PeerName[] {
  const unknown = positionals.find((word) => !PEERS.some((name) => name === word));
  if (unknown !== undefined) throw new Error(`${unknown} is no peer; there are ${PEERS.join(", ")}`);
  return PEERS.filter((name) => positionals.length === 0 || positionals.includes(name));
}

type Warmed = { data: DataFile; warmUpMs: number };

/** One process on the local disk, with a home of its own for every round. */
function processSide(warmed: Warmed): Side {
  return {
    name: "engine",
    warmsUpItself: true,
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

async function runInHome(home: string, { data, warmUpMs }: Warmed, round: string): Promise<Run> {
  const tables = [WARM_UP, round].map((name) => ({ database: "default", name, columns: data.columns }));
  const server = await startBenchServer({ home, tables, env: COMPACTING });
  let run: Pick<Run, "ackedCpu" | "idleCpu">;
  try {
    const jobInto = (table: string) => {
      return { file: data.path, cut: CUT, connections: CONNECTIONS, tables: [table], keyPrefix: table };
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
  return { ...run, cpuSeconds: run.idleCpu + settled.cpuSeconds, storeCpu: 0, diskBytes: settled.sizeBytes };
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
async function clusterSide(data: DataFile, folder: string): Promise<Side> {
  const cluster = await startBenchCluster({ mode: "sync", compaction: true, env: COMPACTING });
  const { compactionUrl } = cluster;
  if (compactionUrl === undefined) throw new Error("the cluster has no compaction");
  const clusterData = { data, answersOf: answersByBody(data, CUT) };
  return {
    name: "engine, cluster",
    run: async (round) => {
      const job = { file: data.path, cut: CUT, connections: CONNECTIONS, table: round, keyPrefix: round };
      const before = cluster.cpuSeconds();
      const { cpu } = await runClusterLoad(cluster, cluster.edgeUrl, job, clusterData);
      await untilIdle(compactionUrl);
      const idleCpu = engineOf(cluster.cpuSeconds()) - engineOf(before);
      const { catalogUrl, store } = cluster.local;
      const place = { kind: "cluster", catalogUrl, store } as const;
      const settled = await settle({ place, tempDir: join(folder, "settle"), table: round });
      const storeCpu = storesOf(cluster.cpuSeconds()) - storesOf(before);
      mustAgree("the cluster", await cluster.answers(round, data.checks), data.expected);
      const cpuSeconds = idleCpu + settled.cpuSeconds;
      return { ackedCpu: engineOf(cpu), idleCpu, cpuSeconds, storeCpu, diskBytes: settled.sizeBytes };
    },
    stop: cluster.stop,
  };
}

function engineOf({ edge, ingest, committer, compaction }: ByPart): number {
  return edge + ingest + committer + compaction;
}

function storesOf({ postgres, s3 }: ByPart): number {
  return postgres + s3;
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
      return { ackedCpu, idleCpu: cpuSeconds, cpuSeconds, storeCpu: 0, diskBytes };
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

async function compare(sides: readonly Side[], data: DataFile, rounds: number): Promise<void> {
  const runs = new Map<Side, Run[]>(sides.map((side) => [side, []]));
  for (const round of ["warm_up", ...Array.from({ length: rounds }, (_, i) => `round_${i}`)]) {
    for (const side of sides) {
      if (round === "warm_up" && side.warmsUpItself === true) continue;
      const run = await side.run(round);
      if (round !== "warm_up") runs.get(side)?.push(run);
    }
  }
  const mb = data.sizeBytes / 1e6;
  console.log(`\n${data.rows} rows of ${data.name}, ${shown(mb)} MB, ${rounds} rounds: CPU seconds`);
  const columns: [string, (run: Run) => number][] = [
    ["acknowledged", (run) => run.ackedCpu],
    ["idle again", (run) => run.idleCpu],
    ["all Parquet", (run) => run.cpuSeconds],
    ["MB/CPU-s", (run) => mb / run.cpuSeconds],
    ["stores' CPU-s", (run) => run.storeCpu],
    ["disk MB", (run) => run.diskBytes / 1e6],
  ];
  const rows: string[][] = [];
  for (const [{ name }, own] of runs) rows.push([name, ...columns.map(([, figure]) => shown(median(own.map(figure))))]);
  printTable(["", ...columns.map(([name]) => name)], rows);
  printRatios(runs);
}

/** Of pairs of runs of one round: above 1 the engine needs less. */
function printRatios(runs: ReadonlyMap<Side, readonly Run[]>): void {
  const [first, ...others] = runs;
  if (first === undefined) return;
  const [engine, own] = first;
  for (const [{ name }, theirs] of others) {
    const ratios = own.map((run, round) => (theirs[round]?.cpuSeconds ?? Number.NaN) / run.cpuSeconds);
    console.log(`${name} / ${engine.name}: ${shown(median(ratios))}× the CPU-s`);
  }
}

if (import.meta.main) await main(process.argv.slice(2));
