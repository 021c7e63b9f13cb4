import { mkdir } from "node:fs/promises";
import { z } from "zod";
import { defineBenchmark, type Measure, type Side } from "../suite/benchmark.ts";
import { PARTS, startBenchCluster, type BenchCluster } from "../support/bench-cluster.ts";
import { answersByBody } from "../support/body-answers.ts";
import { DATASET_NAMES, requiredDataset, writeDataset, type DataFile } from "../support/data-file.ts";
import { runCheckedIngest } from "../support/ingest-run.ts";
import type { LoadResult } from "../support/load-plan.ts";
import { MIB } from "../support/report.ts";
import { startBenchServer } from "../support/server.ts";
import { runClusterLoad, type ClusterJob, type ClusterRun } from "./cluster-run.ts";

const MODES = ["sync", "staged"] as const;
type Mode = (typeof MODES)[number];

const count = z.coerce.number().int().positive();

const OPTIONS = z.strictObject({
  mode: z
    .enum([...MODES, "both"])
    .default("both")
    .describe("of ingest: sync, staged, or both beside each other"),
  data: z.enum(DATASET_NAMES).default("logs").describe(DATASET_NAMES.join(", ")),
  rows: count.default(100_000).describe("that are sent again and again, each time under other keys"),
  seconds: z.coerce.number().positive().default(8).describe("of each load"),
  bytes: count.default(MIB).describe("of one request"),
  rowsPerRequest: count.optional().describe("in place of bytes"),
  connections: count.default(4).describe("each with one request at a time"),
  rate: count.optional().describe("requests a second, whatever the answers do; else as fast as they are answered"),
  compaction: z.stringbool().default(false).describe("true starts a compaction node"),
  single: z.stringbool().default(true).describe("false leaves out the one process on the local disk"),
});
type Options = z.output<typeof OPTIONS>;

/** Of requests to the object store. */
const KINDS = ["put", "get", "head", "list", "delete", "multipart"] as const;

export const benchmark = defineBenchmark({
  name: "load/cluster",
  question:
    "What does ingest cost in a cluster, by role, through an edge to an ingest node and past the edge, into an S3 store and " +
    "a PostgreSQL catalog; how long until the acknowledgement, and until the rows are visible; and what is asked of the two?",
  notMeasured:
    "Networks: every process is on this machine. Costs are counted until the last row is visible. Both clusters of the mode " +
    "`both` run beside each other, which costs each the idle processes of the other. A query through the edge must then " +
    "give exactly what was acknowledged.",
  options: OPTIONS,
  measures: {
    cpu: { unit: "MB/CPU-s", better: "more", doc: "of edge, ingest, committer and compaction, or of the one process" },
    edgeShare: { unit: "×", better: "less", doc: "CPU of the edge over that of the ingest node" },
    wall: { unit: "MB/s", better: "more", doc: "until the last acknowledgement" },
    p50: { unit: "ms", better: "less", doc: "until the acknowledgement" },
    p99: { unit: "ms", better: "less", doc: "until the acknowledgement" },
    max: { unit: "ms", better: "less", doc: "until the acknowledgement, the longest of a round" },
    fresh: { unit: "ms", better: "less", doc: "from a request's first byte to its commit, by the ledger: median" },
    freshP99: { unit: "ms", better: "less", doc: "from a request's first byte to its commit: but for 1 %" },
    freshMax: { unit: "ms", better: "less", doc: "from a request's first byte to its commit, the longest of a round" },
    refused: { unit: "requests", better: "less", doc: "answered with 429" },
    unsent: { unit: "requests", better: "less", doc: "of a rate: still waiting for a connection in the end" },
    ...Object.fromEntries(
      [...PARTS, "client"].map((part): [string, Measure] => [
        cpuOf(part),
        { unit: "CPU-s/GB", better: "less", doc: `of ${part}, for a gigabyte of NDJSON` },
      ]),
    ),
    ...Object.fromEntries(
      KINDS.map((kind): [string, Measure] => [
        kind,
        { unit: "requests/GB", better: "less", doc: `${kind} to the S3 store, for a gigabyte of NDJSON` },
      ]),
    ),
    stored: { unit: "MB/GB", better: "less", doc: "sent to the S3 store" },
    extents: { unit: "extents/GB", better: "less", doc: "committed" },
    snapshots: { unit: "snapshots/GB", better: "less", doc: "of the catalog" },
    writes: { unit: "commits/GB", better: "less", doc: "of PostgreSQL that write" },
    transactions: { unit: "commits/GB", better: "less", doc: "of PostgreSQL, reads and polling too, seen 10 s late" },
    wal: { unit: "MB/GB", better: "less", doc: "of PostgreSQL's log" },
  },
  rounds: 5,
  open: async (options, { folder, rounds }) => {
    const dataset = requiredDataset(options.data, options.rows);
    await mkdir(folder, { recursive: true });
    const setup: Setup = { data: await writeDataset(dataset, folder), options, rounds };
    const modes = MODES.filter((mode) => options.mode === "both" || options.mode === mode);
    const sides: Side[] = [];
    const ends: (() => Promise<void>)[] = [];
    const close = async () => {
      for (const end of ends.toReversed()) await end();
    };
    try {
      for (const mode of modes) {
        const cluster = await startBenchCluster({ mode, compaction: options.compaction });
        ends.push(cluster.stop);
        sides.push(...clusterSides(cluster, mode, setup));
      }
      if (options.single) sides.push(await singleSide(setup, ends));
    } catch (error) {
      await close();
      throw error;
    }
    return { sides, close };
  },
});

