import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { z } from "zod";
import { installPeers } from "../peers/install.ts";
import { requiredPostgres } from "../peers/postgres-server.ts";
import { defineBenchmark, type Side } from "../suite/benchmark.ts";
import type { ChildPlan, ChildResult } from "./jobs-child.ts";
import { OURS, SYSTEMS } from "./systems.ts";

export const benchmark = defineBenchmark({
  name: "fabric/jobs",
  question:
    "How many short jobs a second go from enqueue to done on PostgreSQL, and how long does one wait until it starts, " +
    "against pg-boss and graphile-worker on the same server?",
  notMeasured:
    "Networks, and jobs that do something. Each producer enqueues a job when its last one is durable; a job is done when " +
    "that is durable. All systems have as many workers and sessions, and a process of their own; the peers run as they " +
    "come and in the settings that their documentation names for many short jobs. Each job must run once.",
  options: z.strictObject({
    jobs: z.coerce.number().int().positive().default(5_000).describe("as fast as they go"),
    paced: z.coerce.number().int().positive().default(300).describe("one every 20 ms, for how soon they start"),
    workers: z.coerce.number().int().positive().default(8).describe("of each system"),
    producers: z.coerce.number().int().positive().default(8).describe("each with one job at a time"),
    peers: z.stringbool().default(true).describe("false leaves them out"),
  }),
  measures: {
    jobs: { unit: "jobs/s", better: "more", doc: "from enqueue to done" },
    cpu: { unit: "CPU ms", better: "less", doc: "of the system's process for each job" },
    start: { unit: "ms", better: "less", doc: "from enqueue until it starts: median" },
    startP99: { unit: "ms", better: "less", doc: "from enqueue until it starts: but for 1 %" },
  },
  rounds: 3,
  hasPeers: true,
  open: async ({ peers, ...plan }) => {
    const server = await requiredPostgres("fabric/jobs");
    if (peers) installPeers();
    const names = Object.keys(SYSTEMS).filter((name) => peers || name === OURS);
    const sideOf = (name: string): Side => ({
      name,
      round: async () => valuesOf(await measureIn(name, await server.createDatabase(), plan)),
      processes: () => ({ postgres: server.pid }),
    });
    return { sides: names.map(sideOf), close: () => server.stop() };
  },
});

const CHILD = fileURLToPath(new URL("./jobs-child.ts", import.meta.url));
const run = promisify(execFile);

async function measureIn(name: string, url: string, plan: ChildPlan): Promise<ChildResult> {
  const { stdout } = await run(process.execPath, [CHILD, name, url, JSON.stringify(plan)]);
  return JSON.parse(stdout) as ChildResult;
}

function valuesOf({ jobsPerSec, cpuMsPerJob, startP50Ms, startP99Ms }: ChildResult): Record<string, number> {
  return { jobs: jobsPerSec, cpu: cpuMsPerJob, start: startP50Ms, startP99: startP99Ms };
}
