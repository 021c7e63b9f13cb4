import { statfs } from "node:fs/promises";
import { join } from "node:path";
import { COSTS_SCHEMA, costsSchema, type Costs } from "../../src/capacity/costs/costs.ts";
import { messageOf } from "../../src/core/errors.ts";
import { VERSION } from "../../src/core/version.ts";
import { Watch } from "../suite/load.ts";
import { probeMachine } from "../suite/probe.ts";
import { withTemporaryFolder } from "../support/data-file.ts";
import { MIB } from "../support/report.ts";
import { withSqlite } from "./catalogs.ts";
import { measureStagedCluster, measureSyncCluster, whyNoCluster, type QueriedRows } from "./clusters.ts";
import { measureCommits } from "./commits.ts";
import { loadHome, measureCompaction, tableBytesOf } from "./compaction.ts";
import { measureIngest } from "./ingest.ts";
import { measureJobs } from "./jobs.ts";
import { measureMemory } from "./memory.ts";
import { noiseIn } from "./noise.ts";
import { measureQueries } from "./queries.ts";
import { writeRows } from "./rows-file.ts";
import { measureSandboxes, whyNoSandboxes } from "./sandboxes.ts";
import type { StepContext } from "./step.ts";

export type MeasureOptions = Omit<StepContext, "folder"> & {
  /** Of the program that is measured; null where it is not known. */
  commit: string | null;
  /** Takes a line of progress. */
  say: (line: string) => void;
};

export type Measured = {
  costs: Costs;
  /** Why they say nothing, in sentences; none when they do. */
  problems: string[];
};

/** What is measured; the rest of the file says of what it is. */
type Observations = Pick<
  Costs,
  "ingest" | "compaction" | "commits" | "catalog" | "queries" | "memory" | "jobs" | "sandboxes"
>;

/**
 * Measures what this machine spends, in at most ten minutes on two cores. Rejects with a sentence that begins with the
 * name of the step that failed; in any case nothing is left of processes and folders.
 */
export async function measureCosts({ commit, say, ...options }: MeasureOptions): Promise<Measured> {
  return await withTemporaryFolder(async (folder) => {
    await mustHaveRoom(folder, options.brief);
    const measuredAt = new Date().toISOString();
    const run: Run = { context: { ...options, folder }, say, step: stepper(say, options.signal) };
    const machine = await run.step("machine", () => probeMachine(join(folder, "probe")));
    const watch = new Watch();
    const observations = await observeAll(run);
    const about = { schema: COSTS_SCHEMA, version: VERSION, commit, measuredAt, seed: options.seed, machine };
    const costs = costsSchema.parse({ ...about, ...observations });
    return { costs, problems: noiseIn(costs.ingest, watch.end()) };
  });
}

type Run = { context: StepContext; say: (line: string) => void; step: ReturnType<typeof stepper> };

async function observeAll(run: Run): Promise<Observations> {
  const reason = await whyNoCluster();
  if (reason !== undefined) run.say(`clusters are left out: ${reason}`);
  const { queried, ...single } = await observeSingle(run);
  const rows: QueriedRows = { compacted: queried.home.data, fresh: queried.fresh };
  const clusters = reason === undefined ? await observeClusters(run, rows) : undefined;
  return {
    ingest: [...single.ingest, ...(clusters?.ingest ?? [])],
    compaction: single.compaction,
    commits: [...single.commits, ...(clusters?.commits ?? [])],
    catalog: clusters?.catalog ?? null,
    // Where there is a cluster, the effect of the cache is that of one and the same kind of node.
    queries:
      clusters?.queries ?? (await run.step("queries", () => measureQueries(run.context, queried.home, queried.fresh))),
    memory: {
      ...single.memory,
      idleBytes: { ...single.memory.idleBytes, ...clusters?.idleBytes },
      idleCores: { ...single.memory.idleCores, ...clusters?.idleCores },
    },
    jobs: [...single.jobs, ...(clusters?.jobs ?? [])],
    sandboxes: await observeSandboxes(run),
  };
}

/** One process, on SQLite and its own disk. */
async function observeSingle({ context, step }: Run) {
  const { folder, seed } = context;
  const sizes = tableBytesOf(context);
  const memory = await step("memory", () => measureMemory(context));
  const ingest = await step("ingest", () => measureIngest(context));
  const queried = await step("rows for queries", async () => ({
    home: await loadHome(context, { name: "queried", shape: "logs", sizeBytes: sizes.queried }),
    fresh: await writeRows(folder, { name: "fresh", shape: "logs", sizeBytes: sizes.fresh, seed: seed + 1 }),
  }));
  const compaction = await step("compaction", () => measureCompaction(context, queried.home));
  const catalog = await step("commits and jobs", () =>
    withSqlite(folder, "measured", async (on) => ({
      commits: await measureCommits(context, on),
      jobs: await measureJobs(context, on),
    })),
  );
  return { memory, ingest, compaction, ...catalog, queried };
}

async function observeClusters({ context, step }: Run, rows: QueriedRows) {
  const sync = await step("cluster, sync", () => measureSyncCluster(context, rows));
  const staged = await step("cluster, staged", () => measureStagedCluster(context));
  return { ...sync, ingest: [...sync.ingest, ...staged] };
}

async function observeSandboxes({ context, say, step }: Run): Promise<Costs["sandboxes"]> {
  const reason = await whyNoSandboxes();
  if (reason === undefined) return await step("sandboxes", () => measureSandboxes(context));
  say(`sandboxes are left out: ${reason}`);
  return null;
}

/** Runs a step with a line that says how long it took. */
function stepper(say: (line: string) => void, signal: AbortSignal) {
  return async <T>(name: string, measure: () => Promise<T>): Promise<T> => {
    signal.throwIfAborted();
    const startedMs = performance.now();
    try {
      const measured = await measure();
      say(`${name.padEnd(20)}${((performance.now() - startedMs) / 1_000).toFixed(1).padStart(6)} s`);
      return measured;
    } catch (error) {
      // Whatever fails because processes were told to end is the stop, not a failure of theirs.
      signal.throwIfAborted();
      throw new Error(`${name}: ${messageOf(error)}`, { cause: error });
    }
  };
}

const NEEDED_MIB = { brief: 512, full: 8_192 };

async function mustHaveRoom(folder: string, brief: boolean): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  const neededMib = brief ? NEEDED_MIB.brief : NEEDED_MIB.full;
  const freeMib = Math.floor((bavail * bsize) / MIB);
  if (freeMib >= neededMib) return;
  throw new Error(`${folder} has ${freeMib} MiB free and ${neededMib} are needed: set TMPDIR to a folder with more`);
}
