import { systemClock } from "../../src/core/clock.ts";
import { memoryOf, resetPeak } from "../support/process-stats.ts";
import { median } from "../../src/capacity/quantile.ts";
import { SECOND_NS } from "../support/commits.ts";
import { openDuckDbExtents } from "./duckdb-extents.ts";
import { openSide, type PlanningJob, type PlanningResult } from "./planning-side.ts";

/** The process of one side of `planning.ts`: its first plan is cold, and its memory is its own. */

/** Extents that the planned query reads. */
const TOUCHED = 10;

type Side = {
  /** Keys of the extents that the query reads. */
  plan: () => Promise<string[]>;
  /** How many extents there are, each listed as an object. */
  list: () => Promise<number>;
  close: () => Promise<void>;
};

async function open({ side, place, tableId, extents }: PlanningJob): Promise<Side> {
  const minNs = BigInt(extents - TOUCHED) * SECOND_NS;
  const atLeast = 5n;
  if (side === "duckdb") {
    const records = await openDuckDbExtents(place);
    return { ...records, plan: () => records.plan(minNs, atLeast), close: async () => records.close() };
  }
  const catalog = await openSide(side, place);
  const tests = [{ kind: "within", column: "c3", ranges: [{ min: atLeast }] }] as const;
  return {
    plan: async () => {
      const { id: atSnapshot } = await catalog.head();
      const plan = await catalog.planScan({ tableId, atSnapshot, filters: [{ range: { minNs }, tests }] });
      if (plan.total.extents !== extents) throw new Error(`the plan knows ${plan.total.extents} extents`);
      return plan.extents.map(({ key }) => key);
    },
    list: async () => (await catalog.extents(tableId, (await catalog.head()).id, {}, [])).length,
    close: () => catalog.close(),
  };
}

async function measure(job: PlanningJob): Promise<PlanningResult> {
  const side = await open(job);
  const startBytes = memoryOf(process.pid).residentBytes;
  const [firstPlanMs, keys] = await timed(side.plan);
  const planMs: number[] = [];
  for (let i = 0; i < job.plans; i++) planMs.push((await timed(side.plan))[0]);
  const planBytes = memoryOf(process.pid).residentBytes - startBytes;
  resetPeak(process.pid);
  const [listMs, listed] = await timed(side.list);
  if (listed !== job.extents) throw new Error(`${listed} extents are listed, not ${job.extents}`);
  const listBytes = memoryOf(process.pid).peakBytes - startBytes;
  await side.close();
  return { firstPlanMs, planMs: median(planMs), listMs, planBytes, listBytes, found: keys.toSorted().join(" ") };
}

async function timed<T>(work: () => Promise<T>): Promise<[number, T]> {
  const startedMs = systemClock.monotonicMs();
  const result = await work();
  return [systemClock.monotonicMs() - startedMs, result];
}

const result = await measure(JSON.parse(process.argv[2] ?? "") as PlanningJob);
await new Promise<void>((resolve) => process.send?.(result, () => resolve()));
process.disconnect();
