import { sleep, systemClock } from "../../src/core/clock.ts";
import { quantile } from "../../src/capacity/quantile.ts";
import { flood } from "../support/fabric.ts";
import { SYSTEMS } from "./systems.ts";

/** One system, measured in a process of its own: `node jobs-child.ts <system> <url> <plan as JSON>`; prints JSON. */
export type ChildPlan = { workers: number; producers: number; jobs: number; paced: number };

export type ChildResult = {
  jobsPerSec: number;
  /** Of this process, for each job. */
  cpuMsPerJob: number;
  startP50Ms: number;
  startP99Ms: number;
};

const PACE_MS = 20;
const SETTLE_MS = 1_000;

async function main([name = "", url = "", plan = ""]: readonly string[]): Promise<void> {
  const start = SYSTEMS[name];
  if (start === undefined) throw new Error(`there is no system ${name}`);
  const { workers, producers, jobs, paced } = JSON.parse(plan) as ChildPlan;
  const startedAtMs = new Map<number, number>();
  const system = await start(url, workers, (n) => {
    if (startedAtMs.has(n)) throw new Error(`job ${n} ran twice`);
    startedAtMs.set(n, performance.now());
  });
  // Statements are prepared, and code is compiled.
  await flood(system, { from: -500, jobs: 500, producers });
  startedAtMs.clear();

  const cpu = process.cpuUsage();
  const beganMs = performance.now();
  await flood(system, { from: 0, jobs, producers });
  const seconds = (performance.now() - beganMs) / 1_000;
  const { user, system: kernel } = process.cpuUsage(cpu);
  if (startedAtMs.size !== jobs) throw new Error(`${startedAtMs.size} of ${jobs} jobs ran`);

  await sleep(systemClock, SETTLE_MS);
  const waits = new Float64Array(paced);
  for (let i = 0; i < paced; i++) {
    const n = jobs + i;
    const askedMs = performance.now();
    await system.enqueue(n);
    await sleep(systemClock, PACE_MS);
    while (!startedAtMs.has(n)) await sleep(systemClock, 1);
    waits[i] = (startedAtMs.get(n) ?? 0) - askedMs;
  }
  waits.sort();
  await system.stop();
  const result: ChildResult = {
    jobsPerSec: jobs / seconds,
    cpuMsPerJob: (user + kernel) / 1_000 / jobs,
    startP50Ms: quantile(waits, 0.5),
    startP99Ms: quantile(waits, 0.99),
  };
  console.log(JSON.stringify(result));
}

await main(process.argv.slice(2));
