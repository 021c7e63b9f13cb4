import { drawnSeed } from "../../../core/drawn-seed.test-kit.ts";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { OpenedCatalog } from "../../../catalog/contract.test-kit.ts";
import type { SandboxEventType } from "../../contract/event.ts";
import { controlPlaneOn, LeasedBox, LEASE_MS, ROOT, type ControlPlane } from "./scheduler.test-kit.ts";
import { cancelQueued } from "../cancel-queued.ts";
import { walk } from "./walk.test-kit.ts";

const NODE = "node-1";

function line(text: string): { type: SandboxEventType; atMs: number; data: { line: string } } {
  return { type: "log_line", atMs: 7, data: { line: text } };
}

/** What nodes report of sandboxes, and what becomes of those that they lose. */
export function sandboxReportsContract(name: string, open: () => Promise<OpenedCatalog>): void {
  describe(`reports about sandboxes on ${name}`, () => {
    let opened: OpenedCatalog;
    let plane: ControlPlane;
    beforeEach(async () => {
      opened = await open();
      plane = controlPlaneOn(opened);
    });
    afterEach(async () => {
      plane.fabric.close();
      await opened.close();
    });

    const leased = async (node = NODE): Promise<LeasedBox> => {
      const [hold] = await plane.claim(node, 1);
      if (hold === undefined) throw new Error("there was nothing to claim");
      const box = new LeasedBox(plane, hold);
      await box.desiredState();
      return box;
    };
    const begun = async (spec: Parameters<ControlPlane["create"]>[0] = {}) => {
      await plane.report(NODE);
      const { id } = await plane.create(spec);
      const box = await leased();
      await box.say("creating");
      return { id, box };
    };
    const running = async (spec: Parameters<ControlPlane["create"]>[0] = {}) => {
      const { id, box } = await begun(spec);
      await box.say("running");
      return { id, box };
    };
    const get = (id: string) => plane.sandboxes.get(id, ROOT);
    const sweep = async () => {
      opened.clock.advance(LEASE_MS + 1);
      await plane.fabric.sweep();
    };
    it("keep events in order, numbered without gaps, before the change of state that they come with", async () => {
      const { id, box } = await begun();
      const many = Array.from({ length: 1_000 }, (_, i) => line(`line ${i} \0 ünï 😀`));
      await box.record({ events: many, state: { to: "running" } });
      await box.record({ events: [line("last")], stats: { cpu_usage_percent: 1.5 } });
      const events = await plane.events(id);
      expect(events.map(({ seq }) => seq)).toEqual(Array.from({ length: 1_003 }, (_, i) => i + 1));
      expect(events.map(({ data }) => data["line"] ?? data["to"])).toEqual([
        "creating",
        ...many.map(({ data }) => data.line),
        "running",
        "last",
      ]);
      expect(events.every(({ tenant }) => tenant === "ann")).toBe(true);
      expect((await get(id)).stats).toEqual({ cpu_usage_percent: 1.5 });
      await expect(box.record({ events: [...many, line("too many")] })).rejects.toMatchObject({
        code: "bad_request_body",
      });
      await expect(box.record({ events: [line("x".repeat(70_000))] })).rejects.toMatchObject({
        code: "body_too_large",
      });
      expect(await plane.events(id)).toHaveLength(1_003);
    });

    it("are taken once, however often they are sent", async () => {
      const { id, box } = await begun();
      const batch = { number: 2, events: [line("a")], state: { to: "running" as const } };
      const first = await plane.sandboxes.record(box.hold, batch);
      expect(first).toMatchObject({ state: "running", version: 3, recordedBatch: 2 });
      expect(await plane.sandboxes.record(box.hold, batch)).toEqual(first);
      await Promise.all(
        Array.from({ length: 5 }, () => plane.sandboxes.record(box.hold, { number: 9, events: [line("b")] })),
      );
      expect((await plane.events(id)).map(({ type }) => type)).toEqual([
        "sandbox_state_changed",
        "log_line",
        "sandbox_state_changed",
        "log_line",
      ]);
      expect((await box.desiredState()).recordedBatch).toBe(9);
    });

    it("write no state that a node may not write, and none of what came with it", async () => {
      const { id, box } = await running();
      const batch = { events: [line("x")], state: { to: "paused" as const } };
      await expect(box.record(batch)).rejects.toMatchObject({ code: "sandbox_invalid_state" });
      expect(await plane.events(id)).toHaveLength(2);
      expect(await box.say("running")).toMatchObject({ state: "running", version: 3 });
      expect(await plane.events(id)).toHaveLength(2);
    });

    it("leave out a state that a client's wish has overtaken, and say what is", async () => {
      const { id, box } = await running();
      await plane.act(id, "pause");
      await box.say("paused");
      await plane.act(id, "resume");
      await plane.act(id, "stop");
      const order = await box.record({ events: [line("resumed")], state: { to: "running" } });
      expect(order).toMatchObject({ state: "stopping", wanted: "stopped" });
      expect((await plane.events(id)).at(-1)).toMatchObject({ type: "log_line" });
      expect(await box.say("stopped")).toMatchObject({ state: "stopped" });
    });

    it("say when the time is over, and why something failed", async () => {
      const { id, box } = await running({ timeoutSecs: 60 });
      expect((await get(id)).expiresAtMs).toBe(opened.clock.nowMs() + 60_000);
      expect(await box.say("stopping", "its time is over")).toMatchObject({ wanted: "stopped" });
      expect(await get(id)).toMatchObject({ reason: "its time is over" });
      await box.say("stopped");
      // Whoever looks later learns why it stopped.
      expect(await get(id)).toMatchObject({ state: "stopped", expiresAtMs: undefined, reason: "its time is over" });
      await plane.act(id, "start");
      await box.say("failed", "the disk is full \0");
      expect(await get(id)).toMatchObject({ state: "failed", reason: "the disk is full \u{fffd}" });
    });

    it("are refused once the lease has ended, also before somebody noticed", async () => {
      const { id, box } = await begun();
      opened.clock.advance(LEASE_MS + 1);
      await expect(box.say("running")).rejects.toMatchObject({ code: "lease_lost" });
      await expect(box.desiredState()).rejects.toMatchObject({ code: "lease_lost" });
      await plane.fabric.sweep();
      await expect(box.say("running")).rejects.toMatchObject({ code: "lease_lost" });
      const nobody = { ...box.hold, jobId: "019a0000-0000-7000-8000-000000000000" };
      await expect(plane.sandboxes.desiredState(nobody)).rejects.toMatchObject({ code: "lease_lost" });
      expect(await get(id)).toMatchObject({ state: "creating" });
    });

    describe("of a node that is lost", () => {
      it("an ephemeral sandbox has failed, and no node gets it", async () => {
        const { id, box } = await running();
        await plane.act(id, "pause");
        await sweep();
        expect(await plane.sandboxes.settle()).toBe(1);
        expect(await get(id)).toMatchObject({ state: "failed" });
        expect((await get(id)).reason).toMatch(/^its node was lost: the lease of node-1 ended$/);
        expect(await plane.sandboxes.settle()).toBe(0);
        expect(await plane.claim(NODE)).toEqual([]);
        await expect(box.say("paused")).rejects.toMatchObject({ code: "lease_lost" });
        expect(await plane.report(NODE, { keeps: [id] })).toMatchObject({ gone: [id] });
      });

      it("what it had claimed and nobody begun with goes on to any node", async () => {
        for (const persistence of ["ephemeral", "persistent"] as const) {
          await plane.report(NODE);
          const { id } = await plane.create({ persistence });
          const [unheard] = await plane.claim(NODE, 1);
          if (unheard === undefined) throw new Error("there was nothing to claim");
          await sweep();
          await plane.report(NODE);
          await plane.sandboxes.settle();
          await plane.sandboxes.place();
          expect(await get(id)).toMatchObject({ state: "pending", reason: undefined, nodeId: NODE });
          await expect(plane.sandboxes.desiredState(unheard)).rejects.toMatchObject({ code: "lease_lost" });
          const box = await leased();
          await box.say("creating");
          expect(await box.say("running")).toMatchObject({ sandboxId: id, state: "running" });
        }
      });

      it("one whose job an operator ended before it was begun with has failed", async () => {
        await plane.report(NODE);
        const { id, jobId = "" } = await plane.create();
        await plane.records.transact([cancelQueued(jobId)]);
        expect(await plane.sandboxes.settle()).toBe(1);
        expect(await get(id)).toMatchObject({ state: "failed", reason: "its node was lost" });
      });

      it("a persistent one waits for that node, however often it is lost, and starts there", async () => {
        const { id, box } = await running({ persistence: "persistent" });
        for (let round = 0; round < 8; round++) {
          await sweep();
          expect(await plane.sandboxes.settle()).toBe(1);
          expect(await get(id)).toMatchObject({ state: "pending", wanted: "running", nodeId: NODE });
          opened.clock.advance(3_600_000);
          await plane.report("node-2");
          expect(await plane.sandboxes.settle()).toBe(0);
          expect(await plane.sandboxes.place()).toBe(0);
          expect(await plane.claim("node-2")).toEqual([]);
          expect(await plane.report(NODE, { keeps: [id, "another"] })).toMatchObject({ gone: ["another"] });
          const again = await leased();
          expect(again.hold).toMatchObject({ jobId: box.hold.jobId, fence: box.hold.fence + round + 1 });
          expect(await again.desiredState()).toMatchObject({ state: "pending", recordedBatch: 0 });
          await again.say("creating");
          expect(await again.say("running")).toMatchObject({ state: "running", recordedBatch: 2 });
        }
      });

      it("a persistent one that was being stopped is stopped, and one that is stopped stays so", async () => {
        const { id } = await running({ persistence: "persistent" });
        await plane.act(id, "stop");
        await sweep();
        expect(await plane.sandboxes.settle()).toBe(1);
        expect(await get(id)).toMatchObject({ state: "stopped", wanted: "stopped" });
        expect(await plane.sandboxes.settle()).toBe(0);
        await plane.act(id, "start");
        expect(await plane.sandboxes.settle()).toBe(1);
        expect(await get(id)).toMatchObject({ state: "pending", wanted: "running" });
      });

      it("its next hold finds that settled which the last one left, whether somebody noticed or not", async () => {
        const { id } = await running({ persistence: "persistent" });
        await sweep();
        const again = await leased();
        expect(await again.desiredState()).toMatchObject({ state: "pending", wanted: "running" });
        expect((await plane.events(id)).at(-1)?.data).toMatchObject({ from: "running", to: "pending" });
        expect(await plane.sandboxes.settle()).toBe(0);
      });

      it("what only that node could have fails when the node was revoked", async () => {
        const { id } = await running({ persistence: "persistent" });
        await plane.records.write({
          sql: "UPDATE jobs SET status = 'failed', error = 'the only worker that may run it was revoked'",
        });
        expect(await plane.sandboxes.settle()).toBe(1);
        expect(await get(id)).toMatchObject({ state: "failed" });
      });

      it("is forgotten after a day, unless it has something", async () => {
        const nodes = async () => (await plane.records.rows("SELECT id FROM sandbox_nodes ORDER BY id")).length;
        const { id } = await running({ persistence: "persistent" });
        await plane.report("node-2");
        opened.clock.advance(86_400_001);
        await plane.sandboxes.forgetNodes();
        expect(await nodes()).toBe(1);
        await plane.fabric.sweep();
        await plane.act(id, "delete");
        await plane.sandboxes.forgetNodes();
        expect(await nodes()).toBe(0);
      });
    });

    it("lead where the model says, whatever is asked for and reported in whichever order", async () => {
      // A database in memory takes many more in the same time.
      const seeds = name === "sqlite" ? 40 : 2;
      const patient = controlPlaneOn(opened, { seed: 2, limits: { pendingTimeoutMs: 1e9 } });
      const first = drawnSeed();
      for (let seed = first; seed < first + seeds; seed++) {
        for (const persistence of ["ephemeral", "persistent"] as const) {
          await walk({ plane: patient, clock: opened.clock, persistence, seed, steps: 60 });
        }
      }
      patient.fabric.close();
      expect(await plane.sandboxes.list({ limit: 10 }, ROOT)).toEqual([]);
    });
  });
}
