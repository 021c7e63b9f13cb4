import { fork, type ChildProcess } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { PRESETS } from "../load/cases.ts";
import { startSide, type Side as LoadSide } from "../load/side.ts";
import { defineBenchmark, type Side } from "../suite/benchmark.ts";
import { mustAgree } from "../support/answers.ts";
import { cpuSecondsOf } from "../support/process-stats.ts";
import type { PostgresJob, PostgresMessage } from "./postgres-child.ts";
import { requiredPostgres, type PostgresServer } from "./postgres-server.ts";

export const benchmark = defineBenchmark({
  name: "peers/small",
  question:
    "Clients that each make ten rows durable at a time, here by HTTP with keys, there by INSERT into PostgreSQL: how many " +
    "rows a second, and how long does each wait?",
  notMeasured: "Networks, COPY, and what a merge or a vacuum does later. PostgreSQL is this machine's, as it comes.",
  options: z.strictObject({
    rows: z.coerce.number().int().positive().default(50_000).describe("in one round"),
    rowsPerRequest: z.coerce.number().int().positive().default(10).describe("that become durable together"),
    clients: z.coerce.number().int().positive().default(32).describe("each with one request at a time"),
  }),
  measures: {
    rows: { unit: "rows/s", better: "more", doc: "durable and visible" },
    cpu: { unit: "MB/CPU-s", better: "more", doc: "per CPU second of the server" },
    client: { unit: "CPU s", better: "less", doc: "of the clients" },
    p50: { unit: "ms", better: "less", doc: "wait of a request" },
    p99: { unit: "ms", better: "less", doc: "wait of a request" },
    disk: { unit: "MB", better: "less", doc: "that one round takes; without PostgreSQL's log" },
  },
  rounds: 5,
  hasPeers: true,
  open: async ({ rows, rowsPerRequest, clients }, { folder, rounds }) => {
    const [base] = PRESETS["rows10"] ?? [];
    if (base === undefined) throw new Error("there is no preset rows10");
    await mkdir(folder, { recursive: true });
    const postgres = await requiredPostgres("peers/small");
    try {
      const names = Array.from({ length: rounds + 1 }, (_, round) => tableOf(round));
      const loadCase = { ...base, rows, cut: { rows: rowsPerRequest }, connections: clients };
      const load = await startSide(loadCase, { folder, rounds: names });
      if (load === undefined) throw new Error(`this machine does not have the data ${base.data}`);
      const close = async () => {
        await load.stop();
        await postgres.stop();
      };
      const job = { file: load.data, rowsPerInsert: rowsPerRequest, clients };
      return { sides: [engineSide(load), postgresSide(postgres, job)], close };
    } catch (error) {
      await postgres.stop();
      throw error;
    }
  },
});

function tableOf(round: number): string {
  return `round_${round}`;
}

type Run = {
  wallSeconds: number;
  serverCpuSeconds: number;
  clientCpuSeconds: number;
  p50Ms: number;
  p99Ms: number;
  diskBytes: number;
};

function valuesOf({ rows, sizeBytes }: PostgresJob["file"], run: Run): Record<string, number> {
  return {
    rows: rows / run.wallSeconds,
    cpu: sizeBytes / 1e6 / run.serverCpuSeconds,
    client: run.clientCpuSeconds,
    p50: run.p50Ms,
    p99: run.p99Ms,
    disk: run.diskBytes / 1e6,
  };
}

function engineSide(load: LoadSide): Side {
  let done = 0;
  const round = async () => {
    const run = await load.run(tableOf(done++));
    const { latencyMs, cpuSeconds } = run;
    return valuesOf(load.data, { ...run, clientCpuSeconds: cpuSeconds, p50Ms: latencyMs.p50, p99Ms: latencyMs.p99 });
  };
  return { name: "engine", round, processes: () => ({ server: load.server.pid }) };
}

/** Each round checks what it stored. */
function postgresSide(postgres: PostgresServer, job: Omit<PostgresJob, "port" | "table">): Side {
  let done = 0;
  const round = async () => valuesOf(job.file, await runPostgres(postgres, { ...job, table: tableOf(done++) }));
  return { name: "postgres", round, processes: () => ({ postgres: postgres.pid }) };
}

const CHILD = fileURLToPath(new URL("./postgres-child.ts", import.meta.url));

async function runPostgres(server: PostgresServer, job: Omit<PostgresJob, "port">): Promise<Run> {
  const child = fork(CHILD, { execArgv: [], stdio: ["ignore", "ignore", "inherit", "ipc"] });
  await next(child, "ready", { port: server.port, ...job });
  const cpuBefore = cpuSecondsOf(server.pid);
  const { run } = await next(child, "done", "go");
  const serverCpuSeconds = cpuSecondsOf(server.pid) - cpuBefore;
  const { answers, diskBytes } = await next(child, "answers", "go");
  mustAgree("postgres", answers, job.file.expected);
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
