import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { OpenedCatalog } from "../../../catalog/contract.test-kit.ts";
import { NOW, type RecordStore } from "../../../db/records.ts";
import type { Hold } from "../../../fabric/job.ts";
import { newState } from "../session.ts";
import { RemoteDreamStore, sweepRemoteStatement, type RemoteDream } from "./store.ts";

const ENGINE = { kind: "anthropic", model: "m", credential_id: null, host: null, extras: {} } as const;
const SETTINGS = {
  realms: ["default"],
  max_events: 10,
  max_tokens: 10_000,
  max_minutes: 1,
  max_writes: 5,
  schedule: null,
};

function dream(applied?: string): RemoteDream {
  const watermark = { position: undefined, text: undefined };
  const state = newState({ settings: SETTINGS, maxOutputTokens: 100, watermark, mode: "incremental" });
  return { dream: state, engine: ENGINE, applied };
}

/** What the store of dreams on workers must do on every driver of the catalog. */
export function remoteDreamsContract(driver: string, open: () => Promise<OpenedCatalog>): void {
  describe(`dreams on workers on ${driver}`, () => {
    let opened: OpenedCatalog;
    let records: RecordStore;
    let store: RemoteDreamStore;
    const hold: Hold = { jobId: "job", holder: "worker", fence: 3 };

    beforeEach(async () => {
      opened = await open();
      ({ records } = opened.catalog);
      store = new RemoteDreamStore(records);
    });
    afterEach(() => opened.close());

    it("begin once for a hold, and anew for a later one", async () => {
      expect(await store.load(hold)).toBeUndefined();
      expect(await records.transact([store.beginStatement(hold, dream("first"))])).toMatchObject({ done: true });
      expect(await records.transact([store.beginStatement(hold, dream("second"))])).toMatchObject({ done: false });
      opened.clock.advance(1_500);
      expect(await store.load(hold)).toMatchObject({ applied: "first", version: 1, ageMs: 1_500, engine: ENGINE });
      const later = { ...hold, fence: 4 };
      expect(await store.load(later)).toBeUndefined();
      expect(await records.transact([store.beginStatement(later, dream("later"))])).toMatchObject({ done: true });
      expect(await store.load(hold)).toBeUndefined();
      expect(await store.load(later)).toMatchObject({ applied: "later", version: 1, ageMs: 0 });
      // One that was late to begin does not take it back.
      expect(await records.transact([store.beginStatement(hold, dream())])).toMatchObject({ done: false });
    });

    it("change, and end, from the version that was read, and from no other", async () => {
      await records.transact([store.beginStatement(hold, dream())]);
      expect(await records.transact([store.saveStatement(hold, 1, dream("a"))])).toMatchObject({ done: true });
      expect(await records.transact([store.saveStatement(hold, 1, dream("b"))])).toMatchObject({ done: false });
      expect(await store.load(hold)).toMatchObject({ applied: "a", version: 2 });
      expect(await records.transact([store.endStatement(hold, 1)])).toMatchObject({ done: false });
      expect(await records.transact([store.endStatement({ ...hold, fence: 2 }, 2)])).toMatchObject({ done: false });
      expect(await records.transact([store.endStatement(hold, 2)])).toMatchObject({ done: true });
      expect(await store.load(hold)).toBeUndefined();
    });

    it("are swept when nobody has the job under that fence", async () => {
      const sql =
        "INSERT INTO jobs (id, kind, status, lane, priority, run_after_ms, payload, owner, subject, caller_kind, role, " +
        "attempt, max_attempts, backoff_ms, lease_ms, fence, cancel_requested, created_at_ms, updated_at_ms) " +
        "VALUES (?, 'dreaming', ?, 'l', 0, 0, '{}', 'engine', 'dreaming', 'internal', 'read', 1, 1, 1, 1, ?, 0, ?, ?)";
      const jobs = [
        ["held", "leased", 3],
        ["next", "leased", 4],
        ["given up", "queued", 3],
        ["done", "done", 3],
      ] as const;
      for (const [id, status, fence] of jobs) await records.write({ sql, values: [id, status, fence, NOW, NOW] });
      for (const jobId of ["held", "next", "given up", "done", "forgotten"]) {
        await records.transact([store.beginStatement({ ...hold, jobId }, dream())]);
      }
      await records.write(sweepRemoteStatement());
      const left = await records.rows("SELECT job_id FROM dreaming_remote ORDER BY job_id");
      expect(left.map((row) => row["job_id"])).toEqual(["held"]);
    });
  });
}
