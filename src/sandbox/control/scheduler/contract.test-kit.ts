import { isDeepStrictEqual } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { OpenedCatalog } from "../../../catalog/contract.test-kit.ts";
import { EngineError } from "../../../core/errors.ts";
import { SANDBOX_STATES } from "../../contract/states.ts";
import { ANN, BOB, controlPlaneOn, LeasedBox, LEASE_MS, ROOMY, ROOT, type ControlPlane } from "./scheduler.test-kit.ts";

const NODE = "node-1";
const ACTIONS = ["start", "stop", "pause", "resume"] as const;

/** What the control plane of sandboxes must do on every catalog. */
export function sandboxesContract(name: string, open: () => Promise<OpenedCatalog>): void {
  describe(`sandboxes on ${name}`, () => {
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
      return new LeasedBox(plane, hold);
    };
    /** A sandbox that runs on a node, and the node's side of it. */
    const running = async (spec: Parameters<ControlPlane["create"]>[0] = {}) => {
      await plane.report(NODE);
      const { id } = await plane.create(spec);
      const box = await leased();
      await box.desiredState();
      await box.say("creating");
      await box.say("running");
      return { id, box };
    };
    const stateOf = async (id: string) => (await plane.sandboxes.get(id, ROOT)).state;
    const statesTold = async (id: string) =>
      (await plane.events(id)).filter(({ type }) => type === "sandbox_state_changed").map(({ data }) => data);
    /** The lease of whatever nodes hold ends, and is noticed. */
    const loseNodes = async () => {
      opened.clock.advance(LEASE_MS + 1);
      await plane.fabric.sweep();
      await plane.sandboxes.settle();
    };

    describe("create", () => {
      it("puts a sandbox on a node at once, with a job for that node alone", async () => {
        await plane.report(NODE);
        const made = await plane.create({ name: "box", labels: { team: "a" }, envVars: { KEY: "value" } });
        expect(made).toMatchObject({
          tenant: "ann",
          owner: ANN,
          state: "pending",
          wanted: "running",
          version: 1,
          nodeId: NODE,
          reason: undefined,
        });
        expect(made.spec).toMatchObject({ name: "box", labels: { team: "a" }, envVars: { KEY: "value" } });
        expect(await plane.sandboxes.get(made.id, ANN)).toEqual(made);
        expect(await plane.claim("node-2")).toEqual([]);
        const order = await (await leased()).desiredState();
        expect(order).toMatchObject({ sandboxId: made.id, tenant: "ann", state: "pending", wanted: "running" });
        expect(order.spec).toEqual(made.spec);
        const [entry] = await plane.audit.list({ limit: 1 });
        expect(entry).toMatchObject({ actor: "ann", action: "sandbox.create", target: made.id, outcome: "ok" });
        expect(JSON.stringify(entry)).not.toContain("value");
      });

      it("keeps it waiting where no node has room, and places the oldest when one has", async () => {
        const first = await plane.create();
        const second = await plane.create();
        expect(first).toMatchObject({ state: "pending", nodeId: undefined, jobId: undefined });
        expect(await plane.sandboxes.place()).toBe(0);
        await plane.report(NODE, { capacity: { ...ROOMY, sandboxes: 1 } });
        expect(await plane.sandboxes.place()).toBe(1);
        expect((await (await leased()).desiredState()).sandboxId).toBe(first.id);
        expect((await plane.sandboxes.get(second.id, ANN)).nodeId).toBeUndefined();
      });

      it("refuses a second one of a name for the same tenant, while the first is there", async () => {
        await plane.report(NODE);
        const { id } = await plane.create({ name: "box" });
        await expect(plane.create({ name: "box" })).rejects.toMatchObject({ code: "sandbox_already_exists" });
        await plane.create({ name: "box" }, BOB);
        await plane.act(id, "delete");
        await plane.create({ name: "box" });
        await Promise.all([plane.create(), plane.create()]);
      });

      it("gives a tenant no more than its share", async () => {
        const few = controlPlaneOn(opened, {
          seed: 2,
          limits: { maxPerTenant: 2, createBurst: 4, createsPerMinute: 60 },
        });
        const { id } = await few.create();
        await few.create();
        await expect(few.create()).rejects.toMatchObject({ code: "rate_limited" });
        await few.create({}, BOB);
        await few.act(id, "delete");
        await few.create();
        await expect(few.create()).rejects.toThrow(/more than 60 sandboxes a minute: retry in 1 s/);
        opened.clock.advance(1_000);
        await expect(few.create()).rejects.toThrow(/at most 2 sandboxes/);
        few.fabric.close();
      });

      it("refuses an image that no node has", async () => {
        await plane.create({ image: "debian" });
        await plane.report(NODE, { images: ["host", "debian"] });
        await plane.report("node-2");
        expect((await plane.create({ image: "debian" })).nodeId).toBe(NODE);
        await expect(plane.create({ image: "arch" })).rejects.toMatchObject({
          code: "config_validation_error",
          message: "image: no node has it; there are debian, host",
        });
      });
    });

    describe("placement", () => {
      it("never gives a node more than it has, however many ask at once in however many processes", async () => {
        await plane.report(NODE, { capacity: { ...ROOMY, memoryMb: 5 * 1_024 } });
        await plane.report("node-2", { capacity: { ...ROOMY, cpuMillis: 3_000 } });
        const others = [controlPlaneOn(opened, { seed: 3 }), controlPlaneOn(opened, { seed: 4 })];
        const planes = [plane, ...others];
        const made = await Promise.all(Array.from({ length: 12 }, (_, i) => (planes[i % 3] ?? plane).create()));
        await Promise.all(planes.map(({ sandboxes }) => sandboxes.place()));
        const placed = await Promise.all(made.map(async ({ id }) => (await plane.sandboxes.get(id, ANN)).nodeId));
        expect(placed.filter((node) => node === NODE)).toHaveLength(5);
        expect(placed.filter((node) => node === "node-2")).toHaveLength(3);
        expect(placed.filter((node) => node === undefined)).toHaveLength(4);
        for (const { fabric } of others) fabric.close();
      });

      it("spreads, and leaves out nodes that drain or are silent", async () => {
        await plane.report("big", { capacity: { ...ROOMY, memoryMb: 4 * 1_024 } });
        await plane.report("small", { capacity: { ...ROOMY, memoryMb: 2 * 1_024 } });
        const nodes = [await plane.create(), await plane.create(), await plane.create()].map(({ nodeId }) => nodeId);
        expect(nodes).toEqual(["big", "big", "big"].map((node, i) => (i === 2 ? "small" : node)));
        opened.clock.advance(20_000);
        expect((await plane.create()).nodeId).toBeUndefined();
        expect(await plane.sandboxes.hasLiveNode()).toBe(false);
        await plane.report("small");
        expect(await plane.sandboxes.hasLiveNode()).toBe(true);
        await plane.records.write({ sql: "UPDATE sandbox_nodes SET drain = 1 WHERE id = 'small'" });
        expect(await plane.sandboxes.place()).toBe(0);
      });

      it("obeys labels that want a node", async () => {
        await plane.report("a", { labels: { zone: "a", disk: "fast" } });
        await plane.report("b", { labels: { zone: "b" } });
        const nodeOf = async (labels: Record<string, string>) => (await plane.create({ labels })).nodeId;
        expect(await nodeOf({ "node/zone": "b", zone: "a" })).toBe("b");
        expect(await nodeOf({ "node/zone": "a", "node/disk": "fast" })).toBe("a");
        expect(await nodeOf({ "node/zone": "b", "node/disk": "fast" })).toBeUndefined();
      });

      it("takes memory of what is paused and disk of what is kept, and asks for room at a start", async () => {
        const capacity = { ...ROOMY, cpuMillis: 1_000, memoryMb: 1_024, diskMb: 2 * 4_096 };
        const { id, box } = await running({ persistence: "persistent" });
        await plane.report(NODE, { capacity });
        expect((await plane.create()).nodeId).toBeUndefined();
        await plane.act(id, "pause");
        await box.say("paused");
        expect(await plane.sandboxes.place()).toBe(0);
        await plane.act(id, "stop");
        await box.say("stopped");
        expect(await plane.sandboxes.place()).toBe(1);
        await expect(plane.act(id, "start")).rejects.toMatchObject({ code: "unavailable" });
        expect(await stateOf(id)).toBe("stopped");
        await plane.act((await (await leased()).desiredState()).sandboxId, "delete");
        await plane.report(NODE);
        expect((await plane.act(id, "start")).state).toBe("creating");
      });

      it("keeps a sandbox with its volumes, which count what they are made for", async () => {
        const volume = { name: "data", mountPath: "/data", readOnly: false, sizeMb: 1_000 };
        await plane.report("a", { capacity: { ...ROOMY, diskMb: 5_100 } });
        expect((await plane.create({ volumes: [volume] })).nodeId).toBe("a");
        await plane.report("b");
        expect((await plane.create({ volumes: [volume] })).nodeId).toBeUndefined();
        await plane.report("a", { capacity: { ...ROOMY, diskMb: 9_300 } });
        expect(await plane.sandboxes.place()).toBe(1);
        expect((await plane.create({ volumes: [volume] }, BOB)).nodeId).toBe("b");
        const other = { ...volume, name: "more" };
        expect((await plane.create({ volumes: [other] })).nodeId).toBe("b");
        await expect(plane.create({ volumes: [volume, other] })).rejects.toMatchObject({
          code: "config_validation_error",
        });
      });

      it("gives what a node did not begin with, before it fell silent, to another", async () => {
        await plane.report(NODE);
        const { id, jobId } = await plane.create();
        opened.clock.advance(20_000);
        await plane.report("node-2");
        expect(await plane.sandboxes.place()).toBe(1);
        const moved = await plane.sandboxes.get(id, ANN);
        expect(moved).toMatchObject({ nodeId: "node-2", state: "pending" });
        expect(moved.jobId).not.toBe(jobId);
        expect(await plane.claim(NODE)).toEqual([]);
        expect(await plane.claim("node-2")).toHaveLength(1);
      });

      it("fails what no node began with in time", async () => {
        const { id } = await plane.create();
        await plane.report(NODE, { images: [] });
        opened.clock.advance(59_000);
        expect(await plane.sandboxes.settle()).toBe(0);
        opened.clock.advance(1_000);
        expect(await plane.sandboxes.settle()).toBe(1);
        const reason = "no node had room for it within 60 s: no node takes sandboxes at the moment";
        expect(await plane.sandboxes.get(id, ANN)).toMatchObject({ state: "failed", reason });
        expect(await statesTold(id)).toEqual([{ from: "pending", to: "failed", reason }]);
        await plane.act(id, "delete");
        expect(await plane.records.rows("SELECT id FROM sandboxes")).toEqual([]);
      });
    });

    describe("find and list", () => {
      it("shows each tenant its own, and admins all", async () => {
        const { id } = await plane.create();
        const other = await plane.create({}, BOB);
        await expect(plane.sandboxes.get(id, BOB)).rejects.toMatchObject({ code: "sandbox_not_found" });
        await expect(plane.act(id, "delete", BOB)).rejects.toMatchObject({ code: "sandbox_not_found" });
        await expect(plane.sandboxes.get("x\0", ROOT)).rejects.toMatchObject({ code: "sandbox_not_found" });
        const seenBy = async (owner: typeof ANN) =>
          (await plane.sandboxes.list({ limit: 10 }, owner)).map(({ id: one }) => one);
        expect(await seenBy(ANN)).toEqual([id]);
        expect(await seenBy(BOB)).toEqual([other.id]);
        expect(await seenBy(ROOT)).toEqual([other.id, id]);
        expect((await plane.sandboxes.get(other.id, ROOT)).owner).toEqual({ ...BOB, owner: "bob" });
      });

      it("filters by state, provider and labels, a page at a time", async () => {
        await plane.report(NODE);
        const a = await plane.create({ labels: { team: "a", Env: 'te"st\\' } });
        const b = await plane.create({ labels: { team: "ab", env: "A" }, agentProvider: "codex" });
        const c = await plane.create({ labels: { xteam: "a" } });
        const ids = async (filter: Partial<Parameters<typeof plane.sandboxes.list>[0]>) =>
          (await plane.sandboxes.list({ limit: 10, ...filter }, ANN)).map(({ id }) => id);
        expect(await ids({ labels: [["team", "a"]] })).toEqual([a.id]);
        expect(await ids({ labels: [["Env", 'te"st\\']] })).toEqual([a.id]);
        expect(await ids({ labels: [["env", "a"]] })).toEqual([]);
        expect(
          await ids({
            labels: [
              ["team", "ab"],
              ["env", "A"],
            ],
          }),
        ).toEqual([b.id]);
        expect(await ids({ provider: "codex" })).toEqual([b.id]);
        expect(await ids({ state: "running" })).toEqual([]);
        expect(await ids({ limit: 2 })).toEqual([c.id, b.id]);
        expect(await ids({ limit: 2, before: b.id })).toEqual([a.id]);
      });
    });

    describe("actions", () => {
      it("say at once what is wanted, and move the state with an event and an entry in the audit log", async () => {
        const { id, box } = await running();
        expect(await plane.act(id, "pause")).toMatchObject({ state: "pausing", wanted: "paused", version: 4 });
        expect(await box.desiredState()).toMatchObject({ state: "pausing", wanted: "paused", version: 4 });
        await box.say("paused");
        expect(await plane.act(id, "resume")).toMatchObject({ state: "paused", wanted: "running", version: 6 });
        await box.say("running");
        await plane.act(id, "stop");
        await box.say("stopped");
        expect(await plane.act(id, "start")).toMatchObject({ state: "creating", wanted: "running" });
        expect((await statesTold(id)).map(({ from, to }) => `${String(from)} ${String(to)}`)).toEqual([
          "pending creating",
          "creating running",
          "running pausing",
          "pausing paused",
          "paused running",
          "running stopping",
          "stopping stopped",
          "stopped creating",
        ]);
        const actions = (await plane.audit.list({ limit: 10, target: id })).map(({ action }) => action);
        expect(actions).toEqual(["start", "stop", "resume", "pause", "create"].map((one) => `sandbox.${one}`));
      });

      it("are refused in every state that does not allow them, and change nothing", async () => {
        const { id } = await running();
        const setState = (state: string) =>
          plane.records.write({ sql: "UPDATE sandboxes SET state = ? WHERE id = ?", values: [state, id] });
        const states = SANDBOX_STATES.filter((one) => one !== "deleting");
        const taken: Record<string, string[]> = {};
        for (const [state, action] of states.flatMap((one) => ACTIONS.map((verb) => [one, verb] as const))) {
          await setState(state);
          const before = await plane.sandboxes.get(id, ANN);
          const outcome = await plane.act(id, action).catch((error: unknown) => error);
          const after = await plane.sandboxes.get(id, ANN);
          if (!(outcome instanceof EngineError)) taken[action] = [...(taken[action] ?? []), state];
          else if (!isDeepStrictEqual(before, after)) throw new Error(`a refused ${action} changed the sandbox`);
          else if (!outcome.message.includes(state) || outcome.code !== "sandbox_invalid_state") throw outcome;
        }
        expect(taken).toEqual({
          start: ["stopped"],
          stop: ["running", "paused"],
          pause: ["running"],
          resume: ["paused"],
        });
      });

      it("of many who ask at once let one through", async () => {
        const { id } = await running();
        const asked = await Promise.allSettled(Array.from({ length: 8 }, () => plane.act(id, "pause")));
        expect(asked.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
        expect((await statesTold(id)).filter(({ to }) => to === "pausing")).toHaveLength(1);
      });

      it("tell the node that has it, and those who wait for it", async () => {
        const { id, box } = await running();
        const told: unknown[] = [];
        const stop = plane.sandboxes.signals.onDesiredState((...signal) => told.push(signal));
        const asked = await plane.act(id, "stop");
        const waiting = plane.sandboxes.settled(asked, {
          action: "stop",
          asker: ANN,
          timeoutMs: 60_000,
          signal: new AbortController().signal,
        });
        await box.say("stopped");
        expect((await waiting).state).toBe("stopped");
        await expect.poll(() => told).toEqual([[id, NODE]]);
        stop();
      });
    });

    describe("delete", () => {
      it("hides a sandbox at once, and keeps its record until the node has put everything away", async () => {
        const { id, box } = await running();
        expect(await plane.act(id, "delete")).toMatchObject({ state: "deleting", wanted: "deleted" });
        await expect(plane.sandboxes.get(id, ROOT)).rejects.toMatchObject({ code: "sandbox_not_found" });
        await expect(plane.act(id, "delete")).rejects.toMatchObject({ code: "sandbox_not_found" });
        expect(await plane.sandboxes.list({ limit: 10 }, ROOT)).toEqual([]);
        expect(await box.desiredState()).toMatchObject({ state: "deleting", wanted: "deleted" });
        await box.say("running");
        expect((await box.desiredState()).state).toBe("deleting");
        await box.record({ removed: true });
        await expect(box.desiredState()).rejects.toMatchObject({ code: "sandbox_not_found" });
        expect(await plane.records.rows("SELECT id FROM sandboxes")).toEqual([]);
        expect((await plane.events(id)).at(-1)).toMatchObject({ data: { from: "running", to: "deleting" } });
      });

      it("removes at once what no node has: never placed, never claimed, or lost", async () => {
        const rows = () => plane.records.rows("SELECT id FROM sandboxes");
        await plane.act((await plane.create()).id, "delete");
        expect(await rows()).toEqual([]);
        await plane.report(NODE);
        await plane.act((await plane.create()).id, "delete");
        expect(await rows()).toEqual([]);
        expect(await plane.claim(NODE)).toEqual([]);
        const { id } = await running({ persistence: "persistent" });
        await loseNodes();
        await plane.act(id, "delete");
        expect(await rows()).toEqual([]);
        expect(await plane.claim(NODE)).toEqual([]);
        expect(await plane.report(NODE, { keeps: [id] })).toMatchObject({ gone: [id] });
      });

      it("ends well when the node is lost on the way", async () => {
        const { id } = await running({ persistence: "persistent" });
        await plane.act(id, "delete");
        await loseNodes();
        expect(await plane.records.rows("SELECT id FROM sandboxes")).toEqual([]);
        expect(await plane.claim(NODE)).toEqual([]);
      });

      it("does not let a node remove what nobody deleted", async () => {
        const { id, box } = await running();
        await expect(box.record({ removed: true })).rejects.toMatchObject({ code: "sandbox_invalid_state" });
        expect(await stateOf(id)).toBe("running");
      });
    });
  });
}
