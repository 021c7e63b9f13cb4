import { z } from "zod";
import { ANONYMOUS } from "../../src/auth/caller.ts";
import { sleep, systemClock } from "../../src/core/clock.ts";
import { holdOf } from "../../src/fabric/job.ts";
import { quantile } from "../../src/capacity/quantile.ts";
import { requiredPostgres } from "../peers/postgres-server.ts";
import { defineBenchmark } from "../suite/benchmark.ts";
import { BENCH_JOB } from "../support/fabric.ts";
import { claimOne, openFabric } from "./systems.ts";

export const benchmark = defineBenchmark({
  name: "fabric/waiting",
  question:
    "What do very many claims that wait cost a node while nothing is enqueued, and how soon does one of them get a job " +
    "that another node enqueues?",
  notMeasured: "HTTP connections of the workers that wait.",
  options: z.strictObject({
    claims: z.coerce.number().int().positive().default(1_000).describe("that wait"),
    wakes: z.coerce
      .number()
      .int()
      .positive()
      .default(100)
      .describe("jobs, one every 20 ms; no more than there are claims"),
    idleMs: z.coerce.number().positive().default(5_000).describe("that CPU is watched for"),
  }),
  measures: {
    idle: { unit: "CPU ms/s", better: "less", doc: "of this process, with no claim" },
    waiting: { unit: "CPU ms/s", better: "less", doc: "of this process, with all of them" },
    wake: { unit: "ms", better: "less", doc: "from enqueue to claim: median" },
    wakeP99: { unit: "ms", better: "less", doc: "from enqueue to claim: but for 1 %" },
  },
  rounds: 3,
  open: async (plan) => {
    const server = await requiredPostgres("fabric/waiting");
    const round = async () => measureWaiting(await server.createDatabase(), plan);
    return { sides: [{ name: "engine", round }], close: () => server.stop() };
  },
});

const WAKE_EVERY_MS = 20;
const SETTLE_MS = 1_000;
const WAIT_MS = 3_600_000;

type Plan = { claims: number; wakes: number; idleMs: number };

async function measureWaiting(url: string, { claims, wakes, idleMs }: Plan): Promise<Record<string, number>> {
  const [node, other] = [await openFabric(url), await openFabric(url)];
  try {
    const idle = await cpuMsPerSecond(idleMs);
    const leaving = new AbortController();
    const timesMs: number[] = [];
    let askedMs = 0;
    const take = async () => {
      const job = await claimOne(node.fabric, { waitMs: WAIT_MS, signal: leaving.signal });
      if (job === undefined) return;
      timesMs.push(systemClock.monotonicMs() - askedMs);
      await node.fabric.complete(holdOf(job), null);
    };
    const all = Promise.all(Array.from({ length: claims }, take));
    await sleep(systemClock, SETTLE_MS);
    const waiting = await cpuMsPerSecond(idleMs);
    for (let i = 0; i < Math.min(wakes, claims); i++) {
      askedMs = systemClock.monotonicMs();
      await other.fabric.enqueue({ kind: BENCH_JOB, payload: i }, ANONYMOUS);
      while (timesMs.length <= i) await sleep(systemClock, 1);
      await sleep(systemClock, WAKE_EVERY_MS);
    }
    leaving.abort();
    await all;
    const sorted = Float64Array.from(timesMs).sort();
    return { idle, waiting, wake: quantile(sorted, 0.5), wakeP99: quantile(sorted, 0.99) };
  } finally {
    await Promise.all([node.close(), other.close()]);
  }
}

async function cpuMsPerSecond(overMs: number): Promise<number> {
  const before = process.cpuUsage();
  await sleep(systemClock, overMs);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000 / (overMs / 1_000);
}
