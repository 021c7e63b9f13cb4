import { join } from "node:path";
import { readArguments, type Arguments } from "../support/arguments.ts";
import { startBenchCluster } from "../support/bench-cluster.ts";
import { answersByBody } from "../support/body-answers.ts";
import { datasetOf, withTemporaryFolder, writeDataset, type DataFile } from "../support/data-file.ts";
import { runCheckedIngest } from "../support/ingest-run.ts";
import type { Cut } from "../support/load-plan.ts";
import { printProfile, summarizeProfiles } from "../support/profile.ts";
import { machine, shown } from "../support/report.ts";
import { startBenchServer } from "../support/server.ts";
import { printClusterReport, type MeasuredSide, type SideRun } from "./cluster-report.ts";
import { runClusterLoad, type ClusterData, type ClusterJob } from "./cluster-run.ts";
import { stageOf } from "./stages.ts";

/**
 * Question: what does ingest cost in a cluster, through an edge to an ingest node, into an S3 store and a PostgreSQL
 * catalog, by role; how long until the acknowledgement and until the rows are visible; and how many requests and commits
 * does it take of the two? Beside it the same load sent to the ingest node directly, which shows the edge's part, and to
 * one process on the local disk.
 *
 *     node bench/load/cluster.ts [--mode sync|staged|both] [--seconds 8] [--rounds 5] [--body-kib 1024] [--clients 4]
 *
 * See `bench/README.md` for the other options and how to read the figures.
 */
const OPTIONS = {
  mode: { type: "string", default: "both" },
  seconds: { type: "string", default: "8" },
  rounds: { type: "string", default: "5" },
  "body-kib": { type: "string", default: "1024" },
  "rows-per-request": { type: "string" },
  clients: { type: "string", default: "4" },
  rate: { type: "string" },
  data: { type: "string", default: "logs" },
  rows: { type: "string", default: "100000" },
  compaction: { type: "boolean" },
  "no-single": { type: "boolean" },
  profile: { type: "boolean" },
} as const;

const MODES = ["sync", "staged"] as const;

export async function main(args: readonly string[]): Promise<void> {
  const options = readArguments(args, OPTIONS);
  const wanted = options.text("mode");
  const modes = MODES.filter((mode) => wanted === "both" || wanted === mode);
  if (modes.length === 0) throw new Error(`${wanted} is no mode; there are ${MODES.join(", ")} and both`);
  console.log(machine());
  await withTemporaryFolder(async (folder) => {
    const dataset = datasetOf(options.text("data") ?? "", options.count("rows"));
    if (dataset === undefined) return;
    const data = await writeDataset(dataset, folder);
    describe(data, options);
    if (!options.has("profile")) await measure({ data, modes, options });
    else for (const mode of modes) await profile(mode, { data, modes, options }, join(folder, mode));
  });
}

type Setup = { data: DataFile; modes: readonly ("sync" | "staged")[]; options: Arguments };
type Side = { name: string; run(round: string): Promise<SideRun> };

