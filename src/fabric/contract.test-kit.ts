import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import type { OpenedCatalog } from "../catalog/contract.test-kit.ts";
import type { CatalogDatabase } from "../catalog/catalog-database.ts";
import type { RecordStore } from "../db/records.ts";
import type { Signals } from "../db/signals.ts";
import { ANONYMOUS } from "../auth/caller.ts";
import { uuidV7Source } from "../core/ids.ts";
import { silentLog } from "../core/log.ts";
import { seededRandom } from "../core/random.ts";
import { Fabric } from "./fabric.ts";
import { holdOf, type Hold, type Job } from "./job.ts";
import { JobKinds, type JobKind } from "./kinds.ts";
import type { NewJob } from "./enqueue.ts";

export const LEASE_MS = 300_000;

const TEST_KINDS: readonly JobKind[] = [
  { name: "test.task", payload: z.strictObject({ n: z.int() }), enqueue: "write", claim: "both" },
  { name: "test.other", aliases: ["test_other"], payload: z.json(), enqueue: "write", claim: "engine" },
  {
    name: "test.brief",
    payload: z.json(),
    enqueue: "write",
    claim: "both",
    leaseMs: 20_000,
    maxAttempts: 2,
    backoffMs: 1_000,
  },
];

type FabricBase = { catalog: Pick<CatalogDatabase, "records" | "signals">; clock: OpenedCatalog["clock"] };

/** A fabric of one node on a catalog. */
export function fabricOn({ catalog, clock }: FabricBase, seed = 1): Fabric {
  const random = seededRandom(seed);
  return new Fabric({
    records: catalog.records,
    signals: catalog.signals,
    kinds: new JobKinds(TEST_KINDS),
    clock,
    random,
    newId: uuidV7Source(clock, random),
    log: silentLog,
    leaseMs: LEASE_MS,
  });
}

/** On PostgreSQL the session that listens takes its time to open, and what is sent before that is lost. */
async function untilSignalsAreHeard(signals: Signals): Promise<void> {
  let isHeard = false;
  const stop = signals.listen("test", (payload) => (isHeard ||= payload !== undefined));
  await expect
    .poll(async () => {
      await signals.send("test", "");
      return isHeard;
    })
    .toBe(true);
  stop();
}

