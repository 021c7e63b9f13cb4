import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { OpenedCatalog } from "../catalog/contract.test-kit.ts";
import { ANONYMOUS } from "../auth/caller.ts";
import { fabricOn, LEASE_MS } from "./contract.test-kit.ts";
import type { Fabric } from "./fabric.ts";
import type { LogLine } from "./handler.ts";
import { JobLogs } from "./job-logs.ts";
import { holdOf, type Hold } from "./job.ts";

/** What the logs of jobs must do on every catalog. */
export function jobLogsContract(name: string, open: () => Promise<OpenedCatalog>): void {
  describe(`the logs of jobs on ${name}`, () => {
    let opened: OpenedCatalog;
    let fabric: Fabric;
    let logs: JobLogs;
    beforeEach(async () => {
      opened = await open();
      fabric = fabricOn(opened);
      logs = new JobLogs(opened.catalog.records);
    });
    afterEach(async () => {
      fabric.close();
      await opened.close();
    });

    const claimOne = async (): Promise<Hold> => {
      const claimed = await fabric.claim({
        kinds: new Set(["test.task"]),
        holder: "w1",
        workerId: "w1",
        jobsOf: "everybody",
        max: 1,
        labels: {},
        waitMs: 0,
      });
      const [job] = claimed;
      if (job === undefined) throw new Error("there was no job to claim");
      return holdOf(job);
    };
    const hold = async (): Promise<Hold> => {
      await fabric.enqueue({ kind: "test.task", payload: { n: 1 } }, ANONYMOUS);
      return await claimOne();
    };

    it("keeps lines in their order, with the time, and reads them page by page", async () => {
      const held = await hold();
      const atMs = opened.clock.nowMs();
      await logs.append(held, [
        { level: "info", message: 'it\'s "x" ? $1 ünï 😀' },
        { level: "warn", message: "with \0" },
      ]);
      await logs.append(held, []);
      opened.clock.advance(5);
      await logs.append(held, [{ level: "error", message: "x".repeat(3_000) }]);
      const all = await logs.read(held.jobId, { afterSeq: 0, limit: 10 });
      expect(all).toEqual([
        { seq: 1, atMs, level: "info", message: 'it\'s "x" ? $1 ünï 😀' },
        { seq: 2, atMs, level: "warn", message: "with \u{fffd}" },
        { seq: 3, atMs: atMs + 5, level: "error", message: "x".repeat(2_000) },
      ]);
      expect(await logs.read(held.jobId, { afterSeq: 0, limit: 2 })).toEqual(all.slice(0, 2));
      expect(await logs.read(held.jobId, { afterSeq: 2, limit: 2 })).toEqual(all.slice(2));
      expect(await logs.read("nothing", { afterSeq: 0, limit: 2 })).toEqual([]);
    });

    it("counts on over the attempts of a job, and apart for each job", async () => {
      const first = await hold();
      await logs.append(first, lines(2));
      await fabric.fail(first, { error: "again", retryable: true, retryAfterMs: 0 });
      const again = await claimOne();
      await logs.append(again, lines(1, 3));
      const other = await hold();
      await logs.append(other, lines(1));
      const seqs = async (id: string) => (await logs.read(id, { afterSeq: 0, limit: 10 })).map(({ seq }) => seq);
      expect(await seqs(first.jobId)).toEqual([1, 2, 3]);
      expect(await seqs(other.jobId)).toEqual([1]);
    });

    it("takes lines only of the holder, as long as its lease lasts", async () => {
      const held = await hold();
      const forged = [
        { ...held, holder: "w2" },
        { ...held, fence: held.fence + 1 },
        { ...held, jobId: "nothing" },
      ];
      for (const one of forged) {
        await expect(logs.append(one, lines(1))).rejects.toMatchObject({ code: "lease_lost", status: 409 });
      }
      opened.clock.advance(LEASE_MS);
      await expect(logs.append(held, lines(1))).rejects.toMatchObject({ code: "lease_lost" });
      expect(await logs.read(held.jobId, { afterSeq: 0, limit: 1 })).toEqual([]);
    });

    it("keeps the first lines and the newest of a job that says much", async () => {
      const held = await hold();
      for (let from = 1; from <= 1_150; from += 50) await logs.append(held, lines(50, from));
      const kept = await logs.read(held.jobId, { afterSeq: 0, limit: 2_000 });
      expect(kept.map(({ seq }) => seq)).toEqual([...range(1, 200), ...range(351, 1_150)]);
      expect(kept.every(({ seq, message }) => message === `line ${seq}`)).toBe(true);
      await expect(logs.append(held, lines(101))).rejects.toMatchObject({ code: "bad_request_body" });
    });

    it("loses none of those that come at once", async () => {
      const held = await hold();
      await Promise.all([1, 11, 21, 31, 41].map((from) => logs.append(held, lines(10, from))));
      const kept = await logs.read(held.jobId, { afterSeq: 0, limit: 100 });
      expect(kept.map(({ seq }) => seq)).toEqual(range(1, 50));
      expect(new Set(kept.map(({ message }) => message))).toEqual(new Set(lines(50).map(({ message }) => message)));
    });

    it("goes when the job is forgotten", async () => {
      const held = await hold();
      await logs.append(held, lines(3));
      await fabric.complete(held, null);
      opened.clock.advance(60_001);
      expect(await fabric.forgetFinished(60_000, 100)).toBe(1);
      expect(await logs.read(held.jobId, { afterSeq: 0, limit: 10 })).toEqual([]);
    });
  });
}

function lines(count: number, from = 1): LogLine[] {
  return Array.from({ length: count }, (_, i) => ({ level: "info", message: `line ${from + i}` }));
}

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}
