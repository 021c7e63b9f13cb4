import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { ANONYMOUS, type Caller } from "../../src/auth/caller.ts";
import { ownerFilterWithin } from "../../src/auth/owner.ts";
import type { CatalogDatabase } from "../../src/catalog/catalog-database.ts";
import { systemClock } from "../../src/core/clock.ts";
import { uuidV7Source } from "../../src/core/ids.ts";
import { silentLog } from "../../src/core/log.ts";
import { systemRandom } from "../../src/core/random.ts";
import { Fabric } from "../../src/fabric/fabric.ts";
import { JobKinds } from "../../src/fabric/kinds.ts";
import { startPostgres } from "../peers/postgres-server.ts";
import { defineBenchmark, type Side } from "../suite/benchmark.ts";
import { openPostgres, openSqlite } from "../support/open-catalog.ts";
import { quantile } from "../../src/capacity/quantile.ts";

export const benchmark = defineBenchmark({
  name: "fabric/lists",
  question: "What does a list of jobs cost a caller who owns few of very many, on both catalogs?",
  notMeasured: "HTTP. The jobs are of several kinds and owners, some cancelled. Without PostgreSQL it is SQLite alone.",
  options: z.strictObject({
    jobs: z.coerce.number().int().positive().default(10_000).describe("of all callers"),
    own: z.coerce.number().int().positive().default(10).describe("of the one who asks"),
    lists: z.coerce.number().int().positive().default(500).describe("of each kind in one round"),
  }),
  measures: {
    own: { unit: "ms", better: "less", doc: "the caller's jobs: median" },
    ownP99: { unit: "ms", better: "less", doc: "the caller's jobs: but for 1 %" },
    all: { unit: "ms", better: "less", doc: "50 of all jobs, for an administrator: median" },
    allP99: { unit: "ms", better: "less", doc: "50 of all jobs, for an administrator: but for 1 %" },
  },
  rounds: 5,
  open: async (plan, { folder }) => {
    await mkdir(folder, { recursive: true });
    const ends: (() => Promise<void>)[] = [];
    const close = async () => {
      for (const end of ends.toReversed()) await end();
    };
    try {
      const sides = [await sideOf("sqlite", await openSqlite(join(folder, "catalog.db")), plan, ends)];
      const server = await startPostgres();
      if (server !== undefined) {
        ends.push(() => server.stop());
        const catalog = await openPostgres(await server.createDatabase(), SESSIONS);
        sides.push({ ...(await sideOf("postgres", catalog, plan, ends)), processes: () => ({ postgres: server.pid }) });
      }
      return { sides, close };
    } catch (error) {
      await close();
      throw error;
    }
  },
});

const KINDS = ["bench.a", "bench.b", "bench.c", "bench.d"];
const AT_ONCE = 500;
const PAGE = 50;
const SESSIONS = 10;
const ANN: Caller = { ...ANONYMOUS, kind: "session", subject: "ann", role: "write" };

type Plan = { jobs: number; own: number; lists: number };

/** Fills the catalog with jobs. That a list has the caller's jobs and no others is checked each time. */
async function sideOf(
  name: string,
  catalog: CatalogDatabase,
  { jobs, own, lists }: Plan,
  ends: (() => Promise<void>)[],
): Promise<Side> {
  ends.push(() => catalog.close());
  const fabric = fabricOn(catalog);
  ends.push(async () => fabric.close());
  const mine = await fill(fabric, jobs, own);
  const times = async (caller: Caller) => {
    const taken = new Float64Array(lists);
    for (let i = 0; i < lists; i++) {
      const beganMs = performance.now();
      const found = await fabric.list({ databases: undefined, owner: ownerFilterWithin(caller), limit: PAGE });
      taken[i] = performance.now() - beganMs;
      if (caller === ANN && found.map(({ id }) => id).join() !== mine.slice(0, PAGE).join())
        throw new Error("these are not Ann's jobs");
    }
    return taken.sort();
  };
  const round = async () => {
    const [few, many] = [await times(ANN), await times(ANONYMOUS)];
    return {
      own: quantile(few, 0.5),
      ownP99: quantile(few, 0.99),
      all: quantile(many, 0.5),
      allP99: quantile(many, 0.99),
    };
  };
  return { name, round };
}

function fabricOn({ records, signals }: CatalogDatabase): Fabric {
  return new Fabric({
    records,
    signals,
    kinds: new JobKinds(KINDS.map((kind) => ({ name: kind, payload: z.int(), enqueue: "write", claim: "both" }))),
    clock: systemClock,
    random: systemRandom,
    newId: uuidV7Source(systemClock, systemRandom),
    log: silentLog,
    leaseMs: 300_000,
  });
}

/** Ids of those that are Ann's, newest first; they lie among the others. */
async function fill(fabric: Fabric, jobs: number, own: number): Promise<string[]> {
  const every = Math.floor(jobs / own);
  const mine: string[] = [];
  for (let from = 0; from < jobs; from += AT_ONCE) {
    const count = Math.min(AT_ONCE, jobs - from);
    await Promise.all(
      Array.from({ length: count }, async (_, i) => {
        const n = from + i;
        const isMine = n % every === 0 && n / every < own;
        const caller = isMine ? ANN : { ...ANN, subject: `user-${n % 20}` };
        const { job } = await fabric.enqueue({ kind: KINDS[n % KINDS.length] ?? "", payload: n }, caller);
        if (n % 3 === 0) await fabric.cancel(job.id);
        if (isMine) mine.push(job.id);
      }),
    );
  }
  return mine.toSorted().toReversed();
}
