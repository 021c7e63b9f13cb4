import type { Costs } from "../../src/capacity/costs/costs.ts";
import { fabricOn, flood, runJobsOf } from "../support/fabric.ts";
import type { MeasuredCatalog } from "./catalogs.ts";
import type { StepContext } from "./step.ts";

export type JobsObservation = Costs["jobs"][number];

const CLAIMERS = [1, 8];
const WARM_UP_JOBS = 100;

/** Jobs that do nothing, from enqueue to done, with as many who enqueue as who claim. The CPU is of engine and database. */
export async function measureJobs(
  { signal, brief }: Pick<StepContext, "signal" | "brief">,
  on: MeasuredCatalog,
): Promise<JobsObservation[]> {
  const observations: JobsObservation[] = [];
  for (const claimers of CLAIMERS) {
    signal.throwIfAborted();
    observations.push(await observeJobs(on, claimers, brief ? 50 : 1_000 * Math.min(claimers, 3)));
  }
  return observations;
}

async function observeJobs(on: MeasuredCatalog, claimers: number, jobs: number): Promise<JobsObservation> {
  const ran = new Set<number>();
  const fabric = fabricOn(on.catalog);
  const system = runJobsOf(fabric, claimers, {
    onRun: (n) => {
      if (ran.has(n)) throw new Error(`job ${n} ran twice`);
      ran.add(n);
    },
    close: async () => fabric.close(),
  });
  try {
    await flood(system, { from: -WARM_UP_JOBS, jobs: WARM_UP_JOBS, producers: claimers });
    ran.clear();
    const cpuOf = () => on.ownCpuSeconds() + on.databaseCpuSeconds();
    const cpuBefore = cpuOf();
    const startedMs = performance.now();
    await flood(system, { from: 0, jobs, producers: claimers });
    const seconds = (performance.now() - startedMs) / 1_000;
    const cpuSeconds = cpuOf() - cpuBefore;
    if (ran.size !== jobs) throw new Error(`${ran.size} of ${jobs} jobs ran`);
    return { catalog: on.kind, claimers, jobs, seconds, cpuSeconds };
  } finally {
    await system.stop();
  }
}
