import { routesOf } from "../../src/server/route.ts";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { createAuthenticator } from "../../src/auth/authenticator.ts";
import { FailureLimit } from "../../src/auth/failure-limit.ts";
import { openMemoryCatalog } from "../../src/catalog/sqlite/memory.test-kit.ts";
import { ManualClock, systemClock } from "../../src/core/clock.ts";
import { uuidV7Source } from "../../src/core/ids.ts";
import { silentLog } from "../../src/core/log.ts";
import { createMetrics } from "../../src/core/metrics.ts";
import { systemRandom } from "../../src/core/random.ts";
import { NodeRefused } from "../../src/fabric/runner-failure.ts";
import { Workers } from "../../src/fabric/workers.ts";
import { Dialler } from "../../src/sandbox/node/link/dialler.ts";
import { LINK_PATH, LINK_PROTOCOL } from "../../src/sandbox/contract/link/link.ts";
import { NodeDirectory } from "../../src/sandbox/control/link/node-directory.ts";
import type { NodeReport } from "../../src/sandbox/contract/control-port.ts";
import { RemoteControlPort } from "../../src/sandbox/node/link/remote-control-port.ts";
import { ANN, controlPlaneOn, originOf, ROOMY, ROOT } from "../../src/sandbox/control/scheduler/scheduler.test-kit.ts";
import { specOf } from "../../src/sandbox/contract/spec.test-kit.ts";
import { serveApp } from "../../src/server/app.test-kit.ts";
import { imagesOn } from "../../src/sandbox/control/images/images.test-kit.ts";
import { RemoteImagePort } from "../../src/sandbox/node/images/remote-image-port.ts";
import { readLayerPartRoute, writeLayerPartRoute } from "../../src/sandbox/control/routes/image-layers.ts";
import {
  historyRoute,
  linkRoute,
  orderRoute,
  recordBatchRoute,
  reportNodeRoute,
} from "../../src/sandbox/control/routes/nodes.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";

/** A control plane with the routes of nodes, and nodes that speak to it as daemons do. */
type World = Awaited<ReturnType<typeof startWorld>>;
type Admitted = { id: string; token: string };

const GATEWAYS = ["https://a.example", "https://b.example"];
const REPORT: NodeReport = {
  name: "node",
  runtime: "bubblewrap",
  labels: { zone: "a" },
  images: ["host"],
  capacity: ROOMY,
  bootId: "b1",
};

let world: World;
beforeEach(async () => {
  world = await startWorld();
});
afterEach(() => world.close());

async function startWorld() {
  const { catalog } = openMemoryCatalog(systemClock);
  const plane = controlPlaneOn({ catalog, clock: systemClock });
  const { records, audit, sandboxes } = plane;
  const newId = uuidV7Source(systemClock, systemRandom);
  const workers = new Workers({ records, newId, random: systemRandom, audit, offlineMs: 60_000 });
  const directory = new NodeDirectory({ clock: systemClock, log: silentLog, metrics: createMetrics() });
  const isAdmitted = async (id: string) => (await workers.find(id))?.status !== "revoked";
  const link = { nodes: directory, gateways: () => GATEWAYS, isAdmitted };
  const linkClock = new ManualClock();
  const deps = { sandboxes, link, clock: linkClock };
  const images = imagesOn(plane);
  const failures = new FailureLimit({ clock: systemClock });
  const { url, close } = await serveApp({
    clock: systemClock,
    newId,
    log: silentLog,
    metrics: createMetrics(),
    authenticator: createAuthenticator({ isOn: true, backends: [], workers, failures }),
    routes: [
      ...routesOf([reportNodeRoute, orderRoute, historyRoute, recordBatchRoute, linkRoute], { here: deps }),
      ...routesOf([readLayerPartRoute, writeLayerPartRoute], { here: images }),
    ],
  });
  const closers: (() => Promise<void> | void)[] = [close, () => catalog.close()];
  const remote = (id: string, token: string): RemoteControlPort => {
    const port = new RemoteControlPort(id, { url, token, userAgent: "test" });
    closers.unshift(() => port.close());
    return port;
  };
  return {
    plane,
    workers,
    directory,
    linkClock,
    url,
    remote,
    images,
    layers: (token: string): RemoteImagePort => {
      const port = new RemoteImagePort({ url, token, userAgent: "test" });
      closers.unshift(() => port.close());
      return port;
    },
    admit: async (capabilities?: string[], admitted?: string[]): Promise<Admitted> => {
      const { worker, token } = await workers.create(
        { name: "node", capabilities, admitted },
        { ...originOf(ROOT), caller: ROOT },
      );
      return { id: worker.id, token };
    },
    dial: (token: string, onDesiredState: (id: string) => void): Dialler => {
      const dialler = new Dialler({
        handler: async ({ params }) => ({ result: params }),
        onDesiredState,
        token,
        userAgent: "test",
        checkUrl: () => undefined,
        clock: systemClock,
        random: systemRandom,
        log: silentLog,
      });
      closers.unshift(() => dialler.stop());
      dialler.dial([url]);
      return dialler;
    },
    close: async () => {
      for (const end of closers) await end();
    },
  };
}

