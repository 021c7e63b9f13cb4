import { randomBytes } from "node:crypto";
import { afterEach, beforeEach, expect, it } from "vitest";
import { openMemoryCatalog } from "../../../catalog/sqlite/memory.test-kit.ts";
import { ManualClock } from "../../../core/clock.ts";
import { systemRandom } from "../../../core/random.ts";
import { keyringOf } from "../../../auth/sealing/keyring.ts";
import { orderOf, toWireDesiredState, wireDesiredState } from "../../contract/control-wire.ts";
import { ANN, controlPlaneOn, LeasedBox, type ControlPlane } from "./scheduler.test-kit.ts";
import { resealEnvs } from "./sealed-env.ts";

const NODE = "node-1";
const ENV = { TOKEN: "s3cret-value", ÜMLAUT: "ä\n" };
const KEY = randomBytes(32).toString("base64");
const clock = new ManualClock();

let opened: ReturnType<typeof openMemoryCatalog>;
const planes: ControlPlane[] = [];
/** A process of the control plane with these keys; none: without. */
function planeWith(...keys: string[]): ControlPlane {
  const [current, ...former] = keys;
  const ring = current === undefined ? {} : { keyring: keyringOf(current, former) };
  const plane = controlPlaneOn({ catalog: opened.catalog, clock }, { seed: planes.length + 1, ...ring });
  planes.push(plane);
  return plane;
}
const stored = async (id: string) =>
  JSON.stringify(await opened.catalog.records.rows("SELECT * FROM sandboxes WHERE id = ?", [id]));
const shownBy = async (plane: ControlPlane, id: string) => plane.sandboxes.env(await plane.sandboxes.get(id, ANN));

beforeEach(() => void (opened = openMemoryCatalog(clock)));
afterEach(async () => {
  for (const plane of planes.splice(0)) plane.fabric.close();
  await opened.catalog.close();
});

it("variables are sealed in the catalog, and opened for the maker and the node", async () => {
  const plane = planeWith(KEY);
  await plane.report(NODE);
  const { id } = await plane.create({ envVars: ENV, name: "box" });
  expect(await stored(id)).not.toMatch(/s3cret|TOKEN/);
  expect(await stored(id)).toContain("sealedKey");
  expect(await shownBy(plane, id)).toEqual({ envVars: ENV });
  const [hold] = await plane.claim(NODE);
  if (hold === undefined) throw new Error("no node got it");
  const box = new LeasedBox(plane, hold);
  for (const order of [await box.desiredState(), await box.say("creating"), await box.record()]) {
    expect(order.spec.envVars).toEqual(ENV);
    expect(order).not.toHaveProperty("closedEnv");
    expect(JSON.stringify(order)).not.toContain("sealed");
  }
  expect(await stored(id)).not.toContain("s3cret");
});

it("without the key neither the maker nor the node is told others", async () => {
  const { id } = await planeWith(KEY).create({ envVars: ENV });
  for (const plane of [planeWith(), planeWith(randomBytes(32).toString("base64"))]) {
    expect(await shownBy(plane, id)).toEqual({ closed: expect.stringMatching(/sealed with the key [\da-f]{16}/) });
  }
  const plane = planeWith();
  await plane.report(NODE);
  await plane.sandboxes.place();
  const [hold] = await plane.claim(NODE);
  if (hold === undefined) throw new Error("no node got it");
  const order = await new LeasedBox(plane, hold).desiredState();
  expect(order.spec.envVars).toEqual({});
  expect(order.closedEnv).toContain("sealed with the key");
  expect(orderOf(wireDesiredState.parse(JSON.parse(JSON.stringify(toWireDesiredState(order)))))).toMatchObject({
    closedEnv: order.closedEnv,
    spec: { envVars: {} },
  });
});

it("variables of one sandbox do not open as those of another", async () => {
  const plane = planeWith(KEY);
  const [one, other] = [await plane.create({ envVars: ENV }), await plane.create({ envVars: { A: "b" } })];
  const move = "UPDATE sandboxes SET spec = (SELECT spec FROM sandboxes WHERE id = ?) WHERE id = ?";
  await opened.catalog.records.transact([{ sql: move, values: [one.id, other.id] }]);
  expect(await shownBy(plane, other.id)).toEqual({ closed: "it is damaged, or was sealed for another record" });
});

it("they move to a new key, and those that were stored without one are sealed", async () => {
  const clear = await planeWith().create({ envVars: ENV });
  expect(await shownBy(planeWith(), clear.id)).toEqual({ envVars: ENV });
  const old = await planeWith(KEY).create({ envVars: ENV });
  const none = await planeWith(KEY).create();
  const lost = await planeWith(randomBytes(32).toString("base64")).create({ envVars: ENV });
  const next = randomBytes(32).toString("base64");
  const { records } = opened.catalog;
  const sealing = { keyring: keyringOf(next, [KEY]), random: systemRandom };
  expect(await resealEnvs(records, sealing)).toEqual({ rotated: 2, failed: [lost.id] });
  expect(await resealEnvs(records, sealing)).toEqual({ rotated: 0, failed: [lost.id] });
  const plane = planeWith(next);
  for (const { id } of [clear, old]) {
    expect(await stored(id)).not.toContain("s3cret");
    expect(await shownBy(plane, id)).toEqual({ envVars: ENV });
  }
  expect(await shownBy(plane, none.id)).toEqual({ envVars: {} });
});
