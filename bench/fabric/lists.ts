import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { ANONYMOUS, type Caller } from "../../src/auth/caller.ts";
import { ownerFilterWithin } from "../../src/auth/owner.ts";
import { MIGRATIONS } from "../../src/catalog/migrations.test-kit.ts";
import { openPostgresCatalog } from "../../src/catalog/postgres/postgres.ts";
import type { CatalogDatabase } from "../../src/catalog/catalog-database.ts";
import { openSqliteCatalog } from "../../src/catalog/sqlite/sqlite.ts";
import { systemClock } from "../../src/core/clock.ts";
import { uuidV7Source } from "../../src/core/ids.ts";
import { silentLog } from "../../src/core/log.ts";
import { systemRandom } from "../../src/core/random.ts";
import { Fabric } from "../../src/fabric/fabric.ts";
import { JobKinds } from "../../src/fabric/kinds.ts";
import { startPostgres } from "../peers/postgres-server.ts";
import { readArguments } from "../support/arguments.ts";
import { quantile } from "../../src/capacity/quantile.ts";
import { machine, printTable, shown } from "../support/report.ts";

/**
 * Question: what does a list of jobs cost a caller who owns few of very many, on both catalogs?
 *
 *     node bench/fabric/lists.ts [--jobs 10000] [--own 10] [--lists 500]
 *
 * The jobs are of several kinds and owners, some cancelled. That the list has the caller's jobs and no others is checked.
 */
const OPTIONS = {
  jobs: { type: "string", default: "10000" },
  own: { type: "string", default: "10" },
  lists: { type: "string", default: "500" },
} as const;

const KINDS = ["bench.a", "bench.b", "bench.c", "bench.d"];
const AT_ONCE = 500;
const ANN: Caller = { ...ANONYMOUS, kind: "session", subject: "ann", role: "write" };

type Plan = { jobs: number; own: number; lists: number };

export async function main(args: readonly string[]): Promise<void> {
  const options = readArguments(args, OPTIONS);
  const plan = { jobs: options.count("jobs"), own: options.count("own"), lists: options.count("lists") };
  console.log(machine());
  const folder = mkdtempSync(join(tmpdir(), "engine-bench-"));
  try {
    const path = join(folder, "catalog.db");
    await measure(
      "sqlite",
      await openSqliteCatalog({ path, clock: systemClock, log: silentLog, migrations: MIGRATIONS, mode: "server" }),
      plan,
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
  const server = await startPostgres();
  if (server === undefined) return;
  try {
    const url = await server.createDatabase();
    const common = { clock: systemClock, random: systemRandom, mode: "server", maxConnections: 10 } as const;
    const catalog = await openPostgresCatalog({ ...common, url, migrations: MIGRATIONS, acquireTimeoutMs: 30_000 });
    await measure("postgres", catalog, plan);
  } finally {
    await server.stop();
  }
}

async function measure(name: string, catalog: CatalogDatabase, { jobs, own, lists }: Plan): Promise<void> {
  const fabric = new Fabric({
    records: catalog.records,
    signals: catalog.signals,
    kinds: new JobKinds(KINDS.map((kind) => ({ name: kind, payload: z.int(), enqueue: "write", claim: "both" }))),
    clock: systemClock,
    random: systemRandom,
    newId: uuidV7Source(systemClock, systemRandom),
    log: silentLog,
    leaseMs: 300_000,
  });
  try {
    const mine = await fill(fabric, jobs, own);
    const times = async (caller: Caller, limit: number) => {
      const taken = new Float64Array(lists);
      for (let i = 0; i < lists; i++) {
        const beganMs = performance.now();
        const found = await fabric.list({ databases: undefined, owner: ownerFilterWithin(caller), limit });
        taken[i] = performance.now() - beganMs;
        if (caller === ANN && found.map(({ id }) => id).join() !== mine.join())
          throw new Error("these are not Ann's jobs");
      }
      return taken.sort();
    };
    const rows = [
      [`${own} of ${jobs}, the caller's`, await times(ANN, 50)],
      ["50 of all, an admin's", await times(ANONYMOUS, 50)],
    ] as const;
    const shownRows = rows.map(([what, taken]) => [what, shown(quantile(taken, 0.5)), shown(quantile(taken, 0.99))]);
    printTable([name, "p50 ms", "p99 ms"], shownRows);
  } finally {
    fabric.close();
    await catalog.close();
  }
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

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.slice(2));