describe("a node", () => {
  it("learns which volumes are deleted, until it has said that they are gone", async () => {
    const { id, token } = await world.admit();
    await world.plane.records.write({ sql: "INSERT INTO gone_volumes VALUES ('k', ?, 1)", values: [id] });
    const report = async (more: object = {}) =>
      (await world.remote(id, token).report({ ...REPORT, ...more })).deletedVolumes;
    expect([await report(), await report({ removedVolumes: ["other"] })]).toEqual([["k"], ["k"]]);
    expect(await report({ removedVolumes: ["k"] })).toEqual([]);
  });

  it("says what it is, and learns where to connect", async () => {
    const { id, token } = await world.admit();
    const gone = "01890a5d-ac96-774b-bcce-b302099a8057";
    const answer = await world.remote(id, token).report({ ...REPORT, keeps: [gone], unusedVolumes: ["v"] });
    const volumes = { goneVolumes: ["v"], deletedVolumes: [] };
    expect(answer).toEqual({ drain: false, gateways: GATEWAYS, gone: [gone], ...volumes });
    const [row] = await world.plane.records.rows("SELECT * FROM sandbox_nodes", []);
    expect(row).toMatchObject({ id, runtime: "bubblewrap", labels: '{"zone":"a"}', boot_id: "b1" });
    expect(JSON.parse(String(row?.["capacity"]))).toEqual(ROOMY);
  });

  it("gets the order of a sandbox that it holds, and writes what happens, each batch once", async () => {
    const { id, token } = await world.admit();
    const port = world.remote(id, token);
    await port.report(REPORT);
    const spec = specOf({ timeoutSecs: 60, envVars: { A: "é" } });
    const sandbox = await world.plane.create(spec);
    const [hold] = await world.plane.claim(id, 1);
    if (hold === undefined) throw new Error("the node got no job");
    const order = await port.desiredState(hold);
    expect(order).toMatchObject({ sandboxId: sandbox.id, tenant: "ann", state: "pending", wanted: "running" });
    // What is undefined is absent, which reads the same.
    expect(order.spec).toEqual(spec);
    const line = { type: "log_line" as const, atMs: 5, data: { line: "hello" } };
    const batch = {
      number: 1,
      events: [line],
      state: { to: "creating" as const, reason: "begun" },
      stats: { pids: 2 },
    };
    expect(await port.record(hold, batch)).toMatchObject({ state: "creating", recordedBatch: 1 });
    await port.record(hold, batch);
    const types = (await world.plane.events(sandbox.id)).map(({ type }) => type);
    expect(types.filter((type) => type === "log_line")).toHaveLength(1);
    await expect(port.record(hold, { number: 2, events: [], state: { to: "paused" } })).rejects.toMatchObject({
      code: "sandbox_invalid_state",
    });
  });

  it("has no word about what others hold", async () => {
    const [owner, other] = [await world.admit(), await world.admit()];
    await world.remote(owner.id, owner.token).report(REPORT);
    await world.plane.create();
    const [hold] = await world.plane.claim(owner.id, 1);
    if (hold === undefined) throw new Error("the node got no job");
    const stranger = world.remote(other.id, other.token);
    for (const asked of [hold, { ...hold, fence: hold.fence + 1 }, { ...hold, jobId: "no id" }]) {
      await expect(stranger.desiredState(asked)).rejects.toMatchObject({ code: "lease_lost" });
      await expect(stranger.record(asked, { number: 1, events: [] })).rejects.toMatchObject({ code: "lease_lost" });
    }
  });

  it("takes a batch of several megabytes, and of no more than is bearable", async () => {
    const { id, token } = await world.admit();
    const port = world.remote(id, token);
    await port.report(REPORT);
    await world.plane.create();
    const [hold] = await world.plane.claim(id, 1);
    if (hold === undefined) throw new Error("the node got no job");
    await port.desiredState(hold);
    const event = { type: "log_line" as const, atMs: 1, data: { line: "x".repeat(60_000) } };
    await port.record(hold, { number: 1, events: Array.from({ length: 60 }, () => event) });
    const tooMany = Array.from({ length: 1_001 }, () => ({ ...event, data: {} }));
    await expect(port.record(hold, { number: 2, events: tooMany })).rejects.toMatchObject({ code: "bad_request_body" });
    const tooLarge = Array.from({ length: 400 }, () => event);
    await expect(port.record(hold, { number: 2, events: tooLarge })).rejects.toMatchObject({ code: "body_too_large" });
  });

  it("is refused without a worker's token, and where it may have no sandboxes", async () => {
    const revoked = await world.admit();
    await world.workers.revoke(revoked.id, { ...originOf(ROOT), caller: ROOT });
    await expect(world.remote(revoked.id, revoked.token).report(REPORT)).rejects.toThrow(NodeRefused);
    const other = await world.admit(["x.other"]);
    await expect(world.remote(other.id, other.token).report(REPORT)).rejects.toThrow(NodeRefused);
    const fit = await world.admit(["sandbox"]);
    expect(await world.remote(fit.id, fit.token).report(REPORT)).toMatchObject({ drain: false });
  });

  it("is none, and gets nothing, until an admin admits it for sandboxes", async () => {
    for (const [capabilities, admitted] of [
      [undefined, []],
      [["sandbox"], []],
      [["sandbox"], ["x.other"]],
    ] as const) {
      const { id, token } = await world.admit(capabilities === undefined ? undefined : [...capabilities], [
        ...admitted,
      ]);
      await expect(world.remote(id, token).report(REPORT)).rejects.toThrow(NodeRefused);
      expect(await statusOf(world.url + LINK_PATH, token)).toBe(403);
    }
    expect(await world.plane.records.rows("SELECT id FROM sandbox_nodes", [])).toEqual([]);
    expect((await world.plane.create()).nodeId).toBeUndefined();
  });

  it("gets no more of what it holds when its admission is taken back", async () => {
    const { id, token } = await world.admit();
    const port = world.remote(id, token);
    await port.report(REPORT);
    await world.plane.create();
    const [hold] = await world.plane.claim(id, 1);
    if (hold === undefined) throw new Error("the node got no job");
    expect(await port.desiredState(hold)).toMatchObject({ state: "pending" });
    await world.workers.admit(id, [], { ...originOf(ROOT), caller: ROOT });
    const refused = { code: "forbidden" };
    await expect(port.desiredState(hold)).rejects.toMatchObject(refused);
    await expect(port.record(hold, { number: 1, events: [] })).rejects.toMatchObject(refused);
    await expect(port.history(hold, "s")).rejects.toMatchObject(refused);
    await expect(world.layers(token).write(hold, 0, Buffer.from("x"))).rejects.toMatchObject(refused);
    await expect(port.report(REPORT)).rejects.toThrow(NodeRefused);
  });

  it("gets layers of images that its sandboxes and its builds have, and no others", async () => {
    const [mine, other] = [await world.admit(), await world.admit()];
    await world.remote(mine.id, mine.token).report(REPORT);
    const { images, plane } = world;
    const request = { provider: "codex", region: undefined, instanceType: undefined, variables: {} };
    const { id: buildId } = await images.images.build(
      { ...request, templateSource: 'base = "host"' },
      { owner: ANN, origin: originOf(ANN) },
    );
    const asked = { kinds: new Set(["image_build"]), jobsOf: "everybody" as const, labels: {}, max: 1, waitMs: 0 };
    const [job] = await plane.fabric.claim({ ...asked, holder: mine.id, workerId: mine.id });
    if (job === undefined) throw new Error("the node got no build");
    const { fence } = job;
    await world.layers(mine.token).write({ jobId: job.id, holder: mine.id, fence }, 0, Buffer.from("a secret file"));
    const layer = { buildId, fence, parts: 1, sha256: "a".repeat(64), sizeBytes: 1, unpackedBytes: 1 };
    await plane.fabric.complete({ jobId: job.id, holder: mine.id, fence }, { layer });
    const { imageId } = await images.images.getBuild(buildId, ANN);
    const read = ({ token }: Admitted) => world.layers(token).read({ buildId, fence }, 0);
    for (const node of [mine, other]) await expect(read(node)).rejects.toMatchObject({ code: "image_not_found" });
    const { nodeId } = await plane.create({ image: imageId });
    expect(nodeId).toBe(mine.id);
    expect(Buffer.from(await read(mine)).toString()).toBe("a secret file");
    await expect(read(other)).rejects.toMatchObject({ code: "image_not_found" });
  });
});