/** What the fabric must do on every catalog. */
export function fabricContract(name: string, open: () => Promise<OpenedCatalog>): void {
  describe(`the job fabric on ${name}`, () => {
    let opened: OpenedCatalog;
    let fabric: Fabric;
    beforeEach(async () => {
      opened = await open();
      fabric = fabricOn(opened);
      await untilSignalsAreHeard(opened.catalog.signals);
    });
    afterEach(async () => {
      fabric.close();
      await opened.close();
    });

    const add = async (request: Partial<NewJob> = {}): Promise<Job> => {
      const { job } = await fabric.enqueue({ kind: "test.task", payload: { n: 1 }, ...request }, ANONYMOUS);
      return job;
    };
    const claim = (holder = "w1", more: { kinds?: string[]; max?: number; labels?: Record<string, string> } = {}) => {
      const { kinds = ["test.task", "test.other"], max = 1, labels = {} } = more;
      return fabric.claim({
        kinds: new Set(kinds),
        holder,
        workerId: holder,
        jobsOf: "everybody" as const,
        max,
        labels,
        waitMs: 0,
      });
    };
    const claimOne = async (holder = "w1"): Promise<{ job: Job; hold: Hold }> => {
      const [job] = await claim(holder);
      if (job === undefined) throw new Error("there was no job to claim");
      return { job, hold: holdOf(job) };
    };
    const stateOf = async (id: string) => (await fabric.find(id, ANONYMOUS))?.status;

    describe("enqueue", () => {
      it("stores what was asked for, and what the kind says", async () => {
        const odd = 'it\'s "x" ? $1 ünï 😀 \\u0000';
        const { job, deduped } = await fabric.enqueue(
          {
            kind: "test.other",
            payload: { odd, nul: "\0" },
            database: "Logs",
            priority: 7,
            credentials: ["c1"],
            traceContext: "00-1-2-01",
            selector: { zone: "b", gpu: "yes" },
          },
          { subject: "ann", kind: "session", role: "write", databases: ["logs"] },
        );
        expect(deduped).toBe(false);
        expect(job).toMatchObject({
          kind: "test.other",
          status: "queued",
          payload: { odd, nul: "\0" },
          database: "logs",
          priority: 7,
          credentials: ["c1"],
          traceContext: "00-1-2-01",
          selector: { zone: "b", gpu: "yes" },
          owner: { subject: "ann", kind: "session", role: "write", databases: ["logs"] },
          attempt: 0,
          maxAttempts: 5,
          fence: 0,
          leaseMs: LEASE_MS,
          runAfterMs: opened.clock.nowMs(),
          createdAtMs: opened.clock.nowMs(),
        });
        expect(await fabric.find(job.id, ANONYMOUS)).toEqual(job);
      });

      it("knows the other names of a kind", async () => {
        expect((await add({ kind: "test_other", payload: null })).kind).toBe("test.other");
      });

      it("refuses unknown kinds, payloads that are not of the kind, and other databases", async () => {
        await expect(add({ kind: "nothing" })).rejects.toMatchObject({ code: "invalid_parameter" });
        await expect(add({ payload: { n: "1" } })).rejects.toThrow(/payload\.n: /);
        await expect(add({ kind: "test.other", payload: "x".repeat(300_000) })).rejects.toMatchObject({
          code: "body_too_large",
        });
        const scoped = { subject: "b", kind: "api_token", role: "write", databases: ["logs"] } as const;
        const task = { kind: "test.task", payload: { n: 1 } };
        await expect(fabric.enqueue({ ...task, database: "other" }, scoped)).rejects.toMatchObject({
          code: "forbidden",
        });
        await expect(fabric.enqueue(task, scoped)).rejects.toMatchObject({ code: "forbidden" });
      });

      it("keeps one unfinished job of a key for each kind and database", async () => {
        const first = await add({ dedupKey: "k" });
        const again = await fabric.enqueue({ kind: "test.task", payload: { n: 2 }, dedupKey: "k" }, ANONYMOUS);
        expect(again).toMatchObject({ deduped: true, job: { id: first.id, payload: { n: 1 } } });
        expect((await add({ dedupKey: "k", database: "logs" })).id).not.toBe(first.id);
        expect((await add({ dedupKey: "k", kind: "test.other" })).id).not.toBe(first.id);
        await fabric.cancel(first.id);
        expect((await add({ dedupKey: "k" })).id).not.toBe(first.id);
      });

      it("keeps one of many that are enqueued at once with one key", async () => {
        const all = await Promise.all(Array.from({ length: 40 }, () => add({ dedupKey: "same" })));
        expect(new Set(all.map(({ id }) => id)).size).toBe(1);
        const others = await Promise.all(Array.from({ length: 150 }, (_, n) => add({ payload: { n } })));
        expect(new Set(others.map(({ id }) => id)).size).toBe(150);
      });
    });

    describe("claim", () => {
      it("gives each job to one of many who claim at once", async () => {
        await Promise.all(Array.from({ length: 60 }, (_, n) => add({ payload: { n } })));
        const nodes = [fabric, fabricOn(opened, 2), fabricOn(opened, 3)];
        const claims = Array.from({ length: 30 }, (_, i) =>
          (nodes[i % 3] ?? fabric).claim({
            kinds: new Set(["test.task"]),
            holder: `w${i}`,
            workerId: undefined,
            jobsOf: "everybody" as const,
            labels: {},
            max: 3,
            waitMs: 0,
          }),
        );
        const jobs = (await Promise.all(claims)).flat();
        for (const node of nodes.slice(1)) node.close();
        expect(new Set(jobs.map(({ id }) => id)).size).toBe(jobs.length);
        const rest = await claim("last", { max: 100 });
        expect(jobs.length + rest.length).toBe(60);
        for (const job of jobs) expect(job).toMatchObject({ status: "leased", fence: 1, attempt: 1 });
      });

      it("takes the oldest first, and higher priorities of the same kind and database before", async () => {
        const [a, b, urgent] = [await add(), await add(), await add({ priority: 5 })];
        const order = [await claimOne(), await claimOne(), await claimOne()].map(({ job }) => job.id);
        expect(order).toEqual([urgent.id, a.id, b.id]);
        expect(await claim()).toEqual([]);
      });

      it("takes turns among databases and kinds, whatever their numbers and priorities", async () => {
        for (let n = 0; n < 20; n++) await add({ database: "big", priority: 100 });
        for (let n = 0; n < 3; n++) await add({ database: "small" });
        await add({ kind: "test.other", database: "big" });
        const first = await Promise.all([claimOne(), claimOne(), claimOne()]);
        const groups = first.map(({ job }) => `${job.kind} ${job.database}`);
        expect(groups.toSorted()).toEqual(["test.other big", "test.task big", "test.task small"]);
        const more = await claim("w1", { max: 6 });
        expect(more.filter(({ database }) => database === "small")).toHaveLength(2);
      });

      it("does not keep a database waiting for others that come and go", async () => {
        for (let n = 0; n < 10; n++) await add({ database: "steady" });
        const served = [(await claimOne()).job.database];
        for (let n = 0; n < 9; n++) {
          await add({ database: n % 2 === 0 ? "even" : "odd" });
          opened.clock.advance(1_001);
          served.push((await claimOne()).job.database);
        }
        expect(served.filter((database) => database === "steady").length).toBeGreaterThanOrEqual(3);
      });

      it("leaves what is not due, not of the kinds asked for, or for other workers, and does not wait behind it", async () => {
        for (let n = 0; n < 5; n++) await add({ workerId: "w9", priority: 9 });
        for (let n = 0; n < 5; n++) await add({ selector: { gpu: "yes" }, priority: 8 });
        const later = await add({ delayMs: 60_000, priority: 7 });
        const mine = await add();
        expect((await claim("w1", { max: 10 })).map(({ id }) => id)).toEqual([mine.id]);
        expect(await claim("w1", { kinds: ["test.other"] })).toEqual([]);
        expect(await claim("w9", { max: 10 })).toHaveLength(5);
        expect(await claim("w2", { max: 10, labels: { gpu: "no" } })).toEqual([]);
        expect(await claim("w2", { max: 10, labels: { gpu: "yes", zone: "a" } })).toHaveLength(5);
        opened.clock.advance(60_000);
        expect((await claimOne()).job.id).toBe(later.id);
      });

      it("waits for a job that is enqueued, here or on another node, and for one whose time comes", async () => {
        const other = fabricOn(opened, 2);
        const here = waitOn(fabric);
        await expect.poll(() => fabric.claimsWaiting).toBe(1);
        const a = await add();
        expect((await here).map(({ id }) => id)).toEqual([a.id]);
        const there = waitOn(other);
        await expect.poll(() => other.claimsWaiting).toBe(1);
        const b = await add();
        expect((await there).map(({ id }) => id)).toEqual([b.id]);
        const due = waitOn(fabric);
        const c = await add({ delayMs: 10_000 });
        let got: readonly Job[] | undefined;
        void due.then((jobs) => (got = jobs));
        await expect
          .poll(
            () => {
              opened.clock.advance(500);
              return got?.map(({ id }) => id);
            },
            { timeout: 10_000 },
          )
          .toEqual([c.id]);
        expect(got?.[0]?.startedAtMs).toBeGreaterThanOrEqual(c.runAfterMs);
        other.close();
      });

      it("gives what it has when the database fails halfway", async () => {
        const claims: string[] = [];
        const { records, signals } = opened.catalog;
        const write: RecordStore["write"] = async (statement) => {
          if (statement.sql.startsWith("WITH picked") && claims.push("claim") > 1) throw new Error("no connection");
          return await records.write(statement);
        };
        const failing = fabricOn({ catalog: { records: withWrite(records, write), signals }, clock: opened.clock });
        const ids = [(await add({ database: "a" })).id, (await add({ database: "b" })).id];
        const request = {
          kinds: new Set(["test.task"]),
          holder: "w1",
          workerId: undefined,
          jobsOf: "everybody" as const,
          labels: {},
          max: 2,
        };
        const jobs = await failing.claim({ ...request, waitMs: 0 });
        expect(jobs).toHaveLength(1);
        expect(ids).toContain(jobs[0]?.id);
        await expect(failing.claim({ ...request, waitMs: 0 })).rejects.toThrow("no connection");
        failing.close();
      });

      it("gives nothing when the wait is over, the caller leaves, or the node closes", async () => {
        const leaving = new AbortController();
        const ask = (signal?: AbortSignal) =>
          fabric.claim({
            kinds: new Set(["test.task"]),
            holder: "w1",
            workerId: undefined,
            jobsOf: "everybody" as const,
            labels: {},
            max: 1,
            waitMs: 1_000,
            signal,
          });
        const [left, timely] = [ask(leaving.signal), ask()];
        await expect.poll(() => fabric.claimsWaiting).toBe(2);
        leaving.abort();
        expect(await left).toEqual([]);
        opened.clock.advance(1_000);
        expect(await timely).toEqual([]);
        const closed = ask();
        await expect.poll(() => fabric.claimsWaiting).toBe(1);
        fabric.close();
        expect(await closed).toEqual([]);
        expect(await ask()).toEqual([]);
      });
    });

    describe("a holder", () => {
      it("completes, and may say so again", async () => {
        const { id } = await add();
        const { hold } = await claimOne();
        await fabric.progress(hold, { done: 5 });
        expect(await fabric.complete(hold, { rows: 1 })).toMatchObject({ id, status: "done", progress: { done: 5 } });
        expect(await fabric.complete(hold, { rows: 2 })).toMatchObject({ result: { rows: 1 } });
        await expect(fabric.fail(hold, { error: "no" })).rejects.toMatchObject({ code: "lease_lost", status: 409 });
        expect(await stateOf(id)).toBe("done");
      });

      it("fails for good, unless it says otherwise", async () => {
        const { id } = await add();
        const { hold } = await claimOne();
        const failed = await fabric.fail(hold, { error: "broken\0" });
        expect(failed).toMatchObject({ status: "failed", error: "broken\u{fffd}", finishedAtMs: opened.clock.nowMs() });
        expect(await fabric.fail(hold, { error: "broken\0" })).toMatchObject({ status: "failed" });
        await expect(fabric.complete(hold, null)).rejects.toMatchObject({ code: "lease_lost" });
        expect(await stateOf(id)).toBe("failed");
      });

      it("tries again after longer and longer pauses, so often", async () => {
        const { id } = await add({ maxAttempts: 3, backoffMs: 10_000 });
        for (const leastMs of [7_500, 15_000]) {
          const { hold } = await claimOne();
          const { status, runAfterMs, finishedAtMs } = await fabric.fail(hold, { error: "again", retryable: true });
          expect({ status, finishedAtMs }).toEqual({ status: "queued", finishedAtMs: undefined });
          const pauseMs = runAfterMs - opened.clock.nowMs();
          expect(pauseMs).toBeGreaterThanOrEqual(leastMs);
          expect(pauseMs).toBeLessThanOrEqual((leastMs * 4) / 3);
          expect(await claim()).toEqual([]);
          opened.clock.advance(pauseMs);
        }
        const { job, hold } = await claimOne();
        expect(job).toMatchObject({ attempt: 3, fence: 3 });
        expect(await fabric.fail(hold, { error: "again", retryable: true })).toMatchObject({ status: "failed" });
        expect(await fabric.retry(id)).toMatchObject({ status: "queued", attempt: 0, fence: 3 });
        expect((await claimOne()).job).toMatchObject({ id, attempt: 1, fence: 4 });
      });

      it("keeps a job as long as it extends the lease", async () => {
        const { id } = await add();
        const { job, hold } = await claimOne();
        expect(job.leaseExpiresAtMs).toBe(opened.clock.nowMs() + LEASE_MS);
        opened.clock.advance(LEASE_MS - 1);
        const state = await fabric.extend(hold, 20_000);
        expect(state).toEqual({ cancelRequested: false, leaseExpiresAtMs: opened.clock.nowMs() + 20_000 });
        expect((await fabric.extend(hold, 10_000)).leaseExpiresAtMs).toBe(state.leaseExpiresAtMs);
        opened.clock.advance(19_999);
        expect(await fabric.sweep()).toEqual([]);
        opened.clock.advance(1);
        for (const write of writesOf(fabric, hold)) await expect(write()).rejects.toMatchObject({ code: "lease_lost" });
        await expect(fabric.extend(hold, 9_999)).rejects.toMatchObject({ code: "bad_request_body" });
        expect(await stateOf(id)).toBe("leased");
        expect(await fabric.sweep()).toMatchObject([{ id, status: "queued", attempt: 1, fence: 1 }]);
      });

      it("hears that its failure came too late, also before somebody else has the job", async () => {
        const { id } = await add();
        const { hold } = await claimOne();
        opened.clock.advance(LEASE_MS);
        await fabric.sweep();
        await expect(fabric.fail(hold, { error: "broken" })).rejects.toMatchObject({ code: "lease_lost" });
        expect(await stateOf(id)).toBe("queued");
      });

      it("hears that its failure was stored, when the answer was lost and the driver asked again", async () => {
        const { records, signals } = opened.catalog;
        const write: RecordStore["write"] = async (statement) => {
          await records.write(statement);
          return await records.write(statement);
        };
        const repeating = fabricOn({ catalog: { records: withWrite(records, write), signals }, clock: opened.clock });
        const { id } = await add();
        const { hold } = await claimOne();
        expect(await repeating.fail(hold, { error: "broken" })).toMatchObject({ id, status: "failed" });
        repeating.close();
      });

      it("has the lease, the attempts and the pauses of the kind", async () => {
        const job = await add({ kind: "test.brief", payload: null });
        expect(job).toMatchObject({ leaseMs: 20_000, maxAttempts: 2, backoffMs: 1_000 });
        const [claimed] = await claim("w1", { kinds: ["test.brief"] });
        expect(claimed?.leaseExpiresAtMs).toBe(opened.clock.nowMs() + 20_000);
        opened.clock.advance(20_000);
        expect(await fabric.sweep()).toMatchObject([{ id: job.id, status: "queued" }]);
      });

      it("can do nothing with a stale fence, another's name, or another's job", async () => {
        await add();
        const { hold: first } = await claimOne("w1");
        opened.clock.advance(LEASE_MS);
        await fabric.sweep();
        const { hold: second } = await claimOne("w1");
        expect(second.fence).toBe(first.fence + 1);
        const forged = [first, { ...second, holder: "w2" }, { ...second, fence: 99 }, { ...second, jobId: "no" }];
        for (const hold of forged) {
          for (const write of writesOf(fabric, hold))
            await expect(write()).rejects.toMatchObject({ code: "lease_lost" });
        }
        expect(await fabric.complete(second, 1)).toMatchObject({ result: 1 });
      });

      it("gives a job back without an attempt being counted", async () => {
        await add({ maxAttempts: 1 });
        await fabric.release((await claimOne()).hold);
        expect((await claimOne()).job).toMatchObject({ attempt: 1, fence: 2 });
      });
    });

    describe("sweep", () => {
      it("fails a job after its last attempt, and cancels one that was to be", async () => {
        const [last, unwanted] = [await add({ maxAttempts: 1 }), await add()];
        await claim("w1", { max: 2 });
        await fabric.cancel(unwanted.id);
        expect(await stateOf(unwanted.id)).toBe("leased");
        opened.clock.advance(LEASE_MS);
        await Promise.all([fabric.sweep(), fabric.sweep()]);
        expect(await fabric.find(last.id, ANONYMOUS)).toMatchObject({ status: "failed", error: /lease of w1/ });
        expect(await stateOf(unwanted.id)).toBe("cancelled");
      });

      it("forgets what was finished long ago, and nothing else", async () => {
        const [done, waiting] = [await add(), await add()];
        await fabric.complete((await claimOne()).hold, null);
        expect(await fabric.forgetFinished(60_000, 100)).toBe(0);
        opened.clock.advance(60_001);
        const young = await add();
        await fabric.cancel(young.id);
        expect(await fabric.forgetFinished(60_000, 100)).toBe(1);
        expect(await stateOf(done.id)).toBeUndefined();
        expect(await stateOf(waiting.id)).toBe("queued");
        expect(await stateOf(young.id)).toBe("cancelled");
      });
    });

    describe("cancel and retry", () => {
      it("cancels what waits at once, and tells the holder of what runs", async () => {
        const told: string[] = [];
        const stop = fabric.onCancel((id) => told.push(id));
        const running = await add();
        const { hold } = await claimOne();
        const waiting = await add();
        expect(await fabric.cancel(waiting.id)).toMatchObject({ status: "cancelled" });
        expect(await fabric.cancel(running.id)).toMatchObject({ status: "leased", cancelRequested: true });
        await expect.poll(() => told).toEqual([running.id]);
        stop();
        expect(await fabric.progress(hold, 1)).toMatchObject({ cancelRequested: true });
        expect(await fabric.fail(hold, { error: "stopped", retryable: true })).toMatchObject({ status: "cancelled" });
        expect(await fabric.cancel(running.id)).toMatchObject({ status: "cancelled" });
        await expect(fabric.cancel("nothing")).rejects.toMatchObject({ code: "not_found" });
        expect(await claim()).toEqual([]);
      });

      it("retries only what failed or was cancelled", async () => {
        const first = await add({ dedupKey: "k" });
        await expect(fabric.retry(first.id)).rejects.toMatchObject({ code: "conflict" });
        await fabric.cancel(first.id);
        const second = await add({ dedupKey: "k" });
        await expect(fabric.retry(first.id)).rejects.toThrow(/another job has the key k/);
        await fabric.cancel(second.id);
        expect(await fabric.retry(first.id)).toMatchObject({ status: "queued", cancelRequested: false });
        await expect(fabric.retry("nothing")).rejects.toMatchObject({ code: "not_found" });
      });
    });

    describe("list", () => {
      it("filters by kind, status and database, newest first, page by page", async () => {
        const jobs = [
          await add(),
          await add({ database: "a" }),
          await add({ database: "b" }),
          await add({ kind: "test.other", database: "a" }),
        ];
        await fabric.cancel(jobs[2]?.id ?? "");
        const ids = async (filter: Partial<Parameters<Fabric["list"]>[0]>) =>
          (await fabric.list({ databases: undefined, limit: 50, ...filter })).map(({ id }) =>
            jobs.findIndex((job) => job.id === id),
          );
        expect(await ids({})).toEqual([3, 2, 1, 0]);
        expect(await ids({ limit: 2 })).toEqual([3, 2]);
        expect(await ids({ limit: 2, before: jobs[2]?.id })).toEqual([1, 0]);
        expect(await ids({ kind: "test.task" })).toEqual([2, 1, 0]);
        expect(await ids({ status: "queued" })).toEqual([3, 1, 0]);
        expect(await ids({ status: "cancelled", kind: "test.task" })).toEqual([2]);
        expect(await ids({ databases: ["a"] })).toEqual([3, 1]);
        expect(await ids({ databases: [] })).toEqual([]);
        expect(await fabric.find(jobs[0]?.id ?? "", { ...ANONYMOUS, databases: ["a"] })).toBeUndefined();
        expect(await fabric.find(jobs[1]?.id ?? "", { ...ANONYMOUS, databases: ["a"] })).toBeDefined();
        expect(await fabric.countUnfinished()).toEqual(
          expect.arrayContaining([
            { kind: "test.task", status: "queued", count: 2 },
            { kind: "test.other", status: "queued", count: 1 },
          ]),
        );
      });
    });
  });
}

async function waitOn(node: Fabric): Promise<Job[]> {
  const [kinds, labels] = [new Set(["test.task"]), {}];
  return await node.claim({
    kinds,
    labels,
    holder: "w1",
    workerId: undefined,
    jobsOf: "everybody" as const,
    max: 1,
    waitMs: 25_000,
  });
}

function writesOf(fabric: Fabric, hold: Hold): (() => Promise<unknown>)[] {
  return [
    () => fabric.progress(hold, 1),
    () => fabric.extend(hold, 10_000),
    () => fabric.complete(hold, 1),
    () => fabric.fail(hold, { error: "x", retryable: true }),
    () => fabric.release(hold),
  ];
}

function withWrite(records: RecordStore, write: RecordStore["write"]): RecordStore {
  return {
    rows: (sql, values) => records.rows(sql, values),
    write,
    transact: (statements) => records.transact(statements),
  };
}
