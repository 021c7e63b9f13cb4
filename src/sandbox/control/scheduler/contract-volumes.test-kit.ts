import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { OpenedCatalog } from "../../../catalog/contract.test-kit.ts";
import type { SandboxSpec } from "../../contract/spec.ts";
import { knownVolumes, volumeStatements } from "../volumes/volumes.ts";
import { ANN, BOB, controlPlaneOn, LeasedBox, originOf, ROOMY, ROOT, type ControlPlane } from "./scheduler.test-kit.ts";
import { specOf } from "../../contract/spec.test-kit.ts";

const NODE = "node-1";
const DAY_MS = 86_400_000;
const PENDING_MS = 60_000;

type Named = string | [name: string, sizeMb: number];

function withVolumes(...names: readonly Named[]): Partial<SandboxSpec> {
  const volumes = names.map((one) => (typeof one === "string" ? ([one, 10] as const) : one));
  return { volumes: volumes.map(([name, sizeMb]) => ({ name, mountPath: `/v/${name}`, readOnly: false, sizeMb })) };
}

/** Volumes as their owners find, use up and delete them, on every catalog. */
export function volumesContract(name: string, open: () => Promise<OpenedCatalog>): void {
  describe(`volumes on ${name}`, () => {
    let opened: OpenedCatalog;
    let plane: ControlPlane;
    beforeEach(async () => {
      opened = await open();
      plane = controlPlaneOn(opened, {
        limits: { volumes: { perOwner: 4, mbPerOwner: 1_000 }, pendingTimeoutMs: PENDING_MS },
      });
      await plane.report(NODE);
    });
    afterEach(async () => {
      plane.fabric.close();
      await opened.close();
    });

    const list = async (asker = ANN, page: { limit: number; before?: string } = { limit: 100 }) =>
      await plane.sandboxes.volumes(page, asker);
    const newest = async () => (await list())[0];
    const namesOf = async (asker = ANN) => (await list(asker)).map((volume) => volume.name);
    const idOf = async (volume: string, asker = ANN): Promise<string> =>
      (await list(asker)).find((one) => one.name === volume)?.id ?? "none";
    const remove = async (id: string, asker = ANN) =>
      await plane.sandboxes.deleteVolume(id, { asker, origin: originOf(asker) });
    const attempt = async (id: string, asker: typeof ANN) =>
      await remove(id, asker).then(
        () => "deleted",
        (error: Error & { code?: string }) => `${error.code}: ${error.message.replace(id, "ID")}`,
      );
    /** Volumes that no sandbox names any more. */
    const left = async (owner: typeof ANN, ...names: readonly Named[]) =>
      await plane.act((await plane.create(withVolumes(...names), owner)).id, "delete", owner);
    const gone = async () => (await plane.report(NODE)).deletedVolumes;

    describe("are listed", () => {
      it("to their owner, and to admins, the newest first, page by page", async () => {
        await left(ANN, "a", "b");
        await left(BOB, "a");
        await left(ANN, ["c", 20]);
        expect(await namesOf()).toEqual(["c", "b", "a"]);
        expect(await namesOf(BOB)).toEqual(["a"]);
        expect((await list(ROOT)).map((volume) => `${volume.tenant} ${volume.name} ${volume.sizeMb}`)).toEqual([
          "ann c 20",
          "bob a 10",
          "ann b 10",
          "ann a 10",
        ]);
        const [first] = await list(ANN, { limit: 1 });
        const second = await list(ANN, { limit: 1, before: first?.id ?? "" });
        expect([first?.name, second[0]?.name]).toEqual(["c", "b"]);
      });

      it("with when they were used last: as long as one is up, now", async () => {
        opened.clock.advance(1_000);
        const beganMs = await nowMs();
        const { id } = await plane.create(withVolumes("a"));
        expect(await newest()).toMatchObject({ isInUse: true, expiresAtMs: undefined });
        const [hold] = await plane.claim(NODE);
        const box = new LeasedBox(plane, hold ?? { jobId: "", holder: "", fence: 0 });
        await box.desiredState();
        await box.say("creating");
        await box.say("running");
        opened.clock.advance(10 * DAY_MS);
        expect((await newest())?.usedAtMs).toBeGreaterThanOrEqual(beganMs + 10 * DAY_MS);
        await plane.act(id, "stop").catch(() => undefined);
        await plane.fabric.sweep();
        await plane.sandboxes.settle();
        const { state } = await plane.sandboxes.get(id, ANN);
        expect(state).toBe("failed");
        const stoppedMs = (await newest())?.usedAtMs ?? 0;
        opened.clock.advance(5 * DAY_MS);
        expect(await newest()).toMatchObject({ isInUse: true, usedAtMs: stoppedMs, expiresAtMs: undefined });
        await plane.act(id, "delete");
        const deletedMs = (await newest())?.usedAtMs ?? 0;
        expect(deletedMs).toBeGreaterThanOrEqual(stoppedMs + 5 * DAY_MS);
        expect(await newest()).toMatchObject({ isInUse: false, expiresAtMs: deletedMs + 30 * DAY_MS });
      });
    });

    describe("are deleted", () => {
      it("by their owner and by admins; for others there is nothing", async () => {
        await left(ANN, "a", "b");
        const [a, b] = [await idOf("a"), await idOf("b")];
        const missing = "01890a5d-ac96-774b-bcce-b302099a8057";
        for (const id of [a, missing, "x\0", "..", "' OR 1=1 --"]) {
          expect(await attempt(id, BOB)).toBe("volume_not_found: there is no volume ID");
        }
        expect(await namesOf()).toEqual(["b", "a"]);
        expect([await attempt(a, ANN), await attempt(b, ROOT), await attempt(a, ANN)]).toEqual([
          "deleted",
          "deleted",
          "volume_not_found: there is no volume ID",
        ]);
        const entries = await plane.audit.list({ limit: 10, action: "volume.delete" });
        expect(entries.map(({ actor, target }) => [actor, target])).toEqual([
          ["root", b],
          ["ann", a],
        ]);
      });

      it("on their node, until that has said so", async () => {
        await left(ANN, "a", "b");
        const keys = await plane.records.rows("SELECT volume_key FROM sandbox_volumes ORDER BY name");
        const [first, second] = keys.map((row) => String(row["volume_key"]));
        await remove(await idOf("a"));
        expect([await gone(), await gone()]).toEqual([[first], [first]]);
        expect((await plane.report("node-2")).deletedVolumes).toEqual([]);
        await remove(await idOf("b"));
        const told = await plane.report(NODE, { removedVolumes: [first ?? ""] });
        expect(told.deletedVolumes).toEqual([second]);
        await plane.report(NODE, { removedVolumes: [second ?? ""] });
        expect(await gone()).toEqual([]);
      });

      it("not while a sandbox names them, and by their exact name", async () => {
        const { id } = await plane.create({ ...withVolumes("data_1"), name: "box" });
        await left(ANN, "dataX1", "Data_1", "data");
        // A spec that says so elsewhere names nothing.
        await plane.create({
          labels: { name: "data" },
          envVars: { A: '"name":"data","mountPath":', B: 'x","name":"data","mountPath":"/' },
          ports: [{ port: 80, name: "data" }],
        });
        await expect(remove(await idOf("data_1"))).rejects.toMatchObject({
          code: "conflict",
          message: `sandboxes name the volume data_1: ${id} (box); delete them first`,
        });
        for (const other of ["dataX1", "Data_1", "data"]) await remove(await idOf(other));
        expect(await namesOf()).toEqual(["data_1"]);
        await plane.act(id, "delete");
        await remove(await idOf("data_1"));
        expect(await namesOf()).toEqual([]);
      });

      it("also while what names them is being put away, and for sandboxes of an earlier version not at all", async () => {
        const { id } = await plane.create(withVolumes("a"));
        await plane.records.write({ sql: "UPDATE sandboxes SET volumes = NULL", values: [] });
        const [hold] = await plane.claim(NODE);
        const box = new LeasedBox(plane, hold ?? { jobId: "", holder: "", fence: 0 });
        await box.desiredState();
        await expect(remove(await idOf("a"))).rejects.toMatchObject({ code: "conflict" });
        await plane.act(id, "delete");
        await remove(await idOf("a"));
        await box.record({ removed: true });
        expect(await gone()).toHaveLength(1);
      });

      it("or made anew by a sandbox that comes at the same time, never both", async () => {
        for (let round = 0; round < 8; round++) {
          await left(ANN, "a");
          const [before] = await list();
          const [removed, made] = await Promise.allSettled([remove(before?.id ?? ""), plane.create(withVolumes("a"))]);
          expect(made.status).toBe("fulfilled");
          const [after, ...more] = await list();
          expect(more).toEqual([]);
          // Who came first keeps it; who came after has another one.
          expect(after?.isInUse).toBe(true);
          expect(after?.id === before?.id).toBe(removed.status === "rejected");
          for (const sandbox of await plane.sandboxes.list({ limit: 10 }, ANN)) await plane.act(sandbox.id, "delete");
          await remove(after?.id ?? "");
        }
      });
    });

    describe("expire", () => {
      it("when no sandbox has named them for long, and never before", async () => {
        await left(ANN, "old");
        opened.clock.advance(DAY_MS);
        await plane.report(NODE);
        await left(ANN, "young");
        const { id } = await plane.create(withVolumes("named"));
        opened.clock.advance(29 * DAY_MS);
        await plane.sandboxes.expireVolumes();
        expect(await namesOf()).toEqual(["named", "young"]);
        expect(await gone()).toHaveLength(1);
        opened.clock.advance(300 * DAY_MS);
        await plane.sandboxes.expireVolumes();
        expect(await namesOf()).toEqual(["named"]);
        await plane.act(id, "delete");
        await plane.sandboxes.expireVolumes();
        expect(await namesOf()).toEqual(["named"]);
        opened.clock.advance(30 * DAY_MS);
        await plane.sandboxes.expireVolumes();
        expect(await namesOf()).toEqual([]);
      });

      it("never where the operator says so, and those of earlier versions from the upgrade on", async () => {
        const patient = controlPlaneOn(opened, { seed: 2, limits: { volumesKeptMs: undefined } });
        await left(ANN, "a");
        opened.clock.advance(1_000 * DAY_MS);
        await patient.sandboxes.expireVolumes();
        expect(await patient.sandboxes.volumes({ limit: 1 }, ANN)).toMatchObject([{ expiresAtMs: undefined }]);
        patient.fabric.close();
        await plane.records.write({
          sql: "UPDATE sandbox_volumes SET used_at_ms = NULL, volume_id = NULL",
          values: [],
        });
        expect(await list()).toEqual([]);
        await plane.sandboxes.expireVolumes();
        const [volume] = await list();
        expect(volume).toMatchObject({ name: "a", expiresAtMs: (volume?.usedAtMs ?? 0) + 30 * DAY_MS });
        await remove(volume?.id ?? "");
      });
    });

    describe("of one owner", () => {
      it("are so many at most, and so large together; others have their own", async () => {
        await left(ANN, "a", "b", "c", "d");
        const refused = { code: "rate_limited", details: { headers: { "Retry-After": "60" } } };
        await expect(plane.create(withVolumes("e"))).rejects.toMatchObject({
          ...refused,
          message: "an owner has at most 4 volumes, and there are 4: delete some",
        });
        await left(BOB, "e");
        // Those that are there may be used.
        await left(ANN, "d");
        await remove(await idOf("a"));
        await expect(plane.create(withVolumes(["e", 971]))).rejects.toMatchObject({
          ...refused,
          message:
            "the volumes of an owner have at most 1000 MiB together: there are 3 with 30 MiB, and the new ones need " +
            "971 MiB: delete some",
        });
        await left(ANN, ["e", 970]);
        expect(await namesOf()).toEqual(["e", "d", "c", "b"]);
        expect(await plane.records.rows("SELECT id FROM sandboxes")).toEqual([]);
      });

      it("have the size that is counted, whatever a later sandbox says", async () => {
        await left(ANN, ["a", 16]);
        await plane.create(withVolumes(["a", 100_000]));
        const [hold] = await plane.claim(NODE);
        const { spec } = await new LeasedBox(plane, hold ?? { jobId: "", holder: "", fence: 0 }).desiredState();
        expect(spec.volumes).toMatchObject([{ name: "a", sizeMb: 16 }]);
      });

      it("are not made anew past the quota by a sandbox whose volume is deleted meanwhile", async () => {
        await left(ANN, ["a", 16]);
        const id = await idOf("a");
        const { records } = plane;
        const known = await knownVolumes(records, "ann", withVolumes("a").volumes ?? []);
        await remove(id);
        const spec = specOf(withVolumes(["a", 100_000]));
        const volumeLimits = { perOwner: 4, mbPerOwner: 1_000 };
        const placed = { tenant: "ann", nodeId: NODE, spec, known };
        const statements = volumeStatements({ newId: () => "0".repeat(32), volumeLimits }, placed);
        const [first, ...more] = statements;
        if (first === undefined) throw new Error("there is nothing to do");
        expect((await records.transact([first, ...more])).done).toBe(false);
        expect(await namesOf()).toEqual([]);
      });

      it("are no more when many ask at once", async () => {
        const asked = Array.from({ length: 12 }, (_, i) => plane.create(withVolumes(`v${i}`)));
        const others = controlPlaneOn(opened, { seed: 2, limits: { volumes: { perOwner: 4, mbPerOwner: 1_000 } } });
        const more = Array.from({ length: 4 }, (_, i) =>
          others.sandboxes.create({
            spec: specOf(withVolumes(`w${i}`)),
            owner: ANN,
            origin: originOf(ANN),
          }),
        );
        await Promise.allSettled([...asked, ...more]);
        others.fabric.close();
        const volumes = await list();
        expect(volumes).toHaveLength(4);
        expect(volumes.every(({ isInUse }) => isInUse)).toBe(true);
      });

      it("are no more when sandboxes find their places later", async () => {
        await plane.report(NODE, { capacity: { ...ROOMY, cpuMillis: 0 } });
        const made = [];
        for (let i = 0; i < 6; i++) made.push(await plane.create(withVolumes(`v${i}`)));
        await plane.report(NODE);
        expect(await plane.sandboxes.place()).toBe(4);
        opened.clock.advance(PENDING_MS);
        await plane.report(NODE);
        await plane.sandboxes.settle();
        const [last] = made.slice(-1);
        expect((await plane.sandboxes.get(last?.id ?? "", ANN)).reason).toBe(
          "no node had room for it within 60 s: an owner has at most 4 volumes, and there are 4",
        );
      });
    });

    describe("that leave no room", () => {
      it("are named to who waits, as far as they are the owner's own", async () => {
        const capacity = { ...ROOMY, diskMb: 9_000, memoryMb: 3_000 };
        await plane.report(NODE, { capacity });
        await left(ANN, ["mine", 300], ["small", 20]);
        await left(BOB, ["secret-of-bob", 900]);
        await plane.create({ name: "mine-too" }, ANN);
        const [hold] = await plane.claim(NODE);
        await new LeasedBox(plane, hold ?? { jobId: "", holder: "", fence: 0 }).desiredState();
        const waiting = await plane.create({ limits: { cpuCores: 1, memoryMb: 64, diskMb: 4_096, maxProcesses: 16 } });
        opened.clock.advance(PENDING_MS);
        await plane.report(NODE, { capacity });
        await plane.sandboxes.settle();
        const { reason } = await plane.sandboxes.get(waiting.id, ANN);
        expect(reason).toBe(
          "no node had room for it within 60 s: it needs 4096 MiB of disk, which no node has free; disks of your " +
            "sandboxes there take 4096 MiB, your volumes 320 MiB (mine 300, small 20)",
        );
      });

      it("are not blamed where something else is short, or missing", async () => {
        const reasonFor = async (spec: Partial<SandboxSpec>) => {
          const { id } = await plane.create(spec);
          opened.clock.advance(PENDING_MS);
          await plane.report(NODE, { capacity: { ...ROOMY, memoryMb: 100 } });
          await plane.sandboxes.settle();
          return (await plane.sandboxes.get(id, ANN)).reason?.replace("no node had room for it within 60 s: ", "");
        };
        await plane.report(NODE, { capacity: { ...ROOMY, memoryMb: 100 } });
        expect(await reasonFor({})).toBe(
          "it needs 1024 MiB of memory, which no node has free; your 0 sandboxes there take 0 MiB of memory",
        );
        expect(await reasonFor({ labels: { "node/zone": "b" } })).toBe("no node has the label zone=b");
      });

      it("a start is told what takes the room of its node", async () => {
        const capacity = { ...ROOMY, memoryMb: 1_500 };
        await plane.report(NODE, { capacity });
        const { id } = await plane.create({ persistence: "persistent" });
        await plane.records.write({
          sql: "UPDATE sandboxes SET state = 'stopped', wanted = 'stopped' WHERE id = ?",
          values: [id],
        });
        await plane.create({}, BOB);
        await expect(plane.act(id, "start")).rejects.toMatchObject({
          code: "unavailable",
          message:
            "the node that has the sandbox has no room for it: it needs 1024 MiB of memory, which no node has free; your " +
            "1 sandboxes there take 0 MiB of memory; stop others, or try later",
        });
      });
    });

    const nowMs = async (): Promise<number> => {
      const [row] = await plane.records.rows("SELECT CAST(? AS bigint) AS now", [{ nowPlusMs: 0 }]);
      return Number(row?.["now"]);
    };
  });
}
