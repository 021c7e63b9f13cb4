import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { OpenedCatalog } from "../../../catalog/contract.test-kit.ts";
import { silentLog } from "../../../core/log.ts";
import { drawnRandom } from "../../../core/drawn-seed.test-kit.ts";
import { controlPlaneOn, LeasedBox, LEASE_MS, type ControlPlane } from "../scheduler/scheduler.test-kit.ts";
import type { NewSandboxEvent } from "../../contract/event.ts";
import { SandboxEvents } from "./log.ts";
import { appendEvents, line } from "./log.test-kit.ts";
import { EVENT_SIZE } from "./quota.ts";
import { createEventRetention } from "./retention.ts";

const NODE = "node-1";
const MIB = 1024 * 1024;
const QUOTA = 1 * MIB;

function lines(count: number, chars: number, from = 0): NewSandboxEvent[] {
  return Array.from({ length: count }, (_, i) => line(`${from + i} ${"x".repeat(chars)}`));
}

/** The quota of events, on every catalog. */
export function eventQuotaContract(name: string, open: () => Promise<OpenedCatalog>): void {
  describe(`the quota of events on ${name}`, () => {
    let opened: OpenedCatalog;
    let plane: ControlPlane;
    beforeEach(async () => {
      opened = await open();
      plane = controlPlaneOn(opened, { limits: { eventsQuotaBytes: QUOTA } });
      await plane.report(NODE);
    });
    afterEach(async () => {
      plane.fabric.close();
      await opened.close();
    });

    const running = async () => {
      const { id } = await plane.create();
      const hold = (await plane.claim(NODE)).at(0);
      if (hold === undefined) throw new Error("there was nothing to claim");
      const box = new LeasedBox(plane, hold);
      await box.desiredState();
      await box.say("creating");
      await box.say("running");
      return { id, box };
    };

    /** What the row says, after a comparison with what is there. */
    const count = async (id: string) => {
      const [row] = await plane.records.rows(
        "SELECT first_seq, last_seq, events_bytes, cut_bytes FROM sandboxes WHERE id = ?",
        [id],
      );
      const [kept] = await plane.records.rows(
        `SELECT count(*) AS n, min(seq) AS first, max(seq) AS last, coalesce(sum(${EVENT_SIZE}), 0) AS bytes ` +
          "FROM sandbox_events WHERE sandbox_id = ?",
        [id],
      );
      const [firstSeq, lastSeq, bytes, cutBytes] = [
        Number(row?.["first_seq"]),
        Number(row?.["last_seq"]),
        Number(row?.["events_bytes"]),
        Number(row?.["cut_bytes"]),
      ];
      expect({ n: Number(kept?.["n"]), bytes: Number(kept?.["bytes"]) }).toEqual({ n: lastSeq - firstSeq + 1, bytes });
      if (lastSeq >= firstSeq) expect([Number(kept?.["first"]), Number(kept?.["last"])]).toEqual([firstSeq, lastSeq]);
      expect(bytes).toBeLessThanOrEqual(QUOTA);
      return { firstSeq, lastSeq, bytes, cutBytes };
    };

    it("holds after every write, whatever comes, and the newest stay", async () => {
      const { id, box } = await running();
      const random = drawnRandom();
      let [written, cuts, firstSeq] = [0, 0, 1];
      for (let i = 0; i < 40; i++) {
        const events = lines(1 + Math.floor(random.next() * 150), Math.floor(random.next() ** 3 * 4_000), written);
        written += events.length;
        await box.record({ events });
        const now = await count(id);
        if (now.firstSeq > firstSeq) cuts++;
        firstSeq = now.firstSeq;
      }
      const { bytes, cutBytes, lastSeq } = await count(id);
      expect(cutBytes).toBeGreaterThan(QUOTA);
      // Not with every write, and never much more than has to go.
      expect(cuts).toBeLessThan(40);
      expect(bytes).toBeGreaterThan(QUOTA * 0.5);
      expect((await plane.events(id)).at(-1)).toMatchObject({ seq: lastSeq, type: "log_line" });
      // Empty lines count, too: a log of them is no way around it.
      for (let i = 0; i < 6; i++) await box.record({ events: lines(1_000, 0) });
      expect((await count(id)).lastSeq).toBe(lastSeq + 6_000);
    });

    it("takes a batch that is larger than it is, and an event that is, with nothing left of them but the mark", async () => {
      const { id, box } = await running();
      await box.record({ events: lines(100, 16_000) });
      const { lastSeq, firstSeq } = await count(id);
      expect(lastSeq).toBe(102);
      expect(firstSeq).toBeGreaterThan(30);
      await appendEvents(plane.records, id, [line("y".repeat(2 * MIB))], QUOTA);
      expect(await count(id)).toMatchObject({ firstSeq: 104, lastSeq: 103, bytes: 0 });
      await box.record({ events: lines(1, 1) });
      expect(await count(id)).toMatchObject({ firstSeq: 104, lastSeq: 104 });
      // Another one with much less: what is left comes after it.
      await appendEvents(plane.records, id, [line("y".repeat(2 * MIB)), line("last")], QUOTA);
      expect(await count(id)).toMatchObject({ firstSeq: 106, lastSeq: 106 });
    });

    it("is one sandbox's: what another one writes takes nothing from it", async () => {
      const [quiet, loud] = [await running(), await running()];
      await quiet.box.record({ events: lines(20, 100) });
      for (let i = 0; i < 5; i++) await loud.box.record({ events: lines(1_000, 500) });
      expect(await count(quiet.id)).toMatchObject({ firstSeq: 1, lastSeq: 22 });
      expect((await count(loud.id)).lastSeq).toBe(5_002);
    });

    it("counts a batch that is sent twice, or refused, once and never", async () => {
      const { id, box } = await running();
      await box.record({ events: lines(10, 10) });
      const before = await count(id);
      await plane.sandboxes.record(box.hold, { number: 3, events: lines(10, 10) });
      expect(await count(id)).toEqual(before);
      opened.clock.advance(LEASE_MS + 1);
      await plane.fabric.sweep();
      await expect(box.record({ events: lines(10, 10) })).rejects.toMatchObject({ code: "lease_lost" });
      expect(await count(id)).toEqual(before);
    });

    it("holds while several processes write events of one sandbox", async () => {
      const { id, box } = await running();
      const other = controlPlaneOn(opened, { seed: 2, limits: { eventsQuotaBytes: QUOTA } });
      const talk = async () => {
        for (let i = 0; i < 20; i++) {
          await other.sandboxes.sessions.create(
            id,
            {},
            { subject: "ann", kind: "session", role: "write", databases: undefined },
          );
        }
      };
      const flood = async () => {
        for (let i = 0; i < 30; i++) await box.record({ events: lines(200, 300) });
      };
      const tidy = createEventRetention(plane.records, { mostEvents: 1_500, quotaBytes: QUOTA, maxAgeMs: 1e12 });
      const sweep = async () => {
        for (let i = 0; i < 10; i++) await tidy({ signal: new AbortController().signal });
      };
      await Promise.all([flood(), talk(), sweep()]);
      expect((await count(id)).lastSeq).toBe(2 + 6_000 + 20);
      other.fabric.close();
    });

    it("tells readers who were not that far how much they missed, and no others", async () => {
      const { id, box } = await running();
      for (let i = 0; i < 6; i++) await box.record({ events: lines(200, 1_000, i * 200) });
      const { firstSeq, lastSeq, cutBytes } = await count(id);
      const { records } = plane;
      const events = new SandboxEvents({
        records,
        signals: plane.sandboxes.signals,
        clock: opened.clock,
        log: silentLog,
      });
      const first = async (from: Parameters<typeof events.follow>[1]) => {
        const follower = await events.follow(id, from);
        const { value } = await follower.next();
        await follower.return();
        return value;
      };
      const mark = (missed: number) => ({ type: "lost", nextSeq: firstSeq, events: missed, cutBytes });
      expect(await first("start")).toEqual(mark(firstSeq - 1));
      expect(await first({ afterSeq: 3 })).toEqual(mark(firstSeq - 4));
      expect(await first({ afterSeq: firstSeq - 1 })).toMatchObject({ type: "event", event: { seq: firstSeq } });
      expect(await first({ afterSeq: lastSeq - 1 })).toMatchObject({ type: "event", event: { seq: lastSeq } });
      // All after the mark come, each once.
      const follower = await events.follow(id, { afterSeq: 5 });
      const seqs: number[] = [];
      while (seqs.at(-1) !== lastSeq) {
        const { value } = await follower.next();
        if (value?.type === "event") seqs.push(value.event.seq);
      }
      await follower.return();
      expect(seqs).toEqual(Array.from({ length: lastSeq - firstSeq + 1 }, (_, i) => firstSeq + i));
      events.close();
    });

    it("is kept by the duty for logs from before it, a step at a time", async () => {
      const { id } = await running();
      for (let i = 0; i < 6; i++) await appendEvents(plane.records, id, lines(1_000, 300), 1e9);
      // As an earlier version has written them.
      await plane.records.write({ sql: "UPDATE sandbox_events SET size_bytes = NULL", values: [] });
      await plane.records.write({
        sql: `UPDATE sandboxes SET events_bytes = (SELECT sum(${EVENT_SIZE}) FROM sandbox_events)`,
        values: [],
      });
      const duty = createEventRetention(plane.records, { mostEvents: 1e6, quotaBytes: QUOTA, maxAgeMs: 1e12 });
      await duty({ signal: new AbortController().signal });
      const { bytes, lastSeq } = await count(id);
      expect(lastSeq).toBe(6_002);
      expect(bytes).toBeGreaterThan(QUOTA * 0.9);
    });

    it.each([-5, 100 * MIB])(
      "is counted anew by the duty where a server of an earlier version left %s bytes",
      async (wrong) => {
        const { id } = await running();
        await appendEvents(plane.records, id, lines(10, 100), 1e9);
        const { bytes } = await count(id);
        await plane.records.write({ sql: "UPDATE sandboxes SET events_bytes = ?", values: [wrong] });
        // What is cut by a wrong count is gone: so it is looked at when there is nothing left to cut.
        const duty = createEventRetention(plane.records, { mostEvents: 1e6, quotaBytes: QUOTA, maxAgeMs: 1e12 });
        await duty({ signal: new AbortController().signal });
        await appendEvents(plane.records, id, lines(10, 100), 1e9);
        const after = await count(id);
        expect(after.bytes).toBeGreaterThan(0);
        expect(after.bytes).toBeLessThan(3 * bytes);
      },
    );

    it("frees the events of a deleted sandbox, soon after its end", async () => {
      const [{ id, box }, other] = [await running(), await running()];
      await box.record({ events: lines(5_000 / 5, 10) });
      await plane.act(id, "delete");
      await box.record({ events: lines(1_000, 10) });
      await box.record({ events: lines(1_000, 10), removed: true });
      await expect(box.record({ events: lines(1, 1) })).rejects.toMatchObject({ code: "sandbox_not_found" });
      const duty = createEventRetention(plane.records, { mostEvents: 1e6, quotaBytes: QUOTA, maxAgeMs: 1e12 });
      const tidy = () => duty({ signal: new AbortController().signal });
      const left = async (one: string) => (await plane.events(one)).length;
      await tidy();
      expect(await left(id)).toBe(3_003);
      opened.clock.advance(60_000);
      await tidy();
      expect([await left(id), await left(other.id)]).toEqual([0, 2]);
      expect(await plane.records.rows("SELECT * FROM ended_sandbox_logs")).toEqual([]);
      // One that no node has is gone at once.
      const waiting = await plane.create();
      await plane.act(waiting.id, "delete");
      expect(await left(waiting.id)).toBe(1);
      opened.clock.advance(60_000);
      await tidy();
      expect(await left(waiting.id)).toBe(0);
    });
  });
}
