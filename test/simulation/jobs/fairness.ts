import { ANONYMOUS } from "../../../src/auth/caller.ts";
import { openMemoryCatalog } from "../../../src/catalog/sqlite/memory.test-kit.ts";
import { ManualClock } from "../../../src/core/clock.ts";
import { uuidV7Source } from "../../../src/core/ids.ts";
import { silentLog } from "../../../src/core/log.ts";
import { seededRandom } from "../../../src/core/random.ts";
import { Fabric } from "../../../src/fabric/fabric.ts";
import { holdOf } from "../../../src/fabric/job.ts";
import { JobKinds } from "../../../src/fabric/kinds.ts";
import { KINDS, LEASE_MS } from "./world.ts";

const DATABASES = ["a", "b", "c"];
const STEPS = 300;

/**
 * One node, one claimant that takes a job at a time, and groups (a kind and a database) of which some always have jobs
 * and others come and go. Gives the most claims that a group waited for which had a job all the time, and how many groups
 * there are.
 */
export async function longestWait(seed: number): Promise<{ claims: number; groups: number }> {
  const random = seededRandom(seed);
  const clock = new ManualClock();
  const { catalog, connection } = openMemoryCatalog(clock);
  const { records, signals } = catalog;
  const newId = uuidV7Source(clock, random);
  const kinds = new JobKinds(KINDS);
  const fabric = new Fabric({ records, signals, kinds, clock, random, newId, log: silentLog, leaseMs: LEASE_MS });
  const groups = KINDS.flatMap(({ name: kind }) => DATABASES.map((database) => ({ kind, database, share: 0 })));
  // Of each claim, how likely it is that the group gets a job before it.
  for (const group of groups) group.share = [0.05, 0.2, 0.5, 1][Math.floor(random.next() * 4)] ?? 0;
  const waits = new Map<string, number>();
  let longest = 0;
  for (let step = 0; step < STEPS; step++) {
    for (const { kind, database, share } of groups) {
      const priority = Math.floor(random.next() * 3);
      if (random.next() < share) await fabric.enqueue({ kind, database, priority, payload: step }, ANONYMOUS);
    }
    const rows = await records.rows("SELECT DISTINCT kind, database_name FROM jobs WHERE status = 'queued'");
    const waiting = rows.map((row) => `${String(row["kind"])} ${String(row["database_name"])}`);
    const claim = { holder: "w", workerId: undefined, jobsOf: "everybody" as const, labels: {}, max: 1, waitMs: 0 };
    const [job] = await fabric.claim({ ...claim, kinds: new Set(KINDS.map(({ name }) => name)) });
    for (const group of waiting) waits.set(group, (waits.get(group) ?? 0) + 1);
    if (job !== undefined) {
      waits.delete(`${job.kind} ${job.database}`);
      await fabric.complete(holdOf(job), null);
    }
    longest = Math.max(longest, ...waits.values());
    clock.advance(Math.floor(random.next() * 3_000));
  }
  fabric.close();
  connection.close();
  return { claims: longest, groups: groups.length };
}