function cpuOf(part: string): string {
  return `${part}Cpu`;
}

type Setup = { data: DataFile; options: Options; rounds: number };

/** Through the edge, and past it. */
function clusterSides(cluster: BenchCluster, mode: Mode, { data, options }: Setup): Side[] {
  const clusterData = { data, answersOf: answersByBody(data, cutOf(options)) };
  const sideTo = (name: "edge" | "direct", url: string): Side => {
    let done = 0;
    return {
      name: `${mode}, ${name}`,
      round: async () => {
        const table = `${name}_${done++}`;
        const job: ClusterJob = { ...loadOf(data, options), table, keyPrefix: table };
        const run = await runClusterLoad(cluster, url, job, clusterData);
        // Compaction may still have to read them.
        if (!options.compaction) await cluster.dropObjects(table);
        const { edge, ingest, committer, compaction } = run.cpu;
        return {
          ...loadValues(run, edge + ingest + committer + compaction),
          ...(name === "edge" && { edgeShare: edge / ingest }),
          ...clusterValues(run, cluster),
        };
      },
      processes: () => Object.fromEntries(cluster.pids),
    };
  };
  return [sideTo("edge", cluster.edgeUrl), sideTo("direct", cluster.ingestUrl)];
}

/** One process with everything in it, on the local disk. */
async function singleSide({ data, options, rounds }: Setup, ends: (() => Promise<void>)[]): Promise<Side> {
  const answersOf = answersByBody(data, cutOf(options));
  // One more for the round that warms up.
  const names = Array.from({ length: rounds + 1 }, (_, i) => `round_${i}`);
  const tables = names.map((name) => ({ database: "default", name, columns: data.columns }));
  const server = await startBenchServer({ tables, env: { ENGINE_QUERY_WORKERS: "1" } });
  ends.push(() => server.stop());
  let done = 0;
  return {
    name: "one process",
    round: async () => {
      const table = `round_${done++}`;
      const job = { ...loadOf(data, options), tables: [table], keyPrefix: table };
      const run = await runCheckedIngest(server, job, { checks: data.checks, answersOf }, true);
      return loadValues(run, run.serverCpuSeconds);
    },
    processes: () => ({ server: server.pid }),
  };
}

function cutOf({ bytes, rowsPerRequest }: Options): ClusterJob["cut"] {
  return rowsPerRequest === undefined ? { sizeBytes: bytes } : { rows: rowsPerRequest };
}

function loadOf({ path }: DataFile, options: Options): Omit<ClusterJob, "table" | "keyPrefix"> {
  const { seconds, connections, rate } = options;
  const durationMs = seconds * 1_000;
  const pace = rate === undefined ? { repeatForMs: durationMs } : { pace: { perSecond: rate, durationMs } };
  return { file: path, cut: cutOf(options), connections, ...pace };
}

function loadValues(run: LoadResult, cpuSeconds: number): Record<string, number> {
  const { p50, p99, max } = run.latencyMs;
  const megabytes = run.bytesAccepted / 1e6;
  const { refused, unsent } = run;
  return { cpu: megabytes / cpuSeconds, wall: megabytes / run.wallSeconds, p50, p99, max, refused, unsent };
}

function clusterValues(run: ClusterRun, { pids }: BenchCluster): Record<string, number> {
  const { cpu, cpuSeconds, freshnessMs, spent, bytesAccepted } = run;
  const perGb = (total: number) => (total * 1e9) / bytesAccepted;
  return {
    fresh: freshnessMs.p50,
    freshP99: freshnessMs.p99,
    freshMax: freshnessMs.max,
    ...Object.fromEntries([...pids.keys()].map((part) => [cpuOf(part), perGb(cpu[part])])),
    [cpuOf("client")]: perGb(cpuSeconds),
    ...Object.fromEntries(KINDS.map((kind) => [kind, perGb(spent.s3Requests.get(kind) ?? 0)])),
    stored: perGb(spent.s3BytesOut / 1e6),
    extents: perGb(spent.extents),
    snapshots: perGb(spent.snapshots),
    writes: perGb(spent.writes),
    transactions: perGb(spent.transactions),
    wal: perGb(spent.walBytes / 1e6),
  };
}
