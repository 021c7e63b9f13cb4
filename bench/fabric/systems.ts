import type { Fabric } from "../../src/fabric/fabric.ts";
import type { Job } from "../../src/fabric/job.ts";
import { loadPeer } from "../peers/install.ts";
import { BENCH_JOB, fabricOn, runJobsOf, type JobSystem } from "../support/fabric.ts";
import { openPostgres } from "../support/open-catalog.ts";

/** `onRun` is the handler: it is told the number that the job was enqueued with. */
export type StartSystem = (url: string, workers: number, onRun: (n: number) => void) => Promise<JobSystem>;

/** Sessions that a system may have for its statements. */
const SESSIONS = 10;

async function startFabric(url: string, workers: number, onRun: (n: number) => void): Promise<JobSystem> {
  const { fabric, close } = await openFabric(url);
  return runJobsOf(fabric, workers, { onRun, close });
}

/** The fabric of one node, as a role makes it. */
export async function openFabric(url: string) {
  const catalog = await openPostgres(url, SESSIONS);
  const fabric = fabricOn(catalog);
  const close = async () => {
    fabric.close();
    await catalog.close();
  };
  return { fabric, catalog, close };
}

/** A job of any kind that there is, waited for up to so long; undefined when there is none. */
export async function claimOne(
  fabric: Fabric,
  waiting: { waitMs: number; signal?: AbortSignal },
): Promise<Job | undefined> {
  const worker = { kinds: new Set([BENCH_JOB]), labels: {}, workerId: undefined, jobsOf: "everybody" as const };
  const [job] = await fabric.claim({ ...worker, holder: "bench", max: 1, ...waiting });
  return job;
}

/** What is used of graphile-worker 0.18. */
type Graphile = {
  run(options: object): Promise<{
    addJob(task: string, payload: object): Promise<unknown>;
    stop(): Promise<void>;
    events: unknown;
  }>;
  Logger: new (factory: () => () => void) => unknown;
};

type Pg = {
  Pool: new (options: object) => { query(sql: string): Promise<{ rows: { n: string }[] }>; end(): Promise<void> };
};

/** `isBatching`: with its queue in memory, and completions gathered. */
function graphileWorker(isBatching: boolean): StartSystem {
  return async (url, workers, onRun) => {
    const graphile = loadPeer("graphile-worker") as Graphile;
    const { Pool } = loadPeer("pg") as Pg;
    const pgPool = new Pool({ connectionString: url, max: SESSIONS });
    const batching = { localQueue: { size: 4 * workers }, completeJobBatchDelay: 0, failJobBatchDelay: 0 };
    const runner = await graphile.run({
      pgPool,
      logger: new graphile.Logger(() => () => undefined),
      noHandleSignals: true,
      taskList: { bench: async ({ n }: { n: number }) => onRun(n) },
      preset: { worker: { concurrentJobs: workers, pollInterval: 500, ...(isBatching && batching) } },
    });
    return {
      enqueue: async (n) => void (await runner.addJob("bench", { n })),
      unfinished: () => countBy(pgPool, "SELECT count(*) AS n FROM graphile_worker.jobs"),
      async stop() {
        await runner.stop();
        await pgPool.end();
      },
    };
  };
}

/** What is used of pg-boss 12. */
type PgBoss = {
  PgBoss: new (options: object) => {
    start(): Promise<unknown>;
    stop(options: object): Promise<void>;
    on(event: "error", listener: (error: Error) => void): void;
    createQueue(name: string, options: object): Promise<void>;
    send(name: string, data: object): Promise<unknown>;
    work(name: string, options: object, handler: (jobs: { data: { n: number } }[]) => Promise<void>): Promise<unknown>;
  };
};

/** `batchSize`: of jobs that a worker fetches, runs and completes together. */
function pgBoss(batchSize: number): StartSystem {
  return async (url, workers, onRun) => {
    const { PgBoss } = loadPeer("pg-boss") as PgBoss;
    const { Pool } = loadPeer("pg") as Pg;
    const pool = new Pool({ connectionString: url, max: 1 });
    const boss = new PgBoss({ connectionString: url, max: SESSIONS, useListenNotify: true });
    const failures: Error[] = [];
    boss.on("error", (error) => failures.push(error));
    await boss.start();
    await boss.createQueue("bench", { notify: true });
    const polling = {
      pollingIntervalSeconds: 0.5,
      notifyPollingIntervalSeconds: 0.5,
      burstWhenBatchFull: batchSize > 1,
    };
    await boss.work("bench", { batchSize, localConcurrency: workers, ...polling }, async (jobs) => {
      for (const { data } of jobs) onRun(data.n);
    });
    return {
      enqueue: async (n) => void (await boss.send("bench", { n })),
      unfinished: () =>
        countBy(pool, "SELECT count(*) AS n FROM pgboss.job WHERE name = 'bench' AND state < 'completed'"),
      async stop() {
        await boss.stop({ graceful: true, timeout: 5_000 });
        await pool.end();
        if (failures[0] !== undefined) throw failures[0];
      },
    };
  };
}

async function countBy(pool: { query(sql: string): Promise<{ rows: { n: string }[] }> }, sql: string): Promise<number> {
  const { rows } = await pool.query(sql);
  return Number(rows[0]?.n);
}

export const OURS = "engine";

/** Peers in the settings that their documentation gives for many short jobs, and as they come. */
export const SYSTEMS: Readonly<Record<string, StartSystem>> = {
  [OURS]: startFabric,
  "graphile-worker": graphileWorker(false),
  "graphile-worker (batches)": graphileWorker(true),
  "pg-boss": pgBoss(1),
  "pg-boss (batches)": pgBoss(32),
};
