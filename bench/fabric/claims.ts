import { z } from "zod";
import { ANONYMOUS } from "../../src/auth/caller.ts";
import { systemClock } from "../../src/core/clock.ts";
import { holdOf } from "../../src/fabric/job.ts";
import { quantile } from "../../src/capacity/quantile.ts";
import { requiredPostgres } from "../peers/postgres-server.ts";
import { defineBenchmark, type Side } from "../suite/benchmark.ts";
import { BENCH_JOB } from "../support/fabric.ts";
import { claimOne, openFabric } from "./systems.ts";

export const benchmark = defineBenchmark({
  name: "fabric/claims",
  question: "What does a claim of a job cost beside very many queued and finished ones, against one beside none?",
  notMeasured: "Waiting: there are always jobs to claim.",
  options: z.strictObject({
    crowd: z.coerce.number().int().positive().default(1_000_000).describe("jobs that are queued, and as many done"),
    claims: z.coerce.number().int().positive().default(500).describe("of one round, one after the other"),
  }),
  measures: {
    claim: { unit: "ms", better: "less", doc: "median" },
    claimP99: { unit: "ms", better: "less", doc: "but for 1 %" },
  },
  rounds: 5,
  open: async ({ crowd, claims }) => {
    const server = await requiredPostgres("fabric/claims");
    const opened: Opened[] = [];
    const close = async () => {
      for (const one of opened) await one.close();
      await server.stop();
    };
    try {
      const [crowded, alone] = [
        await openFabric(await server.createDatabase()),
        await openFabric(await server.createDatabase()),
      ];
      opened.push(crowded, alone);
      await enqueue(crowded, 1);
      for (const status of ["queued", "done"]) await crowdWith(crowded.catalog.records, status, crowd);
      const sideOf = (name: string, one: Opened): Side => ({
        name,
        round: () => claimOneByOne(one, claims),
        processes: () => ({ postgres: server.pid }),
      });
      return { sides: [sideOf("crowded", crowded), sideOf("alone", alone)], close };
    } catch (error) {
      await close();
      throw error;
    }
  },
});

type Opened = Awaited<ReturnType<typeof openFabric>>;

async function enqueue({ fabric }: Opened, count: number): Promise<void> {
  await Promise.all(
    Array.from({ length: count }, (_, n) => fabric.enqueue({ kind: BENCH_JOB, payload: n }, ANONYMOUS)),
  );
}

async function claimOneByOne(opened: Opened, claims: number): Promise<Record<string, number>> {
  const { fabric } = opened;
  await enqueue(opened, claims);
  const timesMs = new Float64Array(claims);
  for (let i = 0; i < claims; i++) {
    const beganMs = systemClock.monotonicMs();
    const job = await claimOne(fabric, { waitMs: 0 });
    timesMs[i] = systemClock.monotonicMs() - beganMs;
    if (job === undefined) throw new Error("there was no job to claim");
    await fabric.complete(holdOf(job), null);
  }
  timesMs.sort();
  return { claim: quantile(timesMs, 0.5), claimP99: quantile(timesMs, 0.99) };
}

type Records = Opened["catalog"]["records"];

/** Copies of one job. */
async function crowdWith(records: Records, status: string, count: number): Promise<void> {
  const columns =
    "kind, lane, priority, payload, subject, caller_kind, role, attempt, max_attempts, backoff_ms, lease_ms, fence, " +
    "cancel_requested, created_at_ms, updated_at_ms";
  await records.write({
    sql:
      `INSERT INTO jobs (id, status, run_after_ms, ${columns}) SELECT 'f' || number, ?, run_after_ms + number, ${columns} ` +
      "FROM (SELECT * FROM jobs LIMIT 1) AS one, " +
      "(SELECT generate_series(CAST(? AS bigint), CAST(? AS bigint)) AS number) AS numbers RETURNING 1",
    values: [status, status === "queued" ? 0 : count, (status === "queued" ? 1 : 2) * count - 1],
  });
}
