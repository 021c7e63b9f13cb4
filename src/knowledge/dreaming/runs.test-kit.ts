import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { OpenedCatalog } from "../../catalog/contract.test-kit.ts";
import { uuidV7Source } from "../../core/ids.ts";
import { seededRandom } from "../../core/random.ts";
import { NOW, type RecordStore } from "../../db/records.ts";
import { PipelineRuns, type RunChange, type RunEnd } from "./runs.ts";

const DONE: RunEnd = {
  status: "done",
  eventsScanned: 7,
  memoriesWritten: 2,
  stats: { added: 2, refused: { realm: 1 } },
};
const OTHER_DATABASE = 2;

/** What the ledger must do on every driver of the catalog. */
export function runsContract(driver: string, open: () => Promise<OpenedCatalog>): void {
  describe(`the ledger of pipelines on ${driver}`, () => {
    let opened: OpenedCatalog;
    let records: RecordStore;
    let runs: PipelineRuns;

    beforeEach(async () => {
      opened = await open();
      ({ records } = opened.catalog);
      runs = new PipelineRuns({ records, newId: uuidV7Source(opened.clock, seededRandom(1)) });
    });
    afterEach(() => opened.close());

    const begin = (kind: "consolidation" | "ci_correlate" = "consolidation", databaseId = 1): Promise<string> => {
      opened.clock.advance(1_000);
      return runs.begin({ databaseId, kind, trigger: "poll" });
    };
    const stored = async (id: string) => await runs.get(1, id);

    /** A run that waits for a job of that status, of which it knows nothing. */
    async function queuedWith(
      status: string,
      { error = null as string | null, progress = null as string | null } = {},
    ) {
      opened.clock.advance(1_000);
      const jobId = `job-${status}-${opened.clock.nowMs()}`;
      const { id, statement } = runs.queued(
        { databaseId: 1, kind: "dreaming", trigger: "manual", mode: "deep", focus: "deploys", requestedBy: "ann" },
        jobId,
      );
      const sql =
        "INSERT INTO jobs (id, kind, status, lane, priority, run_after_ms, payload, owner, subject, caller_kind, role, " +
        "attempt, max_attempts, backoff_ms, lease_ms, fence, cancel_requested, created_at_ms, updated_at_ms, error, progress) " +
        "VALUES (?, 'dreaming', ?, 'l', 0, 0, '{}', 'engine', 'dreaming', 'internal', 'read', 0, 1, 1, 1, 0, 0, ?, ?, ?, ?)";
      await records.transact([statement, { sql, values: [jobId, status, NOW, NOW, error, progress] }]);
      return { id, jobId };
    }

    it("tells a run of a duty from its begin to its end", async () => {
      const id = await begin();
      expect(await stored(id)).toMatchObject({ id, kind: "consolidation", status: "running", trigger: "poll" });
      const snapshot = { phase: "links", events: 0, proposals: 3, written: 1 };
      await runs.progress(id, snapshot);
      expect((await stored(id))?.progress).toEqual(snapshot);
      opened.clock.advance(5_000);
      expect(await runs.finish(id, DONE)).toBe(true);
      const ended = await stored(id);
      expect(ended).toMatchObject({ status: "done", eventsScanned: 7, memoriesWritten: 2, stats: DONE.stats });
      expect(ended?.progress).toBeUndefined();
      expect((ended?.finishedAtMs ?? 0) - (ended?.startedAtMs ?? 0)).toBe(5_000);
    });

    it("ends a run once, and keeps how it ended", async () => {
      const id = await begin();
      await runs.finish(id, DONE);
      const error = { code: "internal", message: "too late" };
      expect(await runs.finish(id, { ...DONE, status: "failed", error })).toBe(false);
      expect(await stored(id)).toMatchObject({ status: "done", error: undefined });
    });

    it("ends what a process left that is gone, when the next run of that kind and database begins", async () => {
      const [left, ofOtherKind, ofOtherDatabase] = [
        await begin(),
        await begin("ci_correlate"),
        await begin("consolidation", OTHER_DATABASE),
      ];
      await begin();
      expect(await stored(left)).toMatchObject({ status: "failed", error: { code: "interrupted" } });
      expect((await stored(ofOtherKind))?.status).toBe("running");
      expect((await runs.get(OTHER_DATABASE, ofOtherDatabase))?.status).toBe("running");
    });

    it("lists the newest first, by kind and in pages, of one database", async () => {
      const ids = [await begin(), await begin("ci_correlate"), await begin()];
      await begin("consolidation", OTHER_DATABASE);
      const listed = async (more: object) =>
        (await runs.list(1, { limit: 200, offset: 0, ...more })).map(({ id }) => id);
      expect(await listed({})).toEqual(ids.toReversed());
      expect(await listed({ kind: "consolidation" })).toEqual([ids[2], ids[0]]);
      expect(await listed({ limit: 1, offset: 1 })).toEqual([ids[1]]);
      expect(await runs.get(OTHER_DATABASE, ids[0] ?? "")).toBeUndefined();
      expect(await runs.get(1, "no\0id")).toBeUndefined();
    });

    it("knows of a run what its job knows", async () => {
      const progress = { phase: "model", events: 3, proposals: 0, written: 0 };
      const waiting = await queuedWith("queued");
      const running = await queuedWith("leased", { progress: JSON.stringify(progress) });
      const cancelled = await queuedWith("cancelled");
      const failed = await queuedWith("failed", { error: "the lease of x ended" });
      expect(await stored(waiting.id)).toMatchObject({
        status: "queued",
        jobId: waiting.jobId,
        mode: "deep",
        focus: "deploys",
        requestedBy: "ann",
        startedAtMs: undefined,
      });
      expect(await stored(running.id)).toMatchObject({ status: "running", progress });
      expect(await stored(cancelled.id)).toMatchObject({ status: "cancelled", error: { code: "cancelled" } });
      const error = { code: "job_failed", message: "the lease of x ended" };
      expect(await stored(failed.id)).toMatchObject({ status: "failed", error });
      await records.write({ sql: "DELETE FROM jobs WHERE id = ?", values: [waiting.jobId] });
      expect(await stored(waiting.id)).toMatchObject({ status: "failed", error: { code: "interrupted" } });
    });

    it("writes down how a run ended whose job was given up", async () => {
      const cancelled = await queuedWith("cancelled");
      const failed = await queuedWith("failed", { error: "the lease of x ended" });
      const waiting = await queuedWith("queued");
      await records.write(runs.settleStatement(1, "dreaming"));
      await records.write({ sql: "DELETE FROM jobs" });
      expect(await stored(cancelled.id)).toMatchObject({ status: "cancelled", error: { code: "cancelled" } });
      const error = { code: "job_failed", message: "the lease of x ended" };
      expect(await stored(failed.id)).toMatchObject({ status: "failed", error });
      expect(await stored(waiting.id)).toMatchObject({ status: "failed", error: { code: "interrupted" } });
    });

    it("begins a run of a job again, unless it is done", async () => {
      const { id } = await queuedWith("leased");
      const start = async (model: string) =>
        (await records.transact([runs.startStatement(id, { engine: "openai", model, workerId: undefined })])).done;
      expect(await start("one")).toBe(true);
      const startedAtMs = (await stored(id))?.startedAtMs;
      opened.clock.advance(1_000);
      expect(await start("two")).toBe(true);
      expect(await stored(id)).toMatchObject({ status: "running", engine: "openai", model: "two", startedAtMs });
      await runs.finish(id, DONE);
      expect(await start("three")).toBe(false);
    });

    it("keeps how a run ended, whatever becomes of its job", async () => {
      const { id } = await queuedWith("leased");
      await runs.finish(id, DONE);
      await records.write({ sql: "UPDATE jobs SET status = 'failed', error = 'x'" });
      expect(await stored(id)).toMatchObject({ status: "done", error: undefined });
    });

    it("advances a watermark once from where it was read", async () => {
      const first = await runs.watermark(1, "dreaming");
      expect(first.position).toBeUndefined();
      const advance = async (from: typeof first, position: unknown) =>
        (await records.transact([runs.advanceStatement(1, "dreaming", from, position)])).done;
      expect(await advance(first, { snapshot: 3 })).toBe(true);
      expect(await advance(first, { snapshot: 4 })).toBe(false);
      const second = await runs.watermark(1, "dreaming");
      expect(second.position).toEqual({ snapshot: 3 });
      expect(await advance(second, { snapshot: 5 })).toBe(true);
      expect(await advance(second, { snapshot: 6 })).toBe(false);
      expect((await runs.watermark(1, "dreaming")).position).toEqual({ snapshot: 5 });
      expect((await runs.watermark(1, "ci_correlate")).position).toBeUndefined();
      expect((await runs.watermark(OTHER_DATABASE, "dreaming")).position).toBeUndefined();
    });

    it("keeps what a run changed, with the versions before and after", async () => {
      const id = await begin();
      const changes = Array.from({ length: 75 }, (_, i): RunChange => ({
        kind: i % 2 === 0 ? "node" : "edge",
        id: `r${String(i).padStart(3, "0")}`,
        proposal: i,
        versionBefore: i === 0 ? undefined : i,
        versionAfter: i + 1,
      }));
      await records.transact(runs.changeStatements(id, changes));
      expect(await runs.changes(id)).toEqual(changes);
      expect(await runs.changes("another")).toEqual([]);
      const takeBack = async () => (await records.transact(runs.revertStatements(id, changes.slice(0, 70)))).done;
      expect([await takeBack(), await takeBack()]).toEqual([true, false]);
      expect(await runs.changes(id)).toEqual(changes.slice(70));
      expect((await stored(id))?.revertedAtMs).toBe(opened.clock.nowMs());
    });
  });
}
