import { ANONYMOUS } from "../../src/auth/caller.ts";
import { sleep, systemClock } from "../../src/core/clock.ts";
import { holdOf, type Job } from "../../src/fabric/job.ts";
import { quantile } from "../../src/capacity/quantile.ts";
import { printTable, shown } from "../support/report.ts";
import { openFabric } from "./systems.ts";

const KIND = "bench.job";
const WAKES = 100;
const WAKE_EVERY_MS = 20;

/** What claims that wait cost while nothing is enqueued, and how soon one of them gets a job of another node. */
export async function measureWaiting(url: string, plan: { claims: number; idleMs: number }): Promise<void> {
  const { claims, idleMs } = plan;
  const [node, other] = [await openFabric(url), await openFabric(url)];
  const leaving = new AbortController();
  const wait = async (): Promise<Job | undefined> => {
    const [kinds, labels] = [new Set([KIND]), {}];
    const claim = {
      kinds,
      labels,
      workerId: undefined,
      jobsOf: "everybody" as const,
      holder: "bench",
      max: 1,
      waitMs: 3_600_000,
    };
    return (await node.fabric.claim({ ...claim, signal: leaving.signal }))[0];
  };
  try {
    const alone = await cpuMsPerSecond(idleMs);
    const waiting = new Set<Promise<void>>();
    const times: number[] = [];
    let askedMs = 0;
    const take = async () => {
      const job = await wait();
      if (job === undefined) return;
      times.push(performance.now() - askedMs);
      await node.fabric.complete(holdOf(job), null);
    };
    for (let i = 0; i < claims; i++) waiting.add(take());
    await sleep(systemClock, 1_000);
    const crowded = await cpuMsPerSecond(idleMs);
    for (let i = 0; i < Math.min(WAKES, claims); i++) {
      askedMs = performance.now();
      await other.fabric.enqueue({ kind: KIND, payload: i }, ANONYMOUS);
      while (times.length <= i) await sleep(systemClock, 1);
      await sleep(systemClock, WAKE_EVERY_MS);
    }
    leaving.abort();
    await Promise.all(waiting);
    const sorted = Float64Array.from(times).sort();
    printTable(
      ["claims that wait", "CPU ms/s of this process", "enqueue to claim p50 ms", "p99 ms"],
      [
        ["0", shown(alone), "", ""],
        [String(claims), shown(crowded), shown(quantile(sorted, 0.5)), shown(quantile(sorted, 0.99))],
      ],
    );
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
