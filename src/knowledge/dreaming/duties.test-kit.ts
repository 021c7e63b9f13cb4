import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { OpenedCatalog } from "../../catalog/contract.test-kit.ts";
import { uuidV7Source } from "../../core/ids.ts";
import { silentLog } from "../../core/log.ts";
import { seededRandom } from "../../core/random.ts";
import { Fabric } from "../../fabric/fabric.ts";
import { JobKinds } from "../../fabric/kinds.ts";
import { memorySettings, writeSettings } from "../memory/settings.ts";
import { DREAM_JOB } from "./dream-job.ts";
import { DreamQueue } from "./queue.ts";
import { PipelineRuns } from "./runs.ts";
import { DreamSchedules } from "./schedule.ts";
import { sweepDroppedRuns } from "./sweep.ts";

const HOUR_MS = 3_600_000;
const { signal } = new AbortController();

/** What one process of many does for dreams, on every driver of the catalog. */
export function dreamDutiesContract(driver: string, open: () => Promise<OpenedCatalog>): void {
  describe(`duties of dreams on ${driver}`, () => {
    let opened: OpenedCatalog;
    let runs: PipelineRuns;
    let queue: DreamQueue;
    let schedules: DreamSchedules;
    let databaseId: number;

    beforeEach(async () => {
      opened = await open();
      const { catalog, clock } = opened;
      const { records } = catalog;
      const random = seededRandom(1);
      const newId = uuidV7Source(clock, random);
      const kinds = new JobKinds([DREAM_JOB]);
      const fabric = new Fabric({ ...catalog, kinds, clock, random, newId, log: silentLog, leaseMs: 60_000 });
      runs = new PipelineRuns({ records, newId });
      queue = new DreamQueue({ records, fabric, runs });
      schedules = new DreamSchedules({ catalog, records, runs, queue, log: silentLog });
      databaseId = (await catalog.createDatabase("d")).database.id;
      // Half past.
      clock.advance(HOUR_MS - ((await catalog.nowMs()) % HOUR_MS) + HOUR_MS / 2);
    });
    afterEach(() => opened.close());

    async function schedule(cron: string | undefined): Promise<void> {
      const dreaming = cron === undefined ? {} : { schedule: { cron, mode: "deep" } };
      await opened.catalog.records.transact([writeSettings(databaseId, memorySettings.parse({ dreaming }))]);
    }
    const dreams = async () => await runs.list(databaseId, { limit: 200, offset: 0 });
    const pass = (hours: number): void => opened.clock.advance(hours * HOUR_MS);
    const endJobs = () =>
      opened.catalog.records.write({ sql: "UPDATE jobs SET status = 'cancelled', finished_at_ms = 1" });

    it("dream at each tick from the time of the schedule on, once, whoever looks", async () => {
      await schedule("0 * * * *");
      expect(await schedules.fireDue()).toBe(0);
      pass(0.25);
      expect(await schedules.fireDue()).toBe(0);
      pass(0.5);
      const fired = await Promise.all([schedules.fireDue(), schedules.fireDue()]);
      expect(Math.min(...fired) + 2 * Math.max(...fired)).toBe(2);
      expect(await schedules.fireDue()).toBe(0);
      expect(await dreams()).toMatchObject([
        { kind: "dreaming", trigger: "schedule", mode: "deep", status: "queued", requestedBy: undefined },
      ]);
    });

    it("dream once for ticks that nobody was there for, and not while a dream is under way", async () => {
      await schedule("0 * * * *");
      await schedules.fireDue();
      pass(5);
      expect(await schedules.fireDue()).toBe(1);
      pass(1);
      expect(await schedules.fireDue()).toBe(0);
      await endJobs();
      expect(await schedules.fireDue()).toBe(1);
      expect(await dreams()).toHaveLength(2);
    });

    it("count ticks anew where the schedule was changed, and dream no more where it is gone", async () => {
      await schedule("0 * * * *");
      await schedules.fireDue();
      pass(2);
      await schedule("15 * * * *");
      expect(await schedules.fireDue()).toBe(0);
      pass(1);
      expect(await schedules.fireDue()).toBe(1);
      await endJobs();
      await schedule(undefined);
      pass(2);
      expect(await schedules.fireDue()).toBe(0);
    });

    it("have one dream under way, whoever asks, and store a run for each", async () => {
      const request = { databaseId, database: "d", mode: "incremental", trigger: "manual" } as const;
      const asked = await Promise.all([1, 2, 3].map(() => queue.request(request)));
      expect(asked.filter(({ jobId }) => jobId !== undefined)).toHaveLength(1);
      const [run, ...more] = await dreams();
      expect([run?.status, more]).toEqual(["queued", []]);
      expect(await queue.request(request)).toEqual({ jobId: undefined, inFlight: run?.id });
      const other = (await opened.catalog.createDatabase("e")).database.id;
      expect(await queue.request({ ...request, databaseId: other, database: "e" })).toMatchObject({
        jobId: expect.any(String),
      });
    });

    it("delete runs of dropped databases, and no others", async () => {
      const { catalog } = opened;
      const { records } = catalog;
      const gone = (await catalog.createDatabase("gone")).database.id;
      const change = { kind: "node", id: "a", proposal: 0, versionBefore: undefined, versionAfter: 1 } as const;
      const begun: string[] = [];
      for (const id of [databaseId, gone]) {
        const run = await runs.begin({ databaseId: id, kind: "consolidation", trigger: "poll" });
        const from = await runs.watermark(id, "consolidation");
        await records.transact([
          ...runs.changeStatements(run, [change]),
          runs.advanceStatement(id, "consolidation", from, 1),
        ]);
        begun.push(run);
      }
      expect(await sweepDroppedRuns({ catalog, records }, signal)).toBe(0);
      await catalog.dropDatabase(gone);
      expect(await sweepDroppedRuns({ catalog, records }, signal)).toBe(1);
      const left = await Promise.all(begun.map((run) => runs.changes(run)));
      expect(left).toEqual([[change], []]);
      expect((await runs.watermark(gone, "consolidation")).position).toBeUndefined();
      expect((await runs.watermark(databaseId, "consolidation")).position).toBe(1);
      expect(await dreams()).toHaveLength(1);
    });
  });
}
