import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { keyringOf } from "../../../auth/sealing/keyring.ts";
import type { OpenedCatalog } from "../../../catalog/contract.test-kit.ts";
import { EngineError } from "../../../core/errors.ts";
import { holdOf, type Hold } from "../../../fabric/job.ts";
import {
  ANN,
  BOB,
  controlPlaneOn,
  LeasedBox,
  originOf,
  ROOT,
  type ControlPlane,
} from "../scheduler/scheduler.test-kit.ts";
import { specOf } from "../../contract/spec.test-kit.ts";
import { IMAGE_BUILD_KIND } from "../../contract/images/build-job.ts";
import { imagesOn } from "./images.test-kit.ts";
import type { BuildRequest } from "./machine-images.ts";
import type { ImageBuild } from "./records.ts";

const DAY_MS = 86_400_000;
const SHA = "a".repeat(64);
const longText = (name: string) => `${name} = "${"x".repeat(30_000)}"`;
const templateOf = (base: string, ...names: string[]) =>
  `base = "${base}"\n[environment]\n${names.map(longText).join("\n")}\n`;
const by = (caller: typeof ANN) => ({ asker: caller, origin: originOf(caller) });

async function refusalOf(attempt: (() => Promise<unknown>) | undefined): Promise<EngineError> {
  const error = await attempt?.().catch((reason: unknown) => reason);
  if (error instanceof EngineError) return error;
  throw new Error("it was not refused");
}

