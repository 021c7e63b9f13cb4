import { ANONYMOUS } from "../../src/auth/caller.ts";
import { holdOf } from "../../src/fabric/job.ts";
import { quantile } from "../../src/capacity/quantile.ts";
import { printTable, shown } from "../support/report.ts";
import { openFabric } from "./systems.ts";

const CLAIMS = 500;
const KIND = "bench.job";

/** Times single claims, each of a queue with jobs to spare: of few jobs, and of `crowd` queued and as many finished. */
export async function measureClaims(url: string, crowd: number): Promise<void> {
  const { fabric, catalog, close } = await openFabric(url);
  try {
    const fill = (count: number) =>
      Promise.all(Array.from({ length: count }, (_, n) => fabric.enqueue({ kind: KIND, payload: n }, ANONYMOUS)));
    const claims = async () => {
      const times = new Float64Array(CLAIMS);
      for (let i = 0; i < CLAIMS; i++) {
        const beganMs = performance.now();
        const [job] = await fabric.claim({
          kinds: new Set([KIND]),
          labels: {},
          workerId: undefined,
          jobsOf: "everybody",
          holder: "bench",
          max: 1,
          waitMs: 0,
        });
        times[i] = performance.now() - beganMs;
        if (job === undefined) throw new Error("there was no job to claim");
        await fabric.complete(holdOf(job), null);
      }
      return times.sort();
    };
    await fill(CLAIMS);
    await claims();
    await fill(CLAIMS);
    const few = await claims();
    await fill(CLAIMS);
    for (const status of ["queued", "done"]) await crowdWith(catalog.records, status, crowd);
    await claims();
    const many = await claims();
    printTable(["claim beside", "p50 ms", "p99 ms"], [row("nothing", few), row(`2 × ${crowd} jobs`, many)]);
    const ratio = quantile(many, 0.5) / quantile(few, 0.5);
    console.log(`a claim beside 2 × ${crowd} jobs: ${shown(ratio)}× the time`);
  } finally {
    await close();
  }
}

function row(name: string, times: Float64Array): string[] {
  return [name, ...[0.5, 0.99].map((q) => shown(quantile(times, q)))];
}

type Records = Awaited<ReturnType<typeof openFabric>>["catalog"]["records"];

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
