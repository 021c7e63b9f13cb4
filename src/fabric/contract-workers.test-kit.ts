import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { OpenedCatalog } from "../catalog/contract.test-kit.ts";
import { AuditLog, type Origin } from "../auth/audit.ts";
import { ANONYMOUS, type Caller } from "../auth/caller.ts";
import { uuidV7Source } from "../core/ids.ts";
import { seededRandom } from "../core/random.ts";
import { fabricOn } from "./contract.test-kit.ts";
import type { Fabric } from "./fabric.ts";
import { holdOf, type Job } from "./job.ts";
import type { NewJob } from "./enqueue.ts";
import { Workers } from "./workers.ts";

const OFFLINE_MS = 90_000;
const OPS: Origin & { caller: Caller } = { caller: ANONYMOUS, address: "10.0.0.1", requestId: "r-1" };

/** What workers, and jobs that name them, must do on every catalog. */
export function workersContract(name: string, open: () => Promise<OpenedCatalog>): void {
  describe(`the workers on ${name}`, () => {
    let opened: OpenedCatalog;
    let fabric: Fabric;
    let workers: Workers;
    beforeEach(async () => {
      opened = await open();
      fabric = fabricOn(opened);
      const { records } = opened.catalog;
      const random = seededRandom(7);
      const newId = uuidV7Source(opened.clock, random);
      workers = new Workers({ records, newId, random, audit: new AuditLog(records, newId), offlineMs: OFFLINE_MS });
    });
    afterEach(async () => {
      fabric.close();
      await opened.close();
    });

    const add = async (request: Partial<NewJob> = {}): Promise<Job> =>
      (await fabric.enqueue({ kind: "test.task", payload: { n: 1 }, ...request }, ANONYMOUS)).job;
    const claim = (id: string, max = 1) =>
      fabric.claim({
        kinds: new Set(["test.task"]),
        holder: id,
        workerId: id,
        jobsOf: "everybody",
        max,
        labels: {},
        waitMs: 0,
      });

    it("knows a worker by its token until it is revoked", async () => {
      const labels = { zone: "b", odd: 'it\'s "x" ? $1' };
      const { token, worker } = await workers.create({ name: "ünï 😀", capabilities: ["x.task"], labels }, OPS);
      expect(await workers.authenticate(token)).toEqual(worker);
      expect(worker).toMatchObject({ status: "new", capabilities: ["x.task"], labels, drain: false });
      const other = await workers.create({ name: "other" }, OPS);
      expect(other.worker).toMatchObject({ capabilities: undefined, labels: {} });
      await workers.revoke(worker.id, OPS);
      expect(await workers.authenticate(token)).toBeUndefined();
      expect(await workers.authenticate(other.token)).toEqual(other.worker);
      expect((await workers.list(OPS.caller)).map(({ id }) => id)).toEqual([other.worker.id, worker.id]);
      await expect(workers.revoke(worker.id, OPS)).rejects.toMatchObject({ code: "not_found" });
      await expect(workers.drain(worker.id, true, OPS)).rejects.toMatchObject({ code: "not_found" });
      await expect(workers.revoke("a\0b", OPS)).rejects.toMatchObject({ code: "not_found" });
    });

    it("says how a worker stands, by the time of the database", async () => {
      const { worker } = await workers.create({ name: "w" }, OPS);
      const { id } = worker;
      await workers.register(id, "box");
      expect(await workers.get(id, OPS.caller)).toMatchObject({ status: "online", host: "box" });
      expect((await workers.drain(id, true, OPS)).status).toBe("draining");
      opened.clock.advance(OFFLINE_MS + 1);
      expect((await workers.get(id, OPS.caller)).status).toBe("offline");
      expect((await workers.heartbeat(id)).worker.status).toBe("draining");
    });

    it("names the jobs of a worker that are cancelled in its heartbeat", async () => {
      const { worker } = await workers.create({ name: "w" }, OPS);
      const [one] = [await add(), await add()];
      await claim(worker.id, 2);
      await fabric.cancel(one.id);
      expect((await workers.heartbeat(worker.id)).cancel).toEqual([one.id]);
    });

    it("revoked: loses what it holds, and ends what is for it alone", async () => {
      const { worker } = await workers.create({ name: "w" }, OPS);
      const { id } = worker;
      const [pinned, dropped, shared] = [await add({ workerId: id }), await add({ workerId: id }), await add()];
      const held = await claim(id, 3);
      expect(held).toHaveLength(3);
      const waiting = await add({ workerId: id, delayMs: 60_000 });
      const ofAnother = await add({ workerId: "another" });
      await fabric.cancel(dropped.id);
      expect(await workers.countPinned(id, 10)).toBe(1);
      await workers.revoke(id, OPS);
      for (const job of held) {
        await expect(fabric.leasedJob(holdOf(job))).rejects.toMatchObject({ code: "lease_lost" });
        await expect(fabric.extend(holdOf(job), 10_000)).rejects.toMatchObject({ code: "lease_lost" });
      }
      expect((await fabric.sweep()).map((job) => job.id)).toEqual([shared.id]);
      const statusOf = async (job: Job) => (await fabric.find(job.id, ANONYMOUS))?.status;
      expect(await Promise.all([pinned, dropped, shared, waiting, ofAnother].map(statusOf))).toEqual([
        "failed",
        "cancelled",
        "queued",
        "failed",
        "queued",
      ]);
      expect(await workers.countPinned(id, 10)).toBe(0);
    });

    it("gives what is for the holder alone to the holder alone", async () => {
      const job = await add();
      const [claimed] = await claim("w1");
      const hold = holdOf(claimed ?? job);
      expect(await fabric.leasedJob(hold)).toMatchObject({ id: job.id });
      await expect(fabric.leasedJob({ ...hold, holder: "w2" })).rejects.toMatchObject({ code: "lease_lost" });
      await expect(fabric.leasedJob({ ...hold, fence: 0 })).rejects.toMatchObject({ code: "lease_lost" });
      await fabric.complete(hold, 1);
      await expect(fabric.leasedJob(hold)).rejects.toMatchObject({ code: "lease_lost" });
    });

    it("lets a job wait until a time, and none go ahead by a time that is past", async () => {
      const nowMs = opened.clock.nowMs();
      const first = await add();
      opened.clock.advance(10);
      const past = await add({ runAfterMs: nowMs - 1_000_000 });
      expect(past.runAfterMs).toBe(nowMs + 10);
      const later = await add({ runAfterMs: nowMs + 60_000 });
      expect(later.runAfterMs).toBe(nowMs + 60_000);
      expect((await claim("w1")).map(({ id }) => id)).toEqual([first.id]);
      expect((await claim("w1", 5)).map(({ id }) => id)).toEqual([past.id]);
      opened.clock.advance(60_000);
      expect((await claim("w1", 5)).map(({ id }) => id)).toEqual([later.id]);
    });

    it("lists jobs without what may be large", async () => {
      await add({ payload: { n: 77_777 } });
      const listed = await fabric.list({ databases: undefined, limit: 5 });
      expect(listed).toHaveLength(1);
      expect(JSON.stringify(listed)).not.toContain("77777");
    });
  });
}
