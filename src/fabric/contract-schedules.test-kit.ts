import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { OpenedCatalog } from "../catalog/contract.test-kit.ts";
import type { RecordStore } from "../db/records.ts";
import { ANONYMOUS, type Caller } from "../auth/caller.ts";
import { uuidV7Source } from "../core/ids.ts";
import { silentLog } from "../core/log.ts";
import { seededRandom } from "../core/random.ts";
import { fabricOn } from "./contract.test-kit.ts";
import type { Fabric } from "./fabric.ts";
import type { Job } from "./job.ts";
import type { Schedule } from "./schedule.ts";
import { Schedules, type ScheduleDefinition, type SchedulePage } from "./schedules.ts";

const MINUTE_MS = 60_000;
const LIMITED: Caller = { subject: "bob", kind: "api_token", role: "write", databases: ["logs"] };

/** What schedules must do on every catalog. */
export function schedulesContract(name: string, open: () => Promise<OpenedCatalog>): void {
  describe(`schedules on ${name}`, () => {
    let opened: OpenedCatalog;
    let fabrics: Fabric[];
    let schedules: Schedules;
    const node = (seed: number, records: RecordStore = opened.catalog.records): Schedules => {
      const fabric = fabricOn(opened, seed);
      fabrics.push(fabric);
      const newId = uuidV7Source(opened.clock, seededRandom(seed + 100));
      return new Schedules({ fabric, records, newId, log: silentLog });
    };
    beforeEach(async () => {
      opened = await open();
      fabrics = [];
      schedules = node(1);
      // On the minute, so that what is every so often comes at a whole one.
      opened.clock.advance(MINUTE_MS - (opened.clock.nowMs() % MINUTE_MS));
    });
    afterEach(async () => {
      for (const fabric of fabrics) fabric.close();
      await opened.close();
    });

    const add = (more: Partial<ScheduleDefinition> = {}, owner: Caller = ANONYMOUS, on = schedules) =>
      on.create(
        {
          name: "it",
          kind: "test.task",
          payload: { n: 1 },
          database: undefined,
          timing: { everyMs: MINUTE_MS },
          catchUp: "once",
          jitterMs: 0,
          enabled: true,
          ...more,
        },
        owner,
      );
    /** Oldest first. */
    const jobs = async (): Promise<Job[]> => {
      const [fabric] = fabrics;
      if (fabric === undefined) return [];
      const listed = await fabric.list({ databases: undefined, limit: 500 });
      const found = await Promise.all(listed.toReversed().map(({ id }) => fabric.find(id, ANONYMOUS)));
      return found.filter((job) => job !== undefined);
    };
    const ticksOfJobs = async () => (await jobs()).map(({ dedupKey }) => Date.parse(dedupKey?.slice(-24) ?? ""));

    it("makes a job of each tick, with the rights of its owner", async () => {
      const startMs = opened.clock.nowMs();
      const owner: Caller = { subject: "ann", kind: "session", role: "write", databases: ["logs"], userId: "u1" };
      const made = await add({ database: "Logs" }, owner);
      expect(made).toMatchObject({ database: "logs", nextAtMs: startMs + MINUTE_MS, lastAtMs: undefined });
      expect(made.owner).toEqual({ owner: "ann", subject: "ann", kind: "session", role: "write", databases: ["logs"] });
      opened.clock.advance(MINUTE_MS - 1);
      expect(await schedules.fireDue()).toBe(0);
      opened.clock.advance(1);
      expect(await schedules.fireDue()).toBe(1);
      expect(await schedules.fireDue()).toBe(0);
      const [job] = await jobs();
      expect(job).toMatchObject({ kind: "test.task", payload: { n: 1 }, database: "logs", status: "queued" });
      expect(job?.owner).toEqual(made.owner);
      expect(await schedules.get(made.id, ANONYMOUS)).toMatchObject({
        lastAtMs: startMs + MINUTE_MS,
        nextAtMs: startMs + 2 * MINUTE_MS,
        lastJobId: job?.id,
        updatedAtMs: startMs,
      });
      opened.clock.advance(MINUTE_MS);
      await schedules.fireDue();
      expect(await ticksOfJobs()).toEqual([startMs + MINUTE_MS, startMs + 2 * MINUTE_MS]);
    });

    it("makes each job once, however many nodes fire at once", async () => {
      const nodes = [schedules, node(2), node(3)];
      for (let i = 0; i < 10; i++) await add({ name: `s${i}`, timing: { everyMs: 1_000 } });
      for (let round = 0; round < 3; round++) {
        opened.clock.advance(1_000);
        const made = await Promise.all(nodes.map((one) => one.fireDue()));
        expect(made.reduce((sum, one) => sum + one, 0)).toBe(10);
      }
      const keys = (await jobs()).map(({ dedupKey }) => dedupKey);
      expect(new Set(keys).size).toBe(30);
      expect(keys).toHaveLength(30);
    });

    it("fires more schedules than one look finds", async () => {
      for (let i = 0; i < 120; i++) await add({ name: `s${i}` });
      opened.clock.advance(MINUTE_MS);
      expect(await schedules.fireDue()).toBe(120);
    });

    it("leaves out, joins or makes up for what was missed", async () => {
      const startMs = opened.clock.nowMs();
      const ticksWith = async (catchUp: ScheduleDefinition["catchUp"], everyMs: number, awayMs: number) => {
        const made = await add({ name: `${catchUp} ${everyMs} ${awayMs}`, catchUp, timing: { everyMs } });
        const fromMs = opened.clock.nowMs();
        opened.clock.advance(awayMs);
        await schedules.fireDue();
        const { nextAtMs = 0 } = await schedules.get(made.id, ANONYMOUS);
        await schedules.remove(made.id, ANONYMOUS);
        expect(nextAtMs).toBeGreaterThan(opened.clock.nowMs());
        const keys = (await jobs()).map(({ dedupKey }) => dedupKey ?? "").filter((key) => key.includes(made.id));
        return keys.map((key) => (Date.parse(key.slice(-24)) - fromMs) / MINUTE_MS).toSorted((a, b) => a - b);
      };
      expect(startMs % MINUTE_MS).toBe(0);
      expect(await ticksWith("skip", MINUTE_MS, 5 * MINUTE_MS)).toEqual([5]);
      expect(await ticksWith("once", MINUTE_MS, 5 * MINUTE_MS)).toEqual([5]);
      expect(await ticksWith("all", MINUTE_MS, 5 * MINUTE_MS)).toEqual([1, 2, 3, 4, 5]);
      const many = await ticksWith("all", MINUTE_MS, 1_000 * MINUTE_MS);
      expect(many).toEqual(Array.from({ length: 100 }, (_, i) => 901 + i));
    });

    it("skips a tick that is long over, and not one that is a little late", async () => {
      const { id } = await add({ catchUp: "skip", timing: { everyMs: 60 * MINUTE_MS } });
      const { nextAtMs = 0 } = await schedules.get(id, ANONYMOUS);
      opened.clock.advance(nextAtMs - opened.clock.nowMs() + MINUTE_MS + 1);
      expect(await schedules.fireDue()).toBe(0);
      const after = await schedules.get(id, ANONYMOUS);
      expect(after).toMatchObject({ lastAtMs: nextAtMs, nextAtMs: nextAtMs + 60 * MINUTE_MS, lastJobId: undefined });
      opened.clock.advance(60 * MINUTE_MS - 1);
      expect(await schedules.fireDue()).toBe(1);
    });

    it("spreads ticks by the jitter, in their order and the same for all", async () => {
      const made = await add({ jitterMs: 10 * MINUTE_MS });
      const startMs = opened.clock.nowMs();
      const lateMs: number[] = [];
      for (let i = 1; i <= 20; i++) {
        const { nextAtMs = 0 } = await schedules.get(made.id, ANONYMOUS);
        const tickMs = startMs + i * MINUTE_MS;
        expect(nextAtMs).toBeGreaterThanOrEqual(tickMs);
        expect(nextAtMs).toBeLessThan(tickMs + MINUTE_MS);
        lateMs.push(nextAtMs - tickMs);
        opened.clock.advance(nextAtMs - opened.clock.nowMs() - 1);
        expect(await schedules.fireDue()).toBe(0);
        opened.clock.advance(1);
        expect(await node(i + 10).fireDue()).toBe(1);
      }
      expect(new Set(lateMs).size).toBeGreaterThan(10);
      expect(await ticksOfJobs()).toEqual(Array.from({ length: 20 }, (_, i) => startMs + (i + 1) * MINUTE_MS));
    });

    it("ticks in the local time of its zone", async () => {
      const startMs = Date.parse("2026-03-28T12:00:00Z");
      opened.clock.advance(startMs - opened.clock.nowMs());
      await add({ timing: { cron: "30 2 * * *", timeZone: "Europe/Berlin" }, catchUp: "all" });
      for (let hour = 0; hour < 48; hour++) {
        opened.clock.advance(60 * MINUTE_MS);
        await schedules.fireDue();
      }
      const times = (await ticksOfJobs()).map((atMs) => new Date(atMs).toISOString());
      expect(times).toEqual(["2026-03-29T01:00:00.000Z", "2026-03-30T00:30:00.000Z"]);
    });

    it("makes a job once though a node dies, or does not hear that it is stored", async () => {
      await add();
      const { records } = opened.catalog;
      const failing = (isStored: boolean): RecordStore => ({
        rows: (sql, values) => records.rows(sql, values),
        write: (statement) => records.write(statement),
        transact: async (statements) => {
          if (isStored) await records.transact(statements);
          throw new Error("the connection broke");
        },
      });
      opened.clock.advance(MINUTE_MS);
      await expect(node(2, failing(false)).fireDue()).rejects.toThrow("the connection broke");
      expect(await schedules.fireDue()).toBe(1);
      opened.clock.advance(MINUTE_MS);
      await expect(node(3, failing(true)).fireDue()).rejects.toThrow("the connection broke");
      expect(await schedules.fireDue()).toBe(0);
      expect(await jobs()).toHaveLength(2);
    });

    it("is not kept by one that cannot fire from firing others", async () => {
      const [unclear, unlawful, moved, good] = [
        await add({ name: "unclear" }),
        await add({ name: "unlawful" }),
        await add({ name: "moved", timing: { everyMs: 60 * MINUTE_MS } }),
        await add({ name: "good" }),
      ];
      const write = (sql: string, ...values: string[]) => opened.catalog.records.write({ sql, values });
      const noTiming = JSON.stringify({ cron: "* * * * *", timeZone: "Atlantis/Capital" });
      await write("UPDATE schedules SET timing = ? WHERE id = ?", noTiming, unclear.id);
      await write("UPDATE schedules SET kind = 'gone' WHERE id = ?", unlawful.id);
      await write("UPDATE schedules SET next_at_ms = 0 WHERE id = ?", moved.id);
      opened.clock.advance(MINUTE_MS);
      expect(await schedules.fireDue()).toBe(1);
      expect((await jobs()).map(({ dedupKey }) => dedupKey?.includes(good.id))).toEqual([true]);
      const nextOf = async ({ id }: Schedule) => (await schedules.get(id, ANONYMOUS)).nextAtMs;
      expect(await nextOf(unclear)).toBeUndefined();
      expect(await nextOf(unlawful)).toBe(opened.clock.nowMs() + MINUTE_MS);
      expect(await nextOf(moved)).toBe(moved.nextAtMs);
      expect(await schedules.change(unclear.id, { timing: { everyMs: MINUTE_MS } }, ANONYMOUS)).toMatchObject({
        nextAtMs: opened.clock.nowMs() + MINUTE_MS,
      });
    });

    it("keeps all of several changes that are made at once", async () => {
      const { id } = await add();
      await Promise.all([
        schedules.change(id, { payload: { n: 5 } }, ANONYMOUS),
        schedules.change(id, { jitterMs: 7 }, ANONYMOUS),
        schedules.change(id, { catchUp: "all" }, ANONYMOUS),
      ]);
      expect(await schedules.get(id, ANONYMOUS)).toMatchObject({ payload: { n: 5 }, jitterMs: 7, catchUp: "all" });
    });

    it("does not fire while it is off, and counts from when it is on again", async () => {
      const { id } = await add();
      expect(await schedules.change(id, { enabled: false }, ANONYMOUS)).toMatchObject({
        enabled: false,
        nextAtMs: undefined,
      });
      opened.clock.advance(10 * MINUTE_MS);
      expect(await schedules.fireDue()).toBe(0);
      const on = await schedules.change(id, { enabled: true, timing: { everyMs: 2 * MINUTE_MS } }, ANONYMOUS);
      expect(on.nextAtMs).toBeGreaterThan(opened.clock.nowMs());
      expect(on).toMatchObject({ timing: { everyMs: 2 * MINUTE_MS }, payload: { n: 1 }, catchUp: "once" });
      opened.clock.advance(2 * MINUTE_MS);
      expect(await schedules.fireDue()).toBe(1);
    });

    it("runs with the rights that its owner had when changing it last", async () => {
      const bob: Caller = { ...LIMITED, kind: "session", databases: undefined };
      const { id } = await add({ database: "logs" }, bob);
      const changed = await schedules.change(id, { payload: { n: 2 } }, LIMITED);
      expect(changed.owner).toEqual({ ...LIMITED, owner: "bob" });
      opened.clock.advance(MINUTE_MS);
      await schedules.fireDue();
      expect(await jobs()).toMatchObject([{ payload: { n: 2 }, owner: { subject: "bob" } }]);
      await expect(schedules.change(id, { payload: {} }, LIMITED)).rejects.toMatchObject({ code: "bad_request_body" });
      const reader: Caller = { ...LIMITED, role: "read" };
      await expect(schedules.change(id, { payload: { n: 3 } }, reader)).rejects.toMatchObject({ code: "forbidden" });
      await expect(schedules.run(id, reader)).rejects.toMatchObject({ code: "forbidden" });
    });

    it("runs now, as its owner, and ticks as before", async () => {
      const made = await add({ database: "logs" }, LIMITED);
      const job = await schedules.run(made.id, LIMITED);
      expect(job).toMatchObject({ payload: { n: 1 }, database: "logs", owner: { subject: "bob", owner: "bob" } });
      expect(await schedules.get(made.id, ANONYMOUS)).toEqual(made);
    });

    it("changed or run by an admin: stays its owner's, with the rights that it had", async () => {
      const made = await add({ database: "logs" }, LIMITED);
      const root: Caller = { ...ANONYMOUS, subject: "root", kind: "session" };
      expect((await schedules.change(made.id, { payload: { n: 2 } }, root)).owner).toEqual(made.owner);
      expect((await schedules.run(made.id, root)).owner).toEqual(made.owner);
      opened.clock.advance(MINUTE_MS);
      await schedules.fireDue();
      expect((await jobs()).map(({ owner }) => owner)).toEqual([made.owner, made.owner]);
    });

    it("is its owner's alone, and so is its name", async () => {
      const ann: Caller = { ...LIMITED, subject: "ann", databases: undefined };
      const bob: Caller = { ...ann, subject: "bob" };
      const [hers, his] = [await add({}, ann), await add({}, bob)];
      const seen = async (by: Caller, page: Partial<SchedulePage> = {}) =>
        (await schedules.list(by, { limit: 10, ...page })).map(({ id }) => id);
      expect([await seen(ann), await seen(bob)]).toEqual([[hers.id], [his.id]]);
      expect(await seen(ANONYMOUS)).toEqual([hers.id, his.id]);
      // By name a page would leave out the second of two that are called alike.
      expect(await seen(ANONYMOUS, { after: hers.id })).toEqual([his.id]);
      expect(await seen(bob, { after: hers.id })).toEqual([his.id]);
      for (const ask of [
        () => schedules.get(hers.id, bob),
        () => schedules.change(hers.id, { enabled: false }, bob),
        () => schedules.run(hers.id, bob),
        () => schedules.remove(hers.id, bob),
      ]) {
        await expect(ask()).rejects.toMatchObject({ code: "not_found" });
      }
      expect(await schedules.get(hers.id, ann)).toEqual(hers);
    });

    it("shows and changes what the scope allows, by name and page by page", async () => {
      const [a, b, c] = [
        await add({ name: "a" }),
        await add({ name: "b", database: "logs" }),
        await add({ name: "c", database: "other" }),
      ];
      const names = async ({ databases, ...page }: Partial<SchedulePage> & Partial<Pick<Caller, "databases">>) =>
        (await schedules.list({ ...ANONYMOUS, databases }, { limit: 10, ...page })).map((one) => one.name);
      const limited: Caller = { ...ANONYMOUS, databases: ["logs"] };
      expect(await names({})).toEqual(["a", "b", "c"]);
      expect(await names({ limit: 2 })).toEqual(["a", "b"]);
      expect(await names({ limit: 2, after: "b" })).toEqual(["c"]);
      expect(await names({ databases: ["logs"] })).toEqual(["b"]);
      expect(await names({ databases: [] })).toEqual([]);
      const hidden = [
        ...[a, c].map(
          ({ id }) =>
            () =>
              schedules.get(id, limited),
        ),
        () => schedules.remove(a.id, limited),
        () => schedules.run(c.id, limited),
        () => schedules.change(c.id, { enabled: false }, limited),
        () => schedules.get("nothing", ANONYMOUS),
        () => schedules.get("\0", ANONYMOUS),
      ];
      for (const ask of hidden) await expect(ask()).rejects.toMatchObject({ code: "not_found" });
      await schedules.remove(b.id, limited);
      expect(await names({})).toEqual(["a", "c"]);
    });

    it("refuses a name that is taken, what never comes, and jobs that could not be", async () => {
      await add();
      await expect(add()).rejects.toMatchObject({ code: "conflict" });
      const refused = (more: Partial<ScheduleDefinition>, owner?: Caller) => add({ name: "other", ...more }, owner);
      const never = { cron: "0 0 30 2 *", timeZone: "UTC" };
      await expect(refused({ timing: never })).rejects.toThrow(/never comes/);
      await expect(refused({ timing: { cron: "x", timeZone: "UTC" } })).rejects.toMatchObject({
        code: "bad_request_body",
      });
      await expect(refused({ kind: "nothing" })).rejects.toMatchObject({ code: "invalid_parameter" });
      await expect(refused({ payload: "no" })).rejects.toMatchObject({ code: "bad_request_body" });
      await expect(refused({}, LIMITED)).rejects.toMatchObject({ code: "forbidden" });
      await expect(refused({ database: "other" }, LIMITED)).rejects.toMatchObject({ code: "forbidden" });
    });
  });
}
