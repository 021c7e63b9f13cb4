import { mkdir } from "node:fs/promises";
import { ANONYMOUS } from "../../../src/auth/caller.ts";
import type { Fabric } from "../../../src/fabric/fabric.ts";
import { holdOf } from "../../../src/fabric/job.ts";
import { withCatalog } from "../../support/catalog.ts";
import { BENCH_JOB, fabricOn } from "../../support/fabric.ts";
import { repeated } from "../catalog-figures.ts";
import { defineCurve } from "../curve.ts";

const AT_ONCE = 512;

export const curve = defineCurve({
  name: "jobs",
  question: "What do enqueueing, claiming, finishing and listing jobs cost when many wait?",
  x: { unit: "jobs", sizes: [1_000, 10_000, 100_000, 1_000_000], few: [100, 1_000] },
  series: {
    enqueue: { unit: "ms", doc: "one job, durable", promise: "flat" },
    run: { unit: "ms", doc: "one job, claimed and finished", promise: "flat" },
    list: { unit: "ms", doc: "the newest 50 of all", promise: "flat" },
  },
  open: async ({ folder, brief, signal }) => {
    await mkdir(folder, { recursive: true });
    let made = 0;
    const at = (size: number) =>
      withCatalog(folder, async (catalog) => {
        const fabric = fabricOn(catalog);
        const enqueue = async () => void (await fabric.enqueue({ kind: BENCH_JOB, payload: made++ }, ANONYMOUS));
        for (let left = size - made; left > 0; left -= AT_ONCE) {
          signal.throwIfAborted();
          await Promise.all(Array.from({ length: Math.min(AT_ONCE, left) }, enqueue));
        }
        const times = brief ? 3 : 101;
        const figures = {
          enqueue: await repeated(times, enqueue),
          run: await repeated(times, () => runOne(fabric)),
          list: await repeated(times, () => listed(fabric)),
        };
        fabric.close();
        return figures;
      });
    return { at };
  },
});

const CLAIM = { kinds: new Set([BENCH_JOB]), labels: {}, workerId: undefined, jobsOf: "everybody" } as const;

async function runOne(fabric: Fabric): Promise<void> {
  const [job] = await fabric.claim({ ...CLAIM, holder: "bench", max: 1, waitMs: 0 });
  if (job === undefined) throw new Error("no job was there to claim");
  await fabric.complete(holdOf(job), null);
}

async function listed(fabric: Fabric): Promise<void> {
  const found = await fabric.list({ databases: undefined, limit: PAGE });
  if (found.length !== PAGE) throw new Error(`${found.length} jobs were listed`);
}

const PAGE = 50;
