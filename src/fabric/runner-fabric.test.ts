import { afterEach, beforeEach, expect, it } from "vitest";
import { ANONYMOUS } from "../auth/caller.ts";
import { openMemoryCatalog } from "../catalog/sqlite/memory.test-kit.ts";
import { ManualClock, systemClock } from "../core/clock.ts";
import { uuidV7Source } from "../core/ids.ts";
import { silentLog } from "../core/log.ts";
import { createMetrics } from "../core/metrics.ts";
import { seededRandom } from "../core/random.ts";
import { Fabric } from "./fabric.ts";
import { JobFailure, type JobHandler, type RunningJob } from "./handler.ts";
import { JobLogs } from "./job-logs.ts";
import { JobMetrics } from "./job-metrics.ts";
import { holdOf, type LeasedJob, type Job } from "./job.ts";
import { JobKinds, type JobKind } from "./kinds.ts";
import { LocalPort } from "./local-port.ts";
import { JobRunner } from "./runner.ts";
import { z } from "zod";

const LEASE_MS = 30_000;
const KIND: JobKind = { name: "test.task", payload: z.json(), enqueue: "write", claim: "engine", backoffMs: 1_000 };

let opened: ReturnType<typeof openMemoryCatalog>;
let clock: ManualClock;
let fabric: Fabric;
let logs: JobLogs;
let metrics: ReturnType<typeof createMetrics>;
let runners: JobRunner[];

beforeEach(() => {
  clock = new ManualClock(systemClock.nowMs());
  opened = openMemoryCatalog(clock);
  metrics = createMetrics();
  logs = new JobLogs(opened.catalog.records);
  fabric = node();
  runners = [];
});
afterEach(async () => {
  for (const runner of runners) runner.stop();
  fabric.close();
  await opened.catalog.close();
});

function node(): Fabric {
  const random = seededRandom(1);
  return new Fabric({
    records: opened.catalog.records,
    signals: opened.catalog.signals,
    kinds: new JobKinds([KIND]),
    clock,
    random,
    newId: uuidV7Source(clock, random),
    log: silentLog,
    leaseMs: LEASE_MS,
    metrics: new JobMetrics(metrics),
  });
}

function dispatcher(run: JobHandler["run"], slots = 4): JobRunner {
  const random = seededRandom(runners.length + 2);
  const port = new LocalPort({
    fabric,
    newId: uuidV7Source(clock, random),
    logs,
    credential: (_, id) => Promise.resolve(`secret of ${id}`),
  });
  const handlers = [{ kind: "test.task", run }];
  const runner = new JobRunner({ port, handlers, slots, clock, random, log: silentLog });
  runners.push(runner);
  void runner.run();
  return runner;
}

async function add(payload: unknown = null, more: { credentials?: string[]; maxAttempts?: number } = {}): Promise<Job> {
  return (await fabric.enqueue({ kind: "test.task", payload, ...more }, ANONYMOUS)).job;
}

const find = async (id: string) => await fabric.find(id, ANONYMOUS);
const statusOf = async (id: string) => (await find(id))?.status;

/** Lets time pass until it is so. */
async function until(isSo: () => Promise<boolean>, stepMs = 250): Promise<void> {
  for (let step = 0; step < 2_000; step++) {
    if (await isSo()) return;
    clock.advance(stepMs);
    await new Promise(setImmediate);
  }
  throw new Error("it never came to be");
}

const counted = async (name: string) => {
  const found = await metrics.registry.getSingleMetric(name)?.get();
  return Object.fromEntries((found?.values ?? []).map(({ labels, value }) => [labels["outcome"] ?? "all", value]));
};

