import { z } from "zod";
import { ANONYMOUS } from "../../src/auth/caller.ts";
import type { CatalogDatabase } from "../../src/catalog/catalog-database.ts";
import { sleep, systemClock } from "../../src/core/clock.ts";
import { uuidV7Source } from "../../src/core/ids.ts";
import { silentLog } from "../../src/core/log.ts";
import { systemRandom } from "../../src/core/random.ts";
import { Fabric } from "../../src/fabric/fabric.ts";
import { JobKinds } from "../../src/fabric/kinds.ts";
import { LocalPort } from "../../src/fabric/local-port.ts";
import { JobRunner } from "../../src/fabric/runner.ts";

/** A queue of short jobs with the workers that take them, in this process. */
export type JobSystem = {
  /** Resolves when the job is durable. */
  enqueue(n: number): Promise<void>;
  /** Jobs that are stored and not durably finished. */
  unfinished(): Promise<number>;
  stop(): Promise<void>;
};

export const BENCH_JOB = "bench.job";
const newId = uuidV7Source(systemClock, systemRandom);

/** The fabric of one node, as a role makes it. */
export function fabricOn({ records, signals }: Pick<CatalogDatabase, "records" | "signals">): Fabric {
  return new Fabric({
    records,
    signals,
    kinds: new JobKinds([{ name: BENCH_JOB, payload: z.int(), enqueue: "write", claim: "both" }]),
    clock: systemClock,
    random: systemRandom,
    newId,
    log: silentLog,
    leaseMs: 300_000,
  });
}

export type RunJobsOptions = {
  /** The handler: it is told the number that the job was enqueued with. */
  onRun: (n: number) => void;
  /** Called when nothing runs any more. */
  close: () => Promise<void>;
};

/** Has so many workers in this process take jobs of the fabric. */
export function runJobsOf(fabric: Fabric, workers: number, { onRun, close }: RunJobsOptions): JobSystem {
  const nothing = { logs: { append: async () => undefined }, credential: async () => undefined };
  const runner = new JobRunner({
    port: new LocalPort({ fabric, newId, ...nothing }),
    handlers: [{ kind: BENCH_JOB, run: async ({ payload }) => onRun(Number(payload)) }],
    slots: workers,
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
  });
  const running = runner.run();
  return {
    enqueue: async (n) => void (await fabric.enqueue({ kind: BENCH_JOB, payload: n }, ANONYMOUS)),
    unfinished: async () => (await fabric.countUnfinished()).reduce((sum, { count }) => sum + count, 0),
    async stop() {
      await runner.drain(1_000);
      await running;
      await close();
    },
  };
}

/** So many producers enqueue one job after the other; resolves when all jobs are durably finished. */
export async function flood(system: JobSystem, plan: { from: number; jobs: number; producers: number }): Promise<void> {
  let next = plan.from;
  const produce = async () => {
    while (next < plan.from + plan.jobs) await system.enqueue(next++);
  };
  await Promise.all(Array.from({ length: plan.producers }, produce));
  while ((await system.unfinished()) > 0) await sleep(systemClock, 2);
}
