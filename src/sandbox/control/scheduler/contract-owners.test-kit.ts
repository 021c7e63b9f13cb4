import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { OpenedCatalog } from "../../../catalog/contract.test-kit.ts";
import type { JobOwner } from "../../../fabric/job.ts";
import { volumeKey } from "../../contract/volume-key.ts";
import type { NodeCap } from "../room.ts";
import { ANN, BOB, controlPlaneOn, LeasedBox, originOf, ROOMY, ROOT, type ControlPlane } from "./scheduler.test-kit.ts";

const NODE = "node-1";

/** Whose sandboxes, their jobs and their volumes are, and what admins say of nodes, on every catalog. */
export function ownersContract(name: string, open: () => Promise<OpenedCatalog>): void {
  describe(`owners of sandboxes on ${name}`, () => {
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

    const cap = (most: NodeCap, nodeId = NODE) =>
      plane.sandboxes.capNode(nodeId, { cap: most, origin: originOf(ROOT) });
    const write = (sql: string) => plane.records.write({ sql, values: [] });

    it("tells owners apart that are called alike", async () => {
      const write = { role: "write", databases: undefined } as const;
      const callers: JobOwner[] = [
        { ...write, subject: "anonymous", kind: "anonymous" },
        { ...write, subject: "anonymous", kind: "session" },
        { ...write, subject: "local", kind: "session" },
        { ...write, subject: "engine", kind: "idp" },
        { ...write, subject: "engine", kind: "internal" },
      ];
      const made = await Promise.all(callers.map((caller) => plane.create({ name: "box" }, caller)));
      for (const [i, caller] of callers.entries()) {
        expect((await plane.sandboxes.list({ limit: 10 }, caller)).map(({ id }) => id)).toEqual([made[i]?.id]);
      }
      expect(made.map(({ tenant }) => tenant)).toEqual(["local", "anonymous", "user:local", "user:engine", "engine"]);
    });

    it("has a job of its owner's, with no more rights than those", async () => {
      await plane.report(NODE);
      const { jobId = "" } = await plane.create({}, BOB);
      const sql = "SELECT owner, subject, role, databases FROM jobs WHERE id = ?";
      const [row] = await plane.records.rows(sql, [jobId]);
      expect(row).toEqual({ owner: "bob", subject: "bob", role: "write", databases: '["logs"]' });
    });

    describe("nodes", () => {
      it("have no more than an admin lets them have, whatever they report", async () => {
        await plane.report(NODE);
        expect(await cap({ sandboxes: 1, memoryMb: 1_000_000 })).toMatchObject({
          id: NODE,
          capacity: ROOMY,
          cap: { sandboxes: 1, memoryMb: 1_000_000 },
          sandboxes: 0,
          isSilent: false,
        });
        await plane.report(NODE, { capacity: { ...ROOMY, sandboxes: 1_000_000 } });
        expect((await plane.create()).nodeId).toBe(NODE);
        const waiting = await plane.create();
        expect(waiting.nodeId).toBeUndefined();
        await cap({ memoryMb: 2_048 });
        expect(await plane.sandboxes.place()).toBe(1);
        expect((await plane.create()).nodeId).toBeUndefined();
        await cap({});
        expect(await plane.sandboxes.nodes()).toMatchObject([{ id: NODE, cap: {}, sandboxes: 2 }]);
        expect(await plane.sandboxes.place()).toBe(1);
        const [entry] = await plane.audit.list({ limit: 1, action: "sandbox_node.cap" });
        expect(entry).toMatchObject({ actor: "root", target: NODE });
      });

      it("are refused a start that their cap leaves no room for", async () => {
        await plane.report(NODE);
        const { id } = await plane.create({ persistence: "persistent" });
        const [hold] = await plane.claim(NODE);
        if (hold === undefined) throw new Error("the node got no job");
        const box = new LeasedBox(plane, hold);
        await box.desiredState();
        for (const state of ["creating", "running"] as const) await box.say(state);
        await plane.act(id, "stop");
        await box.say("stopped");
        await cap({ memoryMb: 512 });
        await expect(plane.act(id, "start")).rejects.toMatchObject({ code: "unavailable" });
        await cap({ memoryMb: 1_024 });
        await plane.act(id, "start");
      });

      it("keep their cap while they are silent, until their worker is revoked", async () => {
        await plane.report(NODE);
        await plane.report("node-2");
        await cap({ sandboxes: 0 });
        const forget = async () => {
          opened.clock.advance(90_000_000);
          await plane.sandboxes.forgetNodes();
          return (await plane.sandboxes.nodes()).map(({ id }) => id);
        };
        expect(await forget()).toEqual([NODE]);
        await plane.records.write({
          sql:
            "INSERT INTO workers (id, name, token_hash, preview, labels, drain, created_by, created_at_ms, revoked_at_ms) " +
            "VALUES (?, 'n', 'h', 'p', '{}', 0, 'root', 1, 1)",
          values: [NODE],
        });
        expect(await forget()).toEqual([]);
      });

      it("that nobody knows have no cap", async () => {
        for (const id of ["node-9", "x\0"]) await expect(cap({}, id)).rejects.toMatchObject({ code: "not_found" });
      });
    });

    describe("volumes", () => {
      const data = { name: "data", mountPath: "/data", readOnly: false, sizeMb: 100 };
      /** How its node calls the volume of a new sandbox. */
      const keyOf = async (volume: typeof data, owner: typeof ANN): Promise<string | undefined> => {
        const { jobId } = await plane.create({ volumes: [volume] }, owner);
        const hold = (await plane.claim(NODE)).find((one) => one.jobId === jobId);
        if (hold === undefined) throw new Error("the node got no job");
        return (await plane.sandboxes.desiredState(hold)).volumeKeys?.[volume.name];
      };
      it("of each tenant are its own, by keys that no name leads to", async () => {
        await plane.report(NODE);
        const [mine, again] = [await keyOf(data, ANN), await keyOf(data, ANN)];
        const theirs = await keyOf(data, BOB);
        expect(mine).toMatch(/^[0-9a-f]{32}$/);
        expect(again).toBe(mine);
        expect(theirs).not.toBe(mine);
        expect([mine, theirs]).not.toContain(volumeKey("ann", "data"));
      });

      it("keep their bytes when they are handed over, and are not found by who had them", async () => {
        await plane.report(NODE);
        const first = await keyOf(data, ANN);
        await write("UPDATE sandbox_volumes SET tenant = 'bob'");
        expect(await keyOf(data, BOB)).toBe(first);
        expect(await keyOf(data, ANN)).not.toBe(first);
      });

      it("of an earlier version keep theirs, which nobody gets by the name", async () => {
        await plane.report(NODE);
        await keyOf(data, ANN);
        await write("UPDATE sandbox_volumes SET volume_key = NULL, keyed_by = 'ann'");
        expect(await keyOf(data, ANN)).toBe(volumeKey("ann", "data"));
        await write("UPDATE sandbox_volumes SET tenant = 'bob'");
        expect(await keyOf(data, BOB)).toBe(volumeKey("ann", "data"));
        expect(await keyOf(data, ANN)).not.toBe(volumeKey("ann", "data"));
      });
    });
  });
}
