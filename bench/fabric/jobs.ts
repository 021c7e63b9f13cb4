import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { startPostgres, type PostgresServer } from "../peers/postgres-server.ts";
import { installPeers } from "../peers/install.ts";
import { readArguments } from "../support/arguments.ts";
import { median } from "../../src/capacity/quantile.ts";
import { machine, printTable, shown } from "../support/report.ts";
import { measureClaims } from "./claims.ts";
import type { ChildPlan, ChildResult } from "./jobs-child.ts";
import { SYSTEMS } from "./systems.ts";
import { measureWaiting } from "./waiting.ts";

/**
 * Questions: how many short jobs a second go from enqueue to done on PostgreSQL, and how long does one wait until it
 * starts, against pg-boss and graphile-worker on the same server; what does a claim cost beside very many jobs; and what do
 * claims cost that wait?
 *
 *     node bench/fabric/jobs.ts [--jobs 5000] [--paced 300] [--workers 8] [--producers 8] [--rounds 3] [--crowd 1000000]
 *         [--waiting 1000] [--idle 10] [--systems engine,graphile-worker]
 *
 * Each producer enqueues a job when its last one is durable; a job is done when that is durable. All systems have as many
 * workers and sessions, a process of their own, and `fsync=on`; the peers run as they come and in the settings that
 * their documentation names for many short jobs, and the better one counts. Rounds take the systems in turn. That each
 * job ran, and ran once, is checked.
 */
const OPTIONS = {
  jobs: { type: "string", default: "5000" },
  paced: { type: "string", default: "300" },
  workers: { type: "string", default: "8" },
  producers: { type: "string", default: "8" },
  rounds: { type: "string", default: "3" },
  waiting: { type: "string", default: "1000" },
  idle: { type: "string", default: "10" },
  crowd: { type: "string", default: "1000000" },
  systems: { type: "string", default: Object.keys(SYSTEMS).join(",") },
} as const;

const OURS = "engine";
const CHILD = fileURLToPath(new URL("jobs-child.ts", import.meta.url));
const run = promisify(execFile);

export async function main(args: readonly string[]): Promise<void> {
  const options = readArguments(args, OPTIONS);
  console.log(machine());
  const server = await startPostgres();
  if (server === undefined) return;
  try {
    const systems = (options.text("systems") ?? OURS).split(",");
    if (systems.some((name) => name !== OURS)) installPeers();
    const [jobs, paced] = [options.count("jobs"), options.count("paced")];
    const [workers, producers] = [options.count("workers"), options.count("producers")];
    await compare({ server, systems, rounds: options.count("rounds") }, { jobs, paced, workers, producers });
    await measureClaims(await newDatabase(server, "claims"), options.count("crowd"));
    await measureWaiting(await newDatabase(server, "waiting"), {
      claims: options.count("waiting"),
      idleMs: options.count("idle") * 1_000,
    });
  } finally {
    await server.stop();
  }
}

type Comparison = { server: PostgresServer; systems: readonly string[]; rounds: number };

async function compare({ server, systems, rounds }: Comparison, plan: ChildPlan): Promise<void> {
  const results = new Map<string, ChildResult[]>(systems.map((name) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    for (const [i, [name, all]] of [...results].entries()) {
      const url = await newDatabase(server, `round_${round}_${i}`);
      const { stdout } = await run(process.execPath, [CHILD, name, url, JSON.stringify(plan)]);
      all.push(JSON.parse(stdout) as ChildResult);
    }
  }
  const of = (name: string, what: keyof ChildResult) => median((results.get(name) ?? []).map((result) => result[what]));
  const row = (name: string) => [
    name,
    ...(["jobsPerSec", "cpuMsPerJob", "startP50Ms", "startP99Ms"] as const).map((what) => shown(of(name, what))),
  ];
  printTable(["system", "jobs/s", "CPU ms/job", "start p50 ms", "start p99 ms"], [...results.keys()].map(row));
  const peers = [...results.keys()].filter((name) => name !== OURS);
  if (peers.length === 0) return;
  const best = peers.toSorted((a, b) => of(b, "jobsPerSec") - of(a, "jobsPerSec"))[0] ?? "";
  // Round by round, so that what slowed the machine slowed both.
  const ratios = (results.get(OURS) ?? []).map(
    (ours, i) => ours.jobsPerSec / (results.get(best)?.[i]?.jobsPerSec ?? NaN),
  );
  console.log(`${OURS} / ${best}: ${shown(median(ratios))}× the jobs a second`);
}

/** The address of a new database. */
async function newDatabase(server: PostgresServer, name: string): Promise<string> {
  const { default: postgres } = await import("postgres");
  const address = `postgres://bench@127.0.0.1:${server.port}`;
  const sql = postgres(`${address}/postgres`, { max: 1 });
  await sql.unsafe(`CREATE DATABASE ${name}`);
  await sql.end();
  return `${address}/${name}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.slice(2));