it("runs what was enqueued, each job once, with its progress, lines and secrets", async () => {
  const ran: unknown[] = [];
  dispatcher(async (job) => {
    ran.push(job.payload);
    job.progress({ half: true });
    job.log("info", `payload ${JSON.stringify(job.payload)}`);
    return { secret: await job.credential("c1") };
  });
  const jobs = await Promise.all(Array.from({ length: 50 }, (_, n) => add(n, { credentials: ["c1"] })));
  await until(async () => (await Promise.all(jobs.map(({ id }) => statusOf(id)))).every((status) => status === "done"));
  expect(ran).toHaveLength(50);
  expect(new Set(ran)).toEqual(new Set(Array.from({ length: 50 }, (_, n) => n)));
  const [first] = jobs;
  expect(await find(first?.id ?? "")).toMatchObject({
    progress: { half: true },
    result: { secret: "secret of c1" },
    holder: expect.stringMatching(/^dispatcher\//),
  });
  expect(await logs.read(first?.id ?? "", { afterSeq: 0, limit: 10 })).toMatchObject([
    { seq: 1, message: "payload 0" },
  ]);
  expect(await counted("engine_job_attempts_ended_total")).toEqual({ done: 50 });
  expect(await counted("engine_job_attempts_total")).toEqual({ all: 50 });
  expect(await counted("engine_jobs_enqueued_total")).toEqual({ all: 50 });
});

it("tries again what failed for the moment, and not what failed for good", async () => {
  const attempts: number[] = [];
  dispatcher(({ payload, attempt }) => {
    if (payload === "bad") throw new JobFailure({ error: "never" });
    attempts.push(attempt);
    if (attempt < 3) throw new Error("not yet");
    return Promise.resolve("at last");
  });
  const [flaky, bad] = [await add("flaky"), await add("bad")];
  await until(async () => (await statusOf(flaky.id)) === "done");
  expect(attempts).toEqual([1, 2, 3]);
  expect(await find(bad.id)).toMatchObject({ status: "failed", error: "never", attempt: 1 });
  expect(await counted("engine_job_attempts_ended_total")).toEqual({ done: 1, failed: 1, retried: 2 });
});

it("stops a handler whose job is cancelled", async () => {
  dispatcher(untilStopped);
  const { id } = await add();
  await until(async () => (await statusOf(id)) === "leased");
  await fabric.cancel(id);
  await until(async () => (await statusOf(id)) === "cancelled");
  expect((await find(id))?.error).toBe("the job was cancelled");
});

it("goes on with the jobs of an earlier process of the same node, under the same fence", async () => {
  const options = {
    fabric,
    newId: uuidV7Source(clock, seededRandom(9)),
    logs,
    credential: () => Promise.reject(new Error("none")),
  };
  const port = () => new LocalPort({ ...options, nodeId: "node-1" });
  const seen: LeasedJob[] = [];
  const end = Promise.withResolvers<string>();
  const handlers = [{ kind: "test.task", run: (job: RunningJob) => (seen.push(job), end.promise) }];
  const process = () => {
    const runner = new JobRunner({ port: port(), handlers, slots: 1, clock, random: seededRandom(3), log: silentLog });
    runners.push(runner);
    return runner;
  };
  const { job } = await fabric.enqueue({ kind: "test.task", payload: 1, workerId: "node-1" }, ANONYMOUS);
  const first = process();
  void first.run();
  await until(async () => seen.length === 1);
  first.stop();
  const held = port();
  const [before] = seen;
  if (before === undefined) throw new Error("it was not run");
  expect(before).toMatchObject({ id: job.id, holder: "node-1", fence: 1, leaseMs: LEASE_MS });
  const askedAtMs = clock.monotonicMs();
  await held.extend(holdOf(before), LEASE_MS);
  const renewals: number[] = [];
  const second = process();
  const outcome = second.adopt(before, askedAtMs);
  await until(async () => seen.length === 2);
  (seen[1] as RunningJob).lease.onRenewed((untilMs) => renewals.push(untilMs - clock.monotonicMs()));
  for (let lease = 0; lease < 3 * 3; lease++)
    await until(async () => true, LEASE_MS / 3).then(() => clock.advance(LEASE_MS / 3));
  await until(async () => renewals.length >= 3);
  expect(renewals.every((ms) => ms > 0 && ms <= LEASE_MS)).toBe(true);
  end.resolve("done after all");
  expect(await outcome).toBe("completed");
  expect(await find(job.id)).toMatchObject({ status: "done", result: "done after all", attempt: 1, fence: 1 });
});

it("keeps a job through many leases, and loses it to nobody", async () => {
  const end = Promise.withResolvers<string>();
  dispatcher(() => end.promise);
  const { id } = await add();
  await until(async () => (await statusOf(id)) === "leased");
  for (let lease = 0; lease < 20; lease++) {
    clock.advance(LEASE_MS / 3);
    await expect.poll(async () => ((await find(id))?.leaseExpiresAtMs ?? 0) - clock.nowMs()).toBe(LEASE_MS);
    expect(await fabric.sweep()).toEqual([]);
  }
  end.resolve("long");
  await until(async () => (await statusOf(id)) === "done");
  expect(await find(id)).toMatchObject({ attempt: 1, fence: 1, result: "long" });
});

it("lets no handler of a lost lease say anything, while the next holder runs", async () => {
  const stuck = Promise.withResolvers<string>();
  const held: RunningJob[] = [];
  dispatcher((job) => {
    held.push(job);
    return stuck.promise;
  }, 1);
  const { id } = await add();
  await until(async () => held.length === 1);
  // The node stands still for longer than the lease, and the others go on.
  await opened.catalog.records.write({
    sql: "UPDATE jobs SET lease_expires_at_ms = 1 WHERE id = ? RETURNING id",
    values: [id],
  });
  expect(await fabric.sweep()).toMatchObject([{ id, status: "queued" }]);
  dispatcher(() => Promise.resolve("second"), 1);
  await until(async () => (await statusOf(id)) === "done");
  held[0]?.progress({ late: true });
  held[0]?.log("error", "late");
  stuck.resolve("first");
  await until(async () => runners[0]?.busy === 0);
  clock.advance(LEASE_MS);
  expect(await find(id)).toMatchObject({ result: "second", fence: 2, progress: undefined });
  expect(await logs.read(id, { afterSeq: 0, limit: 10 })).toEqual([]);
  expect(await counted("engine_job_attempts_ended_total")).toEqual({ done: 1, lease_lost: 1 });
});

it("gives its jobs back when it drains, and the next node runs them without a lost attempt", async () => {
  const first = dispatcher(untilStopped);
  const { id } = await add(null, { maxAttempts: 1 });
  await until(async () => (await statusOf(id)) === "leased");
  const drained = first.drain(1_000);
  let isDrained = false;
  void drained.then(() => (isDrained = true));
  await until(async () => isDrained);
  expect(await find(id)).toMatchObject({ status: "queued", attempt: 0 });
  dispatcher(() => Promise.resolve("next"));
  await until(async () => (await statusOf(id)) === "done");
  expect(await counted("engine_job_attempts_ended_total")).toEqual({ done: 1, released: 1 });
});

it("shows the queue to who watches it", async () => {
  await Promise.all([add(), add()]);
  clock.advance(5_000);
  const shown = new JobMetrics(metrics);
  shown.showQueue(await fabric.countUnfinished(), await fabric.oldestWaiting());
  const text = await metrics.registry.metrics();
  expect(text).toContain('engine_jobs_unfinished{kind="test.task",status="queued"} 2');
  expect(text).toContain('engine_jobs_oldest_waiting_seconds{kind="test.task"} 5');
  shown.hideQueue();
  expect(await metrics.registry.metrics()).not.toContain("engine_jobs_oldest_waiting_seconds{");
});

function untilStopped({ signal }: RunningJob): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
}