/** Of an attempt to connect. */
async function statusOf(url: string, token: string): Promise<number> {
  const headers = { authorization: `Bearer ${token}` };
  const socket = new WebSocket(url.replace("http", "ws"), [LINK_PROTOCOL], { headers });
  return await new Promise((resolve, reject) => {
    socket.once("unexpected-response", (_, response) => resolve(response.statusCode ?? 0));
    socket.once("open", () => reject(new Error("it was let in")));
    socket.once("error", reject);
  });
}

describe("the link", () => {
  it("has the node called under the name of its worker, and tells it of orders", async () => {
    const { id, token } = await world.admit();
    const port = world.remote(id, token);
    const told: string[] = [];
    port.onDesiredState((sandboxId) => told.push(sandboxId));
    await port.report(REPORT);
    const dialler = world.dial(token, (sandboxId) => port.told(sandboxId));
    await eventually(() => dialler.connected === 1);
    const signal = new AbortController().signal;
    const call = { method: "stats" as const, sandboxId: "s", params: { n: 1 }, signal };
    expect(await world.directory.call(id, call)).toEqual({ result: { n: 1 } });
    const sandbox = await world.plane.create();
    await world.plane.act(sandbox.id, "delete", ANN);
    await eventually(() => told.includes(sandbox.id));
    await world.workers.revoke(id, { ...originOf(ROOT), caller: ROOT });
    world.linkClock.advance(9_999);
    expect(dialler.connected).toBe(1);
    world.linkClock.advance(1);
    await eventually(() => dialler.connected === 0);
  });

  it.each([
    ["without a token", undefined, [LINK_PROTOCOL], 401],
    ["of another version", "good", ["engine.sandbox-link.v0"], 400],
    ["of no version", "good", [], 400],
    ["of another kind of worker", "other", [LINK_PROTOCOL], 403],
  ])("is refused %s", async (_name, who, protocols, status) => {
    const tokens: Record<string, string> = {
      good: (await world.admit()).token,
      other: (await world.admit(["x.other"])).token,
    };
    const headers = who === undefined ? {} : { authorization: `Bearer ${tokens[who]}` };
    const socket = new WebSocket(world.url.replace("http", "ws") + LINK_PATH, protocols, { headers });
    const failure = await new Promise<Error>((resolve) => socket.once("error", resolve));
    expect(failure.message).toContain(String(status));
  });
});
