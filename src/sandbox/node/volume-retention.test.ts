import { afterEach, expect, it } from "vitest";
import { ROOT } from "../scheduler/scheduler.test-kit.ts";
import type { SandboxSpec } from "../spec.ts";
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

it("a volume goes when no sandbox has named it for as long as volumes are kept", { timeout: 60_000 }, async () => {
  const here = await begin(2 * DAY_MS);
  await deleted(here, await running(here, withVolume("old")));
  const stopped = await running(here, withVolume("kept", { persistence: "persistent" }));
  await here.plane.act(stopped, "stop", ROOT);
  const up = await running(here, withVolume("used"));
  await daysPass(here, 1);
  expect(await recorded(here)).toEqual(["kept", "old", "used"]);
  await daysPass(here, 3);
  expect(await recorded(here)).toEqual(["kept", "used"]);
  expect(new Set(here.host.volumes.keys())).toEqual(await keysOf(here));
  // Who names it again has a new one.
  await deleted(here, await running(here, withVolume("old")));
  expect(await recorded(here)).toEqual(["kept", "old", "used"]);
  expect(new Set(here.host.volumes.keys())).toEqual(await keysOf(here));
  await deleted(here, up);
  await deleted(here, stopped);
});

it("volumes are kept for ever unless the operator says for how long", { timeout: 60_000 }, async () => {
  const here = await begin();
  await deleted(here, await running(here, withVolume("old")));
  await daysPass(here, 10_000);
  expect(await recorded(here)).toEqual(["old"]);
  expect(new Set(here.host.volumes.keys())).toEqual(await keysOf(here));
});

it("the control plane keeps what a sandbox names, whatever a node takes for unused", async () => {
  const here = await begin();
  const id = await running(here, withVolume("kept", { persistence: "persistent" }));
  await here.plane.act(id, "stop", ROOT);
  const [node] = await here.plane.records.rows("SELECT node_id FROM sandbox_volumes");
  const [kept = ""] = await keysOf(here);
  const asked = await here.plane.report(String(node?.["node_id"]), { unusedVolumes: [kept, "of-nobody"] });
  expect(asked).toMatchObject({ goneVolumes: ["of-nobody"] });
  expect(await recorded(here)).toEqual(["kept"]);
  // Another node has no say about it.
  expect(await here.plane.report("node-2", { unusedVolumes: [kept] })).toMatchObject({ goneVolumes: [kept] });
  expect(await recorded(here)).toEqual(["kept"]);
});
