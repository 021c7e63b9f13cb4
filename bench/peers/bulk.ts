import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { sleep, systemClock } from "../../src/core/clock.ts";
import { PRESETS, type LoadCase } from "../load/cases.ts";
import { startSide, type Side as LoadSide } from "../load/side.ts";
import { defineBenchmark, type Side } from "../suite/benchmark.ts";
import { mustAgree } from "../support/answers.ts";
import { DATASET_NAMES } from "../support/data-file.ts";
import { installPeers } from "./install.ts";
import { startInProcessPeer, type Peer, type PeerName } from "./peer.ts";
import { victoriaLogsPeer } from "./victorialogs.ts";

export const benchmark = defineBenchmark({
  name: "peers/bulk",
  question:
    "The same NDJSON made durable by the engine, through HTTP in keyed bodies of 1 MiB from 4 clients, and as DuckDB, " +
    "ClickHouse (chDB) or VictoriaLogs load it: who needs less CPU, who is done earlier, who takes less disk?",
  notMeasured:
    "The peers that are libraries get the file directly: they pay for no HTTP, no small bodies and no keys. Extents are as " +
    "ingest wrote them, before any merge.",
  options: z.strictObject({
    data: z.enum(DATASET_NAMES).default("logs").describe(DATASET_NAMES.join(", ")),
    rows: z.coerce.number().int().positive().default(300_000).describe("in one round"),
    types: z
      .enum(["declared", "inferred"])
      .default("declared")
      .describe("declared: against duckdb and chdb; inferred, here as there: against duckdb-auto"),
    chdb: z.stringbool().default(true).describe("false leaves it out; it is a package of 550 MB"),
    victorialogs: z.url().optional().describe("of one that runs here (see bench/README.md), which is compared then"),
    settleMs: z.coerce.number().int().positive().default(1_000).describe("that background work is watched for"),
  }),
  measures: {
    cpu: { unit: "MB/CPU-s", better: "more", doc: "per CPU second, until all is durable" },
    settled: { unit: "MB/CPU-s", better: "more", doc: "the same with the background work after that" },
    wall: { unit: "MB/s", better: "more", doc: "until all is durable" },
    disk: { unit: "MB", better: "less", doc: "that one round takes" },
    visible: { unit: "ms", better: "less", doc: "from then until all rows are seen, where they are not at once" },
  },
  rounds: 5,
  hasPeers: true,
  open: async ({ data, rows, types, chdb, victorialogs, settleMs }, { folder, rounds }) => {
    const [base] = PRESETS["mib"] ?? [];
    if (base === undefined) throw new Error("there is no preset mib");
    const load = await startLoad({ ...base, data, rows, types }, folder, rounds);
    const peers: Peer[] = [];
    const close = async () => {
      for (const peer of peers) await peer.stop();
      await load.stop();
    };
    try {
      for (const name of librariesFor(types, chdb)) peers.push(await startLibrary(name, folder, settleMs));
      if (victorialogs !== undefined) peers.push(victoriaLogsPeer(victorialogs, settleMs));
    } catch (error) {
      await close();
      throw error;
    }
    return { sides: [engineSide(load, settleMs), ...peers.map((peer) => peerSide(peer, load))], close };
  },
});

function librariesFor(types: "declared" | "inferred", chdb: boolean): PeerName[] {
  if (types === "inferred") return ["duckdb-auto"];
  return chdb ? ["duckdb", "chdb"] : ["duckdb"];
}

/** In a folder of its own, so that what it takes on the disk can be counted. */
async function startLibrary(name: PeerName, folder: string, settleMs: number): Promise<Peer> {
  if (name === "chdb") installPeers();
  const own = join(folder, name);
  await mkdir(own, { recursive: true });
  return startInProcessPeer(name, own, settleMs);
}

async function startLoad(loadCase: LoadCase, folder: string, rounds: number): Promise<LoadSide> {
  await mkdir(folder, { recursive: true });
  const names = Array.from({ length: rounds + 1 }, (_, round) => tableOf(round));
  const load = await startSide(loadCase, { folder, rounds: names });
  if (load === undefined) throw new Error(`this machine does not have the data ${loadCase.data}`);
  return load;
}

function tableOf(round: number): string {
  return `round_${round}`;
}

type Figures = { wallSeconds: number; cpuSeconds: number; settledCpuSeconds: number; diskBytes: number };

function valuesOf({ data }: LoadSide, run: Figures): Record<string, number> {
  const mb = data.sizeBytes / 1e6;
  return {
    cpu: mb / run.cpuSeconds,
    settled: mb / run.settledCpuSeconds,
    wall: mb / run.wallSeconds,
    disk: run.diskBytes / 1e6,
  };
}

function engineSide(load: LoadSide, settleMs: number): Side {
  let done = 0;
  const round = async () => {
    const run = await load.run(tableOf(done++));
    const cpuBefore = load.server.cpuSeconds();
    await sleep(systemClock, settleMs);
    const settledCpuSeconds = run.serverCpuSeconds + load.server.cpuSeconds() - cpuBefore;
    return valuesOf(load, { ...run, cpuSeconds: run.serverCpuSeconds, settledCpuSeconds });
  };
  return { name: "engine", round, processes: () => ({ server: load.server.pid }) };
}

/** Each round checks what it loaded. */
function peerSide(peer: Peer, load: LoadSide): Side {
  let done = 0;
  const round = async () => {
    const run = await peer.load(load.data, tableOf(done++));
    mustAgree(peer.name, run.answers, load.data.expected);
    const { visibleMs } = run;
    return { ...valuesOf(load, run), ...(visibleMs !== undefined && { visible: visibleMs }) };
  };
  return { name: peer.name, round, processes: () => ({ [peer.name]: peer.pid }) };
}