/** What images and their builds must do on every catalog. */
export function imagesContract(name: string, open: () => Promise<OpenedCatalog>): void {
  describe(`images on ${name}`, () => {
    let opened: OpenedCatalog;
    let plane: ControlPlane;
    let world: ReturnType<typeof imagesOn>;
    beforeEach(async () => {
      opened = await open();
      plane = controlPlaneOn(opened, { limits: { defaultImages: { codex: "debian" } } });
      world = imagesOn(plane, { maxPerTenant: 2 });
      await plane.report("node-1");
    });
    afterEach(async () => {
      plane.fabric.close();
      await opened.close();
    });

    const ask = (more: Partial<BuildRequest> = {}, caller = ANN): Promise<ImageBuild> =>
      world.images.build(
        {
          provider: "codex",
          region: undefined,
          instanceType: undefined,
          templateSource: 'base = "host"\n[environment]\nA = "1"\n',
          variables: {},
          ...more,
        },
        { owner: caller, origin: originOf(caller) },
      );
    const claim = async (nodeId = "node-1"): Promise<Hold[]> => {
      const asked = {
        kinds: new Set([IMAGE_BUILD_KIND]),
        jobsOf: "everybody" as const,
        labels: {},
        max: 10,
        waitMs: 0,
      };
      return (await plane.fabric.claim({ ...asked, holder: nodeId, workerId: nodeId })).map(holdOf);
    };
    /** As a node does it. */
    const finish = async (build: Pick<ImageBuild, "id">, asker = ANN): Promise<string> => {
      const [hold] = await claim();
      if (hold === undefined) throw new Error("no job");
      await world.layers.write(hold, 0, Buffer.from("layer"));
      const layer = { buildId: build.id, fence: hold.fence, parts: 1, sha256: SHA, sizeBytes: 5, unpackedBytes: 9 };
      await plane.fabric.complete(hold, { layer });
      const { status, imageId } = await world.images.getBuild(build.id, asker);
      expect(status).toBe("succeeded");
      if (imageId === undefined) throw new Error("no image");
      return imageId;
    };

    const defaultOf = (provider: string) => world.images.defaultOf(provider, originOf(ANN));
    const builds = () =>
      opened.catalog.records.rows("SELECT id, tenant, status FROM image_builds ORDER BY created_at_ms, id");
    const reportDebian = () => plane.report("node-1", { images: ["host", "debian"] });

    it("follow their job from the queue to an image", async () => {
      const build = await ask();
      expect(build).toMatchObject({ status: "queued", region: "local", instanceType: "standard", imageId: undefined });
      expect(await world.images.getBuild(build.id, ANN)).toEqual(build);
      const [hold] = await claim();
      if (hold === undefined) throw new Error("no job");
      expect(await world.images.getBuild(build.id, ANN)).toMatchObject({
        status: "building",
        completedAtMs: undefined,
      });
      await world.layers.write({ ...hold, fence: hold.fence }, 0, Buffer.from("layer"));
      await expect(world.layers.write({ ...hold, fence: hold.fence + 1 }, 0, Buffer.from("x"))).rejects.toMatchObject({
        code: "lease_lost",
      });
      const layer = { buildId: build.id, fence: hold.fence, parts: 1, sha256: SHA, sizeBytes: 5, unpackedBytes: 9 };
      await plane.fabric.complete(hold, { layer });
      const done = await world.images.getBuild(build.id, ANN);
      expect(done).toMatchObject({ status: "succeeded", error: undefined });
      expect(done.completedAtMs).toBeGreaterThanOrEqual(done.startedAtMs ?? Number.POSITIVE_INFINITY);
      const [image] = await world.images.list({ limit: 10 }, ANN);
      expect(image).toMatchObject({ id: done.imageId, buildId: build.id, contentHash: SHA, sizeBytes: 5 });
      expect(await world.images.list({ region: "local", provider: "codex", limit: 10 }, ANN)).toHaveLength(1);
      expect(await world.images.list({ region: "other", limit: 10 }, ANN)).toEqual([]);
      expect(await world.images.list({ limit: 10, before: done.imageId }, ANN)).toEqual([]);
      expect(await world.images.list({ limit: 10, before: "ffffffff-ffff-7fff-bfff-ffffffffffff" }, ANN)).toEqual([
        image,
      ]);
      expect(Buffer.from(await world.layers.read(layer, 0)).toString()).toBe("layer");
      await expect(world.layers.read(layer, 1)).rejects.toMatchObject({ code: "image_not_found" });
    });

    it("are their tenant's, and admins'", async () => {
      const build = await ask();
      for (const id of [build.id, "x", "\0"]) {
        await expect(world.images.getBuild(id, BOB)).rejects.toMatchObject({ code: "build_not_found" });
      }
      const id = await finish(build);
      expect(await world.images.list({ limit: 10 }, BOB)).toEqual([]);
      expect(await world.images.list({ limit: 10 }, ROOT)).toHaveLength(1);
      await expect(world.images.remove(id, by(BOB))).rejects.toMatchObject({ code: "image_not_found" });
      await expect(world.images.share(id, { shared: true, ...by(BOB) })).rejects.toMatchObject({
        code: "image_not_found",
      });
      await isNotThereFor(BOB, id);
      expect((await plane.create({ image: id }, ROOT)).spec.builtImage?.id).toBe(id);
    });

    it("are for everybody to use while they are shared, and for nobody else to change", async () => {
      const build = await ask({ templateSource: 'base = "host"\n[environment]\nA = "a secret of the template"\n' });
      const id = await finish(build);
      expect(await world.images.share(id, { shared: true, ...by(ANN) })).toMatchObject({ id, shared: true });
      expect(await world.images.list({ limit: 10 }, BOB)).toMatchObject([{ id, shared: true }]);
      expect(JSON.stringify(await world.images.list({ limit: 10 }, BOB))).not.toContain("secret");
      expect((await plane.create({ image: id }, BOB)).spec.builtImage).toMatchObject({ id });
      await ask({ templateSource: `base = "${id}"` }, BOB);
      await expect(world.images.getBuild(build.id, BOB)).rejects.toMatchObject({ code: "build_not_found" });
      await expect(world.images.remove(id, by(BOB))).rejects.toMatchObject({ code: "image_not_found" });
      await expect(world.images.share(id, { shared: false, ...by(BOB) })).rejects.toMatchObject({
        code: "image_not_found",
      });
      await world.images.share(id, { shared: false, ...by(ROOT) });
      expect(await world.images.list({ limit: 10 }, BOB)).toEqual([]);
      await isNotThereFor(BOB, id);
      await world.images.remove(id, by(ANN));
      await expect(world.images.share(id, { shared: true, ...by(ANN) })).rejects.toMatchObject({
        code: "image_not_found",
      });
    });

    it("are built by jobs of their owner's", async () => {
      const { id } = await ask({}, BOB);
      const sql = "SELECT owner FROM jobs WHERE id = (SELECT job_id FROM image_builds WHERE id = ?)";
      expect(await opened.catalog.records.rows(sql, [id])).toEqual([{ owner: "bob" }]);
    });

    /** Neither itself nor as a base: what is said of an image that nobody has. */
    const isNotThereFor = async (caller: typeof ANN, id: string): Promise<void> => {
      const [theirs, nobodys] = [id, "01977f3e-7c3a-7d2e-9d6f-0d5b0f4b6a11"].map((one) => [
        () => plane.create({ image: one }, caller),
        () => ask({ templateSource: `base = "${one}"` }, caller),
      ]);
      for (const [i, use] of (theirs ?? []).entries()) {
        const [refused, missing] = await Promise.all([use, nobodys?.[i]].map((attempt) => refusalOf(attempt)));
        expect(refused).toMatchObject({ code: "image_not_found" });
        expect(refused?.message.replaceAll(id, "")).toBe(missing?.message.replaceAll(/[0-9a-f-]{36}/g, ""));
      }
    };

    it("fail with their job, and are written off when nobody takes them", async () => {
      const build = await ask();
      const [hold] = await claim();
      if (hold === undefined) throw new Error("no job");
      await world.layers.write(hold, 0, Buffer.from("half"));
      await plane.fabric.fail(hold, { error: "commands[0]: no" });
      expect(await world.images.getBuild(build.id, ANN)).toMatchObject({ status: "failed", error: "commands[0]: no" });
      expect(world.objects.size).toBe(0);
      await plane.report("node-1", { images: ["host"], labels: { region: "eu" } });
      const nowhere = await ask({ region: "us" });
      expect(await claim()).toEqual([]);
      await world.images.look();
      expect(await world.images.getBuild(nowhere.id, ANN)).toMatchObject({ status: "queued" });
      opened.clock.advance(61_000);
      await world.images.look();
      expect(await world.images.getBuild(nowhere.id, ANN)).toMatchObject({
        status: "failed",
        error: expect.stringContaining("no node"),
      });
    });

    describe("that are an agent provider's own", () => {
      let another: ControlPlane;
      beforeEach(async () => {
        await reportDebian();
        another = controlPlaneOn(opened, {
          seed: 2,
          limits: { builtImage: defaultOf, defaultImages: { codex: "host" } },
        });
      });
      afterEach(() => another.fabric.close());
      const create = (caller: typeof ANN) => another.create({ agentProvider: "claude-code" }, caller);

      it("are built once, when they are first asked for, for everybody", async () => {
        const [one, two, ...made] = await Promise.all([
          defaultOf("claude-code"),
          defaultOf("claude-code"),
          create(BOB),
          create(ANN),
        ]);
        expect([one, two]).toEqual([{}, {}]);
        const [build, ...more] = await builds();
        expect(more).toEqual([]);
        expect(build).toMatchObject({ tenant: "engine", status: "queued" });
        for (const { state, nodeId, spec, reason } of made) {
          expect({ state, nodeId, image: spec.image, reason }).toEqual({
            state: "pending",
            nodeId: undefined,
            image: undefined,
            reason: "its image is being built",
          });
        }
        const id = await finish({ id: String(build?.["id"]) }, ROOT);
        expect(await defaultOf("claude-code")).toMatchObject({ image: { id, base: "debian" } });
        for (const caller of [ANN, BOB]) {
          expect((await create(caller)).spec).toMatchObject({ image: id, builtImage: { id } });
        }
        expect(await builds()).toHaveLength(1);
        expect(await world.images.list({ limit: 10 }, ANN)).toEqual([]);
        await expect(plane.create({ image: id })).rejects.toMatchObject({ code: "image_not_found" });
        // The operator's word is first.
        expect((await another.create({ agentProvider: "codex" })).spec.image).toBe("host");
      });

      it("come to the sandboxes that wait for them, which then wait for a node", async () => {
        const keyring = keyringOf(Buffer.alloc(32, 7).toString("base64"), []);
        const sealed = controlPlaneOn(opened, { seed: 3, keyring, limits: { builtImage: defaultOf } });
        const env = { envVars: { KEY: "secret" } };
        const made = await sealed.sandboxes.create({
          spec: specOf({ agentProvider: "claude-code", name: "waits", ...env }),
          owner: ANN,
          origin: originOf(ANN),
        });
        const second = await sealed.create({ agentProvider: "claude-code" }, BOB);
        // However long that takes, it is not the time in which a node must have room.
        opened.clock.advance(3_600_000);
        await reportDebian();
        expect(await sealed.sandboxes.settle()).toBe(0);
        expect([await sealed.sandboxes.settleAwaiting(), await sealed.sandboxes.place()]).toEqual([0, 0]);
        await sealed.act(second.id, "delete", BOB);
        const [build] = await builds();
        const id = await finish({ id: String(build?.["id"]) }, ROOT);
        // Any number of processes may look at once.
        const counts = await Promise.all([
          sealed.sandboxes.settleAwaiting(),
          another.sandboxes.settleAwaiting(),
          sealed.sandboxes.settleAwaiting(),
        ]);
        expect(counts.reduce((sum, count) => sum + count, 0)).toBe(1);
        expect(await sealed.sandboxes.settle()).toBe(0);
        expect(await sealed.sandboxes.place()).toBe(1);
        const now = await sealed.sandboxes.get(made.id, ANN);
        expect(now).toMatchObject({ state: "pending", nodeId: "node-1", reason: undefined, spec: { image: id } });
        expect(sealed.sandboxes.env(now)).toEqual(env);
        expect((await sealed.events(made.id)).map(({ seq, type, data }) => ({ seq, type, data }))).toEqual([
          { seq: 1, type: "provisioning_step", data: { step: "BuildImage", status: "in_progress" } },
          { seq: 2, type: "provisioning_step", data: { step: "BuildImage", status: "completed" } },
        ]);
        const [hold] = await sealed.claim("node-1", 1);
        if (hold === undefined) throw new Error("no node got it");
        expect((await new LeasedBox(sealed, hold).desiredState()).spec).toMatchObject({ builtImage: { id }, ...env });
        sealed.fabric.close();
      });

      it("fail the sandboxes that wait for them where they cannot be built", async () => {
        const waiting = await create(ANN);
        const [hold] = await claim();
        if (hold === undefined) throw new Error("no job");
        await plane.fabric.fail(hold, { error: "packages.npm: no network" });
        await world.images.look();
        expect(await another.sandboxes.settleAwaiting()).toBe(1);
        expect(await another.sandboxes.settleAwaiting()).toBe(0);
        expect(await another.sandboxes.get(waiting.id, ANN)).toMatchObject({
          state: "failed",
          reason: "BuildImage: its image could not be built: packages.npm: no network",
        });
        const error = "could not be built: packages.npm: no network";
        expect((await another.events(waiting.id)).slice(1).map(({ type, data }) => ({ type, data }))).toMatchObject([
          { type: "provisioning_step", data: { step: "BuildImage", status: "failed" } },
          { type: "provisioning_failed", data: { step: "BuildImage", error } },
          { type: "sandbox_state_changed", data: { from: "pending", to: "failed" } },
        ]);
        // New ones are told at once.
        const refused = { code: "unavailable", message: expect.stringContaining("packages.npm: no network") };
        await expect(create(ANN)).rejects.toMatchObject(refused);
        await another.act(waiting.id, "delete");
      });

      it("are built again when somebody deletes them, or a while after that has failed", async () => {
        expect(await defaultOf("claude-code")).toEqual({});
        const [hold] = await claim();
        if (hold === undefined) throw new Error("no job");
        await plane.fabric.fail(hold, { error: "packages.npm: no network" });
        await world.images.look();
        expect(await defaultOf("claude-code")).toEqual({ failure: "packages.npm: no network" });
        expect(await builds()).toHaveLength(1);
        opened.clock.advance(601_000);
        await reportDebian();
        expect(await defaultOf("claude-code")).toEqual({});
        const id = await finish({ id: String((await builds())[1]?.["id"]) }, ROOT);
        expect((await defaultOf("claude-code")).image?.id).toBe(id);
        await world.images.remove(id, by(ROOT));
        expect(await defaultOf("claude-code")).toEqual({});
        expect(await builds()).toHaveLength(3);
      });

      it("are the node's own where none has their base", async () => {
        await plane.report("node-1", { images: ["host"] });
        expect((await create(ANN)).spec.image).toBeUndefined();
        expect(await builds()).toEqual([]);
      });
    });

    it("go to another node when theirs fell silent before it began", async () => {
      const build = await ask();
      opened.clock.advance(20_000);
      await plane.report("node-2");
      await world.images.look();
      expect(await claim("node-1")).toEqual([]);
      expect(await claim("node-2")).toHaveLength(1);
      expect(await world.images.getBuild(build.id, ANN)).toMatchObject({ status: "building" });
    });

    it("are counted, and nobody has too many", async () => {
      await finish(await ask());
      const second = await ask();
      await expect(ask()).rejects.toMatchObject({ code: "rate_limited" });
      await ask({}, BOB);
      const image = await finish(second);
      await expect(ask()).rejects.toMatchObject({ code: "rate_limited" });
      await world.images.remove(image, by(ANN));
      await ask();
    });

    it("are given to sandboxes with all their layers, until they are deleted", async () => {
      const first = await finish(await ask());
      const second = await finish(
        await ask({ templateSource: `base = "${first}"\n[environment]\nB = "2"\n`, provider: "opencode" }),
      );
      await plane.report("node-2", {
        images: ["host", second],
        capacity: { cpuMillis: 2_000, memoryMb: 2_048, diskMb: 8_192, sandboxes: 2 },
      });
      const made = await plane.create({ image: second });
      // That node has less room, but it has the image.
      expect(made).toMatchObject({
        nodeId: "node-2",
        spec: { image: second, builtImage: { id: second, base: "host", environment: { A: "1", B: "2" } } },
      });
      expect(made.spec.builtImage?.layers).toHaveLength(2);
      for (const id of [first, second]) await world.images.remove(id, by(ANN));
      await expect(world.images.remove(second, by(ANN))).rejects.toMatchObject({ code: "image_not_found" });
      await expect(plane.create({ image: second })).rejects.toMatchObject({ code: "image_not_found" });
      opened.clock.advance(120_000);
      await world.images.tidy();
      expect(world.objects.size).toBe(2);
      await plane.records.write({ sql: "DELETE FROM sandboxes WHERE id = ?", values: [made.id] });
      // The lower one is held by the upper one, which goes first.
      await world.images.tidy();
      await world.images.tidy();
      expect(world.objects.size).toBe(0);
      opened.clock.advance(40 * DAY_MS);
      await world.images.tidy();
      expect(await plane.records.rows("SELECT id FROM image_builds")).toEqual([]);
    });

    it("are what the operator says for sandboxes that name none", async () => {
      await plane.report("node-2", { images: ["host", "debian"] });
      expect(await plane.create({ agentProvider: "codex" })).toMatchObject({
        nodeId: "node-2",
        spec: { image: "debian" },
      });
      expect((await plane.create({ agentProvider: "opencode" })).spec.image).toBeUndefined();
    });

    it("are refused where what they and their base say does not fit into a job", async () => {
      world = imagesOn(plane, { maxPerTenant: 10 });
      await expect(ask({ templateSource: templateOf("host", "A", "B", "C") })).rejects.toMatchObject({
        code: "config_validation_error",
      });
      let image = "host";
      for (const names of ["AB", "CD", "EF", "GH"]) {
        image = await finish(await ask({ templateSource: templateOf(image, `${names}1`, `${names}2`) }));
      }
      await expect(ask({ templateSource: templateOf(image, "I", "J") })).rejects.toMatchObject({
        code: "config_validation_error",
      });
    });

    it("are refused where the base is not there, or takes no packages", async () => {
      await expect(ask({ templateSource: 'base = "01977f3e-7c3a-7d2e-9d6f-0d5b0f4b6a11"' })).rejects.toMatchObject({
        code: "image_not_found",
        message: expect.stringContaining("template_source.base"),
      });
      const bases = ['base = "alpine"', 'base = "host"\n[packages]\napt = ["git"]'];
      for (const templateSource of bases) {
        await expect(ask({ templateSource })).rejects.toMatchObject({ code: "config_validation_error" });
      }
    });
  });
}
