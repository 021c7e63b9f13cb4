import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { OpenedCatalog } from "../../catalog/contract.test-kit.ts";
import { uuidV7Source } from "../../core/ids.ts";
import { seededRandom } from "../../core/random.ts";
import type { RecordStore } from "../../db/records.ts";
import { PipelineRuns, type PipelineKind } from "./runs.ts";
import { sweepDroppedRuns } from "./sweep.ts";

const KEPT = 1_000;
const MINUTE_MS = 60_000;
const { signal } = new AbortController();

/** How the ledger of pipelines stays bounded, on every driver of the catalog. */
export function sweepContract(driver: string, open: () => Promise<OpenedCatalog>): void {
  describe(`the sweep of runs on ${driver}`, () => {
    let opened: OpenedCatalog;
    let records: RecordStore;
    let runs: PipelineRuns;
    let databaseId: number;

    beforeEach(async () => {
      opened = await open();
      ({ records } = opened.catalog);
      runs = new PipelineRuns({ records, newId: uuidV7Source(opened.clock, seededRandom(1)) });
      databaseId = (await opened.catalog.createDatabase("d")).database.id;
    });
    afterEach(() => opened.close());

    const sweep = () => sweepDroppedRuns({ catalog: opened.catalog, records }, signal);
    const begin = (kind: PipelineKind = "ci_correlate"): Promise<string> => {
      opened.clock.advance(1_000);
      return runs.begin({ databaseId, kind, trigger: "poll" });
    };
    const list = async (kind: PipelineKind = "ci_correlate") =>
      await runs.list(databaseId, { kind, limit: 10_000, offset: 0 });

    /** Runs that have ended, each with a change. */
    async function ended(kind: PipelineKind, count: number): Promise<void> {
      const ids = Array.from({ length: count }, (_, i) => `${kind} ${String(i).padStart(5, "0")}`);
      const sql =
        "INSERT INTO dreaming_runs (id, database_id, kind, status, started_by, created_at_ms, started_at_ms, " +
        "finished_at_ms, events_scanned, memories_written, stats) VALUES (?, ?, ?, ?, 'poll', 0, 0, 0, 0, 1, '{}')";
      const change = { kind: "node", id: "a", proposal: 0, versionBefore: undefined, versionAfter: 1 } as const;
      await records.transact([
        ...ids.map((id, i) => ({ sql, values: [id, databaseId, kind, i % 2 === 0 ? "done" : "failed"] })),
        ...ids.flatMap((id) => runs.changeStatements(id, [change])),
      ]);
    }
    const changes = async (): Promise<number> => {
      const [row] = await records.rows("SELECT count(*) AS n FROM dreaming_changes");
      return Number(row?.["n"]);
    };

    it("keeps the newest runs of each kind, with their changes, and deletes the others in turns", async () => {
      await ended("ci_correlate", KEPT * 2 + 10);
      await ended("consolidation", KEPT + 1);
      await ended("dreaming", KEPT);
      const newest = (await list()).slice(0, KEPT);
      await sweep();
      expect(await list()).toHaveLength(KEPT + 10);
      await sweep();
      expect(await list()).toEqual(newest);
      expect([(await list("consolidation")).length, (await list("dreaming")).length]).toEqual([KEPT, KEPT]);
      expect(await changes()).toBe(3 * KEPT);
    });

    it("keeps what has not ended, however old", async () => {
      const id = runs.newRunId();
      await records.transact([
        runs.queuedStatement(id, { databaseId, kind: "ci_correlate", trigger: "manual" }, "job"),
      ]);
      await ended("ci_correlate", KEPT + 1);
      await sweep();
      expect((await list()).map((run) => run.id)).toContain(id);
      expect(await list()).toHaveLength(KEPT + 1);
    });

    it("ends a run that its process left long ago, where none of its kind begins", async () => {
      const left = await begin();
      opened.clock.advance(14 * MINUTE_MS);
      const recent = await begin("consolidation");
      await sweep();
      expect((await runs.get(databaseId, left))?.status).toBe("running");
      opened.clock.advance(2 * MINUTE_MS);
      await sweep();
      expect(await runs.get(databaseId, left)).toMatchObject({ status: "failed", error: { code: "interrupted" } });
      expect((await runs.get(databaseId, recent))?.status).toBe("running");
    });

    it("counts attempts that fail alike in one run, and no others", async () => {
      const fail = async (code: string, message: string): Promise<void> => {
        const id = await begin();
        await runs.fail(id, { databaseId, kind: "ci_correlate" }, { code, message });
      };
      for (let i = 0; i < 3; i++) await fail("internal", "no");
      const [once] = await list();
      expect(once).toMatchObject({ status: "failed", error: { code: "internal" }, stats: { attempts: 3 } });
      expect((once?.finishedAtMs ?? 0) - (once?.startedAtMs ?? 0)).toBe(2_000);
      await fail("internal", "another");
      await fail("conflict", "another");
      const done = await begin();
      await runs.finish(done, { status: "done", eventsScanned: 0, memoriesWritten: 0, stats: {} });
      await fail("conflict", "another");
      expect((await list()).map(({ status, stats }) => [status, stats])).toEqual([
        ["failed", {}],
        ["done", {}],
        ["failed", {}],
        ["failed", {}],
        ["failed", { attempts: 3 }],
      ]);
    });

    it("a run that has ended stays as it is, whatever is said of it later", async () => {
      const error = { code: "internal", message: "no" };
      await runs.fail(await begin(), { databaseId, kind: "ci_correlate" }, error);
      const done = await begin();
      await runs.finish(done, { status: "done", eventsScanned: 0, memoriesWritten: 0, stats: {} });
      await runs.fail(done, { databaseId, kind: "ci_correlate" }, error);
      expect((await list()).map(({ status, stats }) => [status, stats])).toEqual([
        ["done", {}],
        ["failed", {}],
      ]);
    });
  });
}
