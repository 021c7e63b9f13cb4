import { PRESETS } from "../load/cases.ts";
import { startSide } from "../load/side.ts";
import { sleep, systemClock } from "../../src/core/clock.ts";
import { mustAgree } from "../support/answers.ts";
import { readArguments } from "../support/arguments.ts";
import { withTemporaryFolder, type DataFile } from "../support/data-file.ts";
import { median } from "../../src/capacity/quantile.ts";
import { machine, printTable, shown } from "../support/report.ts";
import { installPeers } from "./install.ts";
import { startInProcessPeer, type Peer } from "./peer.ts";
import { victoriaLogsPeer } from "./victorialogs.ts";

/**
 * Question: the same NDJSON made durable, here through HTTP in keyed bodies of 1 MiB from 4 clients, there as the peer
 * loads it: who needs less CPU, who is done earlier, who takes less disk?
 *
 *     node bench/peers/bulk.ts [duckdb] [duckdb-auto] [chdb] [--victorialogs URL] [--data logs] [--rows 300000] [--rounds 5]
 *
 * Beside `duckdb-auto`, which finds the types of all columns itself, the engine infers them too.
 */
const OPTIONS = {
  data: { type: "string", default: "logs" },
  rows: { type: "string", default: "300000" },
  rounds: { type: "string", default: "5" },
  "settle-ms": { type: "string", default: "1000" },
  victorialogs: { type: "string" },
} as const;

/** One load by either side. */
type Run = { wallSeconds: number; cpuSeconds: number; settledCpuSeconds: number; diskBytes: number };
type Pair = { engine: Run; peer: Run };

export async function main(args: readonly string[]): Promise<void> {
  const options = readArguments(args, OPTIONS);
  const [base] = PRESETS["mib"] ?? [];
  if (base === undefined) throw new Error("there is no preset mib");
  const rounds = ["warm_up", ...Array.from({ length: options.count("rounds") }, (_, i) => `round_${i}`)];
  const settleMs = options.count("settle-ms");
  console.log(machine());
  await withTemporaryFolder(async (folder) => {
    const peers = startPeers(options.positionals, { folder, url: options.text("victorialogs"), settleMs });
    try {
      for (const peer of peers) {
        const types = peer.name === "duckdb-auto" ? ("inferred" as const) : base.types;
        const loadCase = { ...base, data: options.text("data") ?? base.data, rows: options.count("rows"), types };
        const side = await startSide(loadCase, { folder, rounds });
        if (side === undefined) return;
        try {
          await compare(peer, side.data, rounds, async (round) => {
            const run = await side.run(round);
            const cpuBefore = side.server.cpuSeconds();
            await sleep(systemClock, settleMs);
            const settledCpuSeconds = run.serverCpuSeconds + side.server.cpuSeconds() - cpuBefore;
            return { ...run, cpuSeconds: run.serverCpuSeconds, settledCpuSeconds };
          });
        } finally {
          await side.stop();
        }
      }
    } finally {
      for (const peer of peers) await peer.stop();
    }
  });
}

function startPeers(
  names: readonly string[],
  { folder, url, settleMs }: { folder: string; url: string | undefined; settleMs: number },
): Peer[] {
  const wanted = names.length === 0 ? ["duckdb", "chdb", "victorialogs"] : names;
  if (wanted.includes("chdb")) installPeers();
  const peers: Peer[] = [];
  for (const name of wanted) {
    if (name === "duckdb" || name === "duckdb-auto" || name === "chdb") {
      peers.push(startInProcessPeer(name, folder, settleMs));
    } else if (name !== "victorialogs") {
      throw new Error(`${name} is no peer; there are duckdb, duckdb-auto, chdb and victorialogs`);
    } else if (url === undefined) {
      console.log("victorialogs: skipped, start one and name it with --victorialogs URL (see bench/README.md)");
    } else {
      peers.push(victoriaLogsPeer(url, settleMs));
    }
  }
  return peers;
}

async function compare(
  peer: Peer,
  file: DataFile,
  rounds: readonly string[],
  runEngine: (round: string) => Promise<Run>,
): Promise<void> {
  const pairs: Pair[] = [];
  let remark: string | undefined;
  for (const round of rounds) {
    const engine = await runEngine(round);
    const loaded = await peer.load(file, round);
    mustAgree(peer.name, loaded.answers, file.expected);
    if (round !== "warm_up") pairs.push({ engine, peer: loaded });
    remark = loaded.remark ?? remark;
  }
  const mb = file.sizeBytes / 1e6;
  console.log(`\nengine and ${peer.name}: ${file.rows} rows of ${file.name}, ${shown(mb)} MB, ${pairs.length} pairs`);
  const line = (name: string, side: (pair: Pair) => Run) => {
    const of = (figure: (run: Run) => number) => median(pairs.map((pair) => figure(side(pair))));
    return [
      name,
      shown(mb / of((run) => run.cpuSeconds)),
      shown(mb / of((run) => run.settledCpuSeconds)),
      shown(mb / of((run) => run.wallSeconds)),
      shown(of((run) => run.diskBytes) / 1e6),
    ];
  };
  const ratio = (figure: (run: Run) => number) =>
    shown(median(pairs.map((pair) => figure(pair.peer) / figure(pair.engine))));
  printTable(
    ["", "MB/CPU-s", "settled", "wall MB/s", "disk MB"],
    [
      line("engine", (pair) => pair.engine),
      line(peer.name, (pair) => pair.peer),
      [
        `engine / ${peer.name}`,
        `${ratio((run) => run.cpuSeconds)}×`,
        `${ratio((run) => run.settledCpuSeconds)}×`,
        `${ratio((run) => run.wallSeconds)}×`,
        `${shown(median(pairs.map((pair) => pair.engine.diskBytes / pair.peer.diskBytes)))}×`,
      ],
    ],
  );
  if (remark !== undefined) console.log(`${peer.name}: ${remark}`);
}

if (import.meta.main) await main(process.argv.slice(2));
