import { fork, type ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";
import { PRESETS } from "../load/cases.ts";
import { startSide, type Side } from "../load/side.ts";
import { mustAgree } from "../support/answers.ts";
import { readArguments } from "../support/arguments.ts";
import { withTemporaryFolder, type DataFile } from "../support/data-file.ts";
import { cpuSecondsOf } from "../support/process-stats.ts";
import { median } from "../../src/capacity/quantile.ts";
import { machine, printTable, shown } from "../support/report.ts";
import { installPeers } from "./install.ts";
import type { PostgresJob, PostgresMessage } from "./postgres-child.ts";
import { startPostgres, type PostgresServer } from "./postgres-server.ts";

/**
 * Question: 32 clients that each make ten rows durable at a time, here by HTTP with keys, there by INSERT into
 * PostgreSQL: how many rows per second, and how long does each wait?
 *
 *     node bench/peers/small.ts [--rows 50000] [--rows-per-request 10] [--clients 32] [--rounds 5]
 */
const OPTIONS = {
  rows: { type: "string", default: "50000" },
  "rows-per-request": { type: "string", default: "10" },
  clients: { type: "string", default: "32" },
  rounds: { type: "string", default: "5" },
} as const;

type Run = {
  wallSeconds: number;
  serverCpuSeconds: number;
  clientCpuSeconds: number;
  p50Ms: number;
  p99Ms: number;
  diskBytes: number;
};
type Load = { rowsPerInsert: number; clients: number };

async function main(args: readonly string[]): Promise<void> {
  const options = readArguments(args, OPTIONS);
  const [base] = PRESETS["rows10"] ?? [];
  if (base === undefined) throw new Error("there is no preset rows10");
  const load = { rowsPerInsert: options.count("rows-per-request"), clients: options.count("clients") };
  const loadCase = {
    ...base,
    rows: options.count("rows"),
    cut: { rows: load.rowsPerInsert },
    connections: load.clients,
  };
  const rounds = ["warm_up", ...Array.from({ length: options.count("rounds") }, (_, i) => `round_${i}`)];
  console.log(machine());
  installPeers();
  const postgres = await startPostgres();
  if (postgres === undefined) return;
  try {
    await withTemporaryFolder(async (folder) => {
      const side = await startSide(loadCase, { folder, rounds });
      if (side === undefined) return;
      try {
        await compare(side, postgres, rounds, load);
      } finally {
        await side.stop();
      }
    });
  } finally {
    await postgres.stop();
  }
}

async function compare(side: Side, postgres: PostgresServer, rounds: readonly string[], load: Load): Promise<void> {
  const pairs: { engine: Run; postgres: Run }[] = [];
  for (const round of rounds) {
    const engine = await runEngine(side, round);
    const peer = await runPostgres(postgres, side.data, { ...load, table: round });
    if (round !== "warm_up") pairs.push({ engine, postgres: peer });
  }
  const { rows, sizeBytes } = side.data;
  console.log(
    `${rows} rows of ${side.data.name}, ${load.rowsPerInsert} at a time from ${load.clients} clients, ${pairs.length} pairs`,
  );
  const line = (name: "engine" | "postgres") => {
    const of = (figure: (run: Run) => number) => median(pairs.map((pair) => figure(pair[name])));
    return [
      name,
      shown(rows / of((run) => run.wallSeconds)),
      shown(sizeBytes / 1e6 / of((run) => run.serverCpuSeconds)),
      shown(of((run) => run.p50Ms)),
      shown(of((run) => run.p99Ms)),
      shown(of((run) => run.diskBytes) / 1e6),
      shown(of((run) => run.clientCpuSeconds)),
    ];
  };
  const ratio = (figure: (run: Run) => number) =>
    `${shown(median(pairs.map((pair) => figure(pair.postgres) / figure(pair.engine))))}×`;
  printTable(
    ["", "rows/s", "MB/CPU-s", "p50 ms", "p99 ms", "disk MB", "client CPU-s"],
    [
      line("engine"),
      line("postgres"),
      ["engine / postgres", ratio((run) => run.wallSeconds), ratio((run) => run.serverCpuSeconds)],
    ],
  );
}

async function runEngine(side: Side, round: string): Promise<Run> {
  const run = await side.run(round);
  const { wallSeconds, serverCpuSeconds, cpuSeconds, latencyMs, diskBytes } = run;
  return {
    wallSeconds,
    serverCpuSeconds,
    clientCpuSeconds: cpuSeconds,
    p50Ms: latencyMs.p50,
    p99Ms: latencyMs.p99,
    diskBytes,
  };
}

const CHILD = fileURLToPath(new URL("./postgres-child.ts", import.meta.url));

async function runPostgres(server: PostgresServer, file: DataFile, load: Load & { table: string }): Promise<Run> {
  const child = fork(CHILD, { execArgv: [], stdio: ["ignore", "ignore", "inherit", "ipc"] });
  await next(child, "ready", { port: server.port, file, ...load });
  const cpuBefore = cpuSecondsOf(server.pid);
  const { run } = await next(child, "done", "go");
  const serverCpuSeconds = cpuSecondsOf(server.pid) - cpuBefore;
  const { answers, diskBytes } = await next(child, "answers", "go");
  mustAgree("postgres", answers, file.expected);
  const { wallSeconds, cpuSeconds, p50Ms, p99Ms } = run;
  return { wallSeconds, serverCpuSeconds, clientCpuSeconds: cpuSeconds, p50Ms, p99Ms, diskBytes };
}

/** Says something to the clients and resolves with what they answer, which must be of that kind. */
function next<K extends PostgresMessage["kind"]>(
  child: ChildProcess,
  kind: K,
  say: PostgresJob | "go",
): Promise<Extract<PostgresMessage, { kind: K }>> {
  return new Promise((resolve, reject) => {
    const ended = () => reject(new Error("the clients of postgres failed"));
    child.once("exit", ended);
    child.once("message", (message) => {
      child.off("exit", ended);
      const told = message as PostgresMessage;
      if (told.kind === kind) resolve(told as Extract<PostgresMessage, { kind: K }>);
      else reject(new Error(`the clients said ${told.kind} instead of ${kind}`));
    });
    child.send(say);
  });
}

await main(process.argv.slice(2));
