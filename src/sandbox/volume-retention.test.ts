import { isDeepStrictEqual } from "node:util";
import { afterEach, expect, it } from "vitest";
import { originOf, ROOT } from "./control/scheduler/scheduler.test-kit.ts";
import type { SandboxSpec } from "./contract/spec.ts";
import { NodeWorld } from "./node-world.test-kit.ts";

const DAY_MS = 86_400_000;

let world: NodeWorld | undefined;
afterEach(async () => {
  await world?.close();
});

async function begin(volumesKeptMs?: number): Promise<NodeWorld> {
  world = new NodeWorld(1, volumesKeptMs === undefined ? {} : { volumesKeptMs });
  world.begin();
  await world.pass(1_000);
  return world;
}

const withVolume = (name: string, more: Partial<SandboxSpec> = {}): Partial<SandboxSpec> => ({
  volumes: [{ name, mountPath: "/v", readOnly: false, sizeMb: 10 }],
  ...more,
});

async function running(here: NodeWorld, spec: Partial<SandboxSpec>): Promise<string> {
  const { id } = await here.plane.create(spec);
  await here.until("it runs", async () => (await here.plane.sandboxes.get(id, ROOT)).state === "running");
  return id;
}

async function deleted(here: NodeWorld, id: string): Promise<void> {
  await here.plane.act(id, "delete", ROOT);
  const rows = () => here.plane.records.rows("SELECT id FROM sandboxes WHERE id = ?", [id]);
  await here.until("it is gone", async () => (await rows()).length === 0);
}

/** Time in which nobody does anything but what is always done. */
async function daysPass(here: NodeWorld, days: number): Promise<void> {
  for (const key of here.host.volumes.keys()) here.host.volumes.set(key, here.clock.nowMs() - days * DAY_MS);
  await here.pass(620_000);
}

const recorded = async (here: NodeWorld) =>
  (await here.plane.records.rows("SELECT name FROM sandbox_volumes ORDER BY name")).map(({ name }) => String(name));

/** How the node calls the volumes that are recorded. */
const keysOf = async (here: NodeWorld) =>
  new Set(
    (await here.plane.records.rows("SELECT volume_key FROM sandbox_volumes")).map(({ volume_key: key }) => String(key)),
  );

/** What the control plane does now and then. */
const tidy = (here: NodeWorld) => here.plane.sandboxes.expireVolumes();
const idOf = async (name: string, here: NodeWorld): Promise<string> => {
  const volume = (await here.plane.sandboxes.volumes({ limit: 100 }, ROOT)).find((one) => one.name === name);
  if (volume === undefined) throw new Error(`there is no volume ${name}`);
  return volume.id;
};
const BY_ROOT = { asker: ROOT, origin: originOf(ROOT) };
const isOnNode = async (here: NodeWorld) =>
  await here.until("the node has what is recorded", async () =>
    isDeepStrictEqual(new Set(here.host.volumes.keys()), await keysOf(here)),
  );

it("a volume expires when no sandbox has named it for long, and then its disk goes", async () => {
  const here = await begin(2 * DAY_MS);
  await deleted(here, await running(here, withVolume("old")));
  const stopped = await running(here, withVolume("kept", { persistence: "persistent" }));
  await here.plane.act(stopped, "stop", ROOT);
  const up = await running(here, withVolume("used"));
  await here.plane.records.write({
    sql: "UPDATE sandbox_volumes SET used_at_ms = ?",
    values: [{ nowPlusMs: -29 * DAY_MS }],
  });
  await tidy(here);
  expect(await recorded(here)).toEqual(["kept", "old", "used"]);
  await here.plane.records.write({
    sql: "UPDATE sandbox_volumes SET used_at_ms = ?",
    values: [{ nowPlusMs: -30 * DAY_MS }],
  });
  await tidy(here);
  expect(await recorded(here)).toEqual(["kept", "used"]);
  await isOnNode(here);
  // The node has said so.
  const gone = () => here.plane.records.rows("SELECT volume_key FROM gone_volumes");
  await here.until("the control plane knows", async () => (await gone()).length === 0);
  // Who names it again has a new one.
  await deleted(here, await running(here, withVolume("old")));
  expect(await recorded(here)).toEqual(["kept", "old", "used"]);
  expect(new Set(here.host.volumes.keys())).toEqual(await keysOf(here));
  await deleted(here, up);
  await deleted(here, stopped);
});

it("a volume that is deleted goes from its node, also when that crashes in between", async () => {
  const here = await begin();
  await deleted(here, await running(here, withVolume("a")));
  await deleted(here, await running(here, withVolume("b")));
  await here.plane.sandboxes.deleteVolume(await idOf("a", here), BY_ROOT);
  // It removes the disk, and its word is lost.
  here.way = () => "no answers";
  await here.pass(20_000);
  here.crash();
  here.way = () => "open";
  here.begin();
  await isOnNode(here);
  expect(await recorded(here)).toEqual(["b"]);
  const gone = () => here.plane.records.rows("SELECT volume_key FROM gone_volumes");
  await here.until("the control plane knows", async () => (await gone()).length === 0);
  // The name is free at once, and what was deleted does not come back with it.
  await here.plane.sandboxes.deleteVolume(await idOf("b", here), BY_ROOT);
  const [before] = [...here.host.volumes.keys()];
  const again = await running(here, withVolume("b"));
  await isOnNode(here);
  expect([...here.host.volumes.keys()]).not.toContain(before);
  await deleted(here, again);
});

it("a node removes nothing that one of its sandboxes has", async () => {
  const here = await begin();
  const id = await running(here, withVolume("data"));
  const [key = ""] = await keysOf(here);
  await here.plane.records.write({
    sql: "INSERT INTO gone_volumes SELECT volume_key, node_id, 1 FROM sandbox_volumes",
    values: [],
  });
  await here.pass(60_000);
  expect([...here.host.volumes.keys()]).toEqual([key]);
  await deleted(here, id);
  await here.until("it is gone", () => here.host.volumes.size === 0);
});

it("disks that no record explains go when they are old, and volumes stay", async () => {
  const here = await begin(2 * DAY_MS);
  await deleted(here, await running(here, withVolume("old")));
  here.host.volumes.set("of-nobody", here.clock.nowMs());
  await daysPass(here, 1);
  expect(here.host.volumes.size).toBe(2);
  await daysPass(here, 10);
  expect(new Set(here.host.volumes.keys())).toEqual(await keysOf(here));
  expect(await recorded(here)).toEqual(["old"]);
});

it("the control plane answers for each node's volumes alone", async () => {
  const here = await begin();
  const id = await running(here, withVolume("kept", { persistence: "persistent" }));
  await here.plane.act(id, "stop", ROOT);
  const [node] = await here.plane.records.rows("SELECT node_id FROM sandbox_volumes");
  const [kept = ""] = await keysOf(here);
  const asked = await here.plane.report(String(node?.["node_id"]), { unusedVolumes: [kept, "of-nobody"] });
  expect(asked).toMatchObject({ goneVolumes: ["of-nobody"], deletedVolumes: [] });
  expect(await recorded(here)).toEqual(["kept"]);
  // Another node has no say about it.
  const other = await here.plane.report("node-2", { unusedVolumes: [kept], removedVolumes: [kept] });
  expect(other).toMatchObject({ goneVolumes: [kept], deletedVolumes: [] });
  expect(await recorded(here)).toEqual(["kept"]);
});