async function measure(setup: Setup): Promise<void> {
  const rounds = ["warm_up", ...Array.from({ length: setup.options.count("rounds") }, (_, i) => `round_${i}`)];
  const stops: (() => Promise<void>)[] = [];
  try {
    const sides: Side[] = setup.options.has("no-single") ? [] : [await singleSide(setup, rounds, stops)];
    for (const mode of setup.modes) sides.push(...(await clusterSides(mode, setup, stops)));
    const measured = sides.map(({ name }): MeasuredSide & { runs: SideRun[] } => ({ name, runs: [] }));
    for (const round of rounds) {
      for (const [i, side] of sides.entries()) {
        const run = await side.run(round);
        if (round !== "warm_up") measured[i]?.runs.push(run);
      }
    }
    printClusterReport(measured);
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

/** One process with everything in it, on the local disk. */
async function singleSide(
  { data, options }: Setup,
  rounds: readonly string[],
  stops: (() => Promise<void>)[],
): Promise<Side> {
  const answersOf = answersByBody(data, cutOf(options));
  const tables = rounds.map((name) => ({ database: "default", name, columns: data.columns }));
  const server = await startBenchServer({ tables, env: { ENGINE_QUERY_WORKERS: "1" } });
  stops.push(() => server.stop());
  return {
    name: "one process",
    run: async (round) => {
      const job = { ...loadOf(data, options), tables: [round], keyPrefix: round };
      const run = await runCheckedIngest(server, job, { checks: data.checks, answersOf }, true);
      return { ...run, engineCpuSeconds: run.serverCpuSeconds };
    },
  };
}

/** A cluster, through its edge and past it. */
async function clusterSides(
  mode: "sync" | "staged",
  { data, options }: Setup,
  stops: (() => Promise<void>)[],
): Promise<Side[]> {
  const compaction = options.has("compaction");
  const cluster = await startBenchCluster({ mode, compaction });
  stops.push(cluster.stop);
  const clusterData: ClusterData = { data, answersOf: answersByBody(data, cutOf(options)) };
  const sideTo = (name: string, url: string): Side => ({
    name: `${mode}, ${name}`,
    run: async (round) => {
      const table = `${round}_${name}`;
      const job = { ...loadOf(data, options), table, keyPrefix: table };
      const run = await runClusterLoad(cluster, url, job, clusterData);
      // Compaction may still have to read them.
      if (!compaction) await cluster.dropObjects(table);
      const { edge, ingest, committer, compaction: merging } = run.cpu;
      return { ...run, engineCpuSeconds: edge + ingest + committer + merging, cluster: run };
    },
  });
  return [sideTo("edge", cluster.edgeUrl), sideTo("direct", cluster.ingestUrl)];
}

/** Where the CPU of each part's JavaScript goes, loaded through the edge. */
async function profile(mode: "sync" | "staged", { data, options }: Setup, folder: string): Promise<void> {
  const env = { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${folder}` };
  const cluster = await startBenchCluster({ mode, compaction: options.has("compaction"), env });
  try {
    const job = { ...loadOf(data, options), table: "profiled", keyPrefix: "profiled" };
    const answersOf = answersByBody(data, cutOf(options));
    await runClusterLoad(cluster, cluster.edgeUrl, job, { data, answersOf });
  } finally {
    await cluster.stop();
  }
  for (const [part, pid] of cluster.pids) {
    if (part === "postgres" || part === "s3" || part === "query") continue;
    console.log(`\n${mode}, ${part}`);
    printProfile(summarizeProfiles(folder, stageOf, pid));
  }
}

function cutOf(options: Arguments): Cut {
  if (options.text("rows-per-request") !== undefined) return { rows: options.count("rows-per-request") };
  return { sizeBytes: options.count("body-kib") * 1024 };
}

function loadOf({ path }: DataFile, options: Arguments): Omit<ClusterJob, "table" | "keyPrefix"> {
  const durationMs = options.count("seconds") * 1000;
  const paced = options.text("rate") !== undefined;
  return {
    file: path,
    cut: cutOf(options),
    connections: options.count("clients"),
    ...(paced ? { pace: { perSecond: options.count("rate"), durationMs } } : { repeatForMs: durationMs }),
  };
}

function describe({ name, rows, sizeBytes }: DataFile, options: Arguments): void {
  const cut = cutOf(options);
  const bodies = "rows" in cut ? `${cut.rows} rows` : `${cut.sizeBytes / 1024} KiB`;
  const rate = options.text("rate");
  const pace = rate === undefined ? "as fast as they are answered" : `${rate} requests/s`;
  console.log(
    `${rows} rows of ${name} (${shown(sizeBytes / 1e6)} MB), again and again for ${options.count("seconds")} s; ` +
      `${bodies} per request, ${options.count("clients")} connections, keyed, ${pace}; ` +
      `compaction ${options.has("compaction") ? "on" : "off"}`,
  );
}

if (import.meta.main) await main(process.argv.slice(2));
