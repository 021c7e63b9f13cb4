import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { AuditLog } from "../auth/audit.ts";
import { ANONYMOUS, type Caller } from "../auth/caller.ts";
import { Ownership } from "../auth/ownership.ts";
import type { OpenedCatalog } from "../catalog/contract.test-kit.ts";
import { uuidV7Source } from "../core/ids.ts";
import { silentLog } from "../core/log.ts";
import { seededRandom } from "../core/random.ts";
import { fabricOn } from "./contract.test-kit.ts";
import type { NewJob } from "./enqueue.ts";
import type { Fabric } from "./fabric.ts";
import type { JobsOf } from "./lanes.ts";
import { Schedules } from "./schedules.ts";

const ANN: Caller = { ...ANONYMOUS, kind: "session", subject: "ann", role: "write" };
const BOB: Caller = { ...ANN, subject: "bob" };
const ROOT: Caller = { ...ANN, subject: "root", role: "admin" };
/** What an issuer may call somebody. */
const ODD: Caller = { ...ANN, kind: "oidc", subject: "https://issuer#o'd\"d\\ ünï 😀" };

function of(owner: string, admitted: readonly string[] = []): JobsOf {
  return { owner, admitted: (kind) => admitted.includes(kind) };
}

/** Whose jobs are whose, on every catalog. */
export function jobOwnersContract(name: string, open: () => Promise<OpenedCatalog>): void {
  describe(`owners of jobs on ${name}`, () => {
    let opened: OpenedCatalog;
    let fabric: Fabric;
    let ownership: Ownership;
    beforeEach(async () => {
      opened = await open();
      fabric = fabricOn(opened);
      const { records } = opened.catalog;
      const audit = new AuditLog(records, uuidV7Source(opened.clock, seededRandom(7)));
      ownership = new Ownership({ records, audit });
    });
    afterEach(async () => {
      fabric.close();
      await opened.close();
    });

    const add = (by: Caller, more: Partial<NewJob> = {}) =>
      fabric.enqueue({ kind: "test.task", payload: { n: 1 }, ...more }, by);
    const claim = async (jobsOf: JobsOf, kinds = ["test.task", "test.brief"]) => {
      const request = { holder: "w", workerId: "w", labels: {}, max: 10, waitMs: 0 };
      return (await fabric.claim({ ...request, kinds: new Set(kinds), jobsOf })).map(({ id }) => id);
    };
    const transfer = (from: string, to: string) =>
      ownership.transfer(from, to, { caller: ROOT, address: "", requestId: "" });

    it("keeps the keys of one owner apart from those of others", async () => {
      const hers = await add(ANN, { dedupKey: "k" });
      const his = await add(BOB, { dedupKey: "k" });
      expect([hers.deduped, his.deduped]).toEqual([false, false]);
      expect((await add({ ...ANN, kind: "api_token" }, { dedupKey: "k" })).job.id).toBe(hers.job.id);
      expect((await add(BOB, { dedupKey: "k" })).job.id).toBe(his.job.id);
      await fabric.cancel(hers.job.id);
      await add(ANN, { dedupKey: "k" });
      await expect(fabric.retry(hers.job.id)).rejects.toMatchObject({ code: "conflict" });
      await fabric.cancel(his.job.id);
      expect((await fabric.retry(his.job.id)).status).toBe("queued");
    });

    it("lists those of one owner, by kind, status and page, and finds them for that owner and admins", async () => {
      const jobs = [await add(ANN), await add(BOB), await add(ANN, { kind: "test.brief" }), await add(ODD)];
      const [a, b, c, d] = jobs.map(({ job }) => job.id);
      await fabric.cancel(c ?? "");
      const ids = async (filter: Partial<Parameters<Fabric["list"]>[0]>) =>
        (await fabric.list({ databases: undefined, limit: 10, ...filter })).map(({ id }) => id);
      expect(await ids({})).toEqual([d, c, b, a]);
      expect(await ids({ owner: "ann" })).toEqual([c, a]);
      expect(await ids({ owner: "ann", limit: 1 })).toEqual([c]);
      expect(await ids({ owner: "ann", before: c })).toEqual([a]);
      expect(await ids({ owner: "ann", status: "cancelled" })).toEqual([c]);
      expect(await ids({ owner: "ann", kind: "test.task" })).toEqual([a]);
      expect(await ids({ owner: ODD.subject })).toEqual([d]);
      expect(await ids({ owner: "nobody" })).toEqual([]);
      const seen = await Promise.all([ANN, BOB, ODD, ROOT].map((by) => fabric.find(d ?? "", by)));
      expect(seen.map((job) => job?.id)).toEqual([undefined, undefined, d, d]);
    });

    it("gives a worker the jobs of its owner, and of kinds that it is admitted for everybody's", async () => {
      const [a, b, c, d] = [
        await add(ANN),
        await add(BOB),
        await add(BOB, { kind: "test.brief" }),
        await add(ODD, { kind: "test.brief" }),
      ].map(({ job }) => job.id);
      expect(await claim(of("nobody"))).toEqual([]);
      expect(await claim(of("ann"))).toEqual([a]);
      expect((await claim(of("ann", ["test.brief"]))).toSorted()).toEqual([c, d]);
      expect(await claim("everybody")).toEqual([b]);
    });

    it("hands jobs over with their places in the queue, and schedules; not with an admin's rights", async () => {
      const schedules = new Schedules({
        fabric,
        records: opened.catalog.records,
        newId: uuidV7Source(opened.clock, seededRandom(8)),
        log: silentLog,
      });
      const timing = { everyMs: 60_000 };
      const definition = { name: "it", kind: "test.task", payload: { n: 2 }, database: undefined, timing };
      const more = { catchUp: "once", jitterMs: 0, enabled: true } as const;
      const schedule = await schedules.create({ ...definition, ...more }, ROOT);
      const [first, second] = [await add(ROOT, { dedupKey: "k" }), await add(ODD)];
      expect((await transfer("root", ODD.subject)).filter(({ count }) => count > 0)).toEqual([
        { table: "jobs", count: 1 },
        { table: "schedules", count: 1 },
      ]);
      await transfer(ODD.subject, "bob");
      opened.clock.advance(5_000);
      expect((await claim(of("bob"))).toSorted()).toEqual([first.job.id, second.job.id].toSorted());
      expect((await fabric.find(first.job.id, BOB))?.owner).toMatchObject({ owner: "bob", role: "write" });
      expect((await schedules.get(schedule.id, BOB)).owner).toMatchObject({ owner: "bob", role: "write" });
      expect((await add(BOB, { dedupKey: "k" })).deduped).toBe(true);
    });

    it("hands nothing over where two unfinished jobs would have one key", async () => {
      const [hers] = [await add(ANN, { dedupKey: "k" }), await add(BOB, { dedupKey: "k" })];
      await add(ANN);
      await expect(transfer("ann", "bob")).rejects.toMatchObject({ code: "conflict" });
      expect(await fabric.list({ databases: undefined, owner: "ann", limit: 10 })).toHaveLength(2);
      await fabric.cancel(hers.job.id);
      await transfer("ann", "bob");
      expect(await fabric.list({ databases: undefined, owner: "bob", limit: 10 })).toHaveLength(3);
    });
  });
}
