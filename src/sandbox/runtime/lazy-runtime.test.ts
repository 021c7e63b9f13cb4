import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, afterEach, expect, it } from "vitest";
import { ManualClock } from "../../core/clock.ts";
import { specOf } from "../contract/spec.test-kit.ts";
import { FakeHost, FakeRuntime } from "./fake-runtime.test-kit.ts";
import { LazyRuntime } from "./lazy-runtime.ts";
import { RuntimeError, type MachineSpec } from "./runtime.ts";

const ID = "01900000-0000-7000-8000-000000000001";

let home: string;
let opened: number;
let problem: RuntimeError | undefined;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "engine-lazy-"));
  opened = 0;
  problem = undefined;
});
afterEach(() => rmSync(home, { recursive: true }));

function prepare(): Promise<LazyRuntime> {
  const host = new FakeHost(new ManualClock());
  const open = async () => {
    opened++;
    if (problem !== undefined) throw problem;
    return new FakeRuntime(host);
  };
  return LazyRuntime.prepare({ name: "bubblewrap", home, open });
}

function machineSpec(): MachineSpec {
  const { limits, network } = specOf();
  const more = { hostname: "h", env: {}, keepsDisk: false, leaseMs: 1_000, deadlineMs: undefined };
  return { id: ID, image: undefined, limits, network, volumes: [], ...more };
}

it("touches nothing before the first machine", async () => {
  const runtime = await prepare();
  expect([await runtime.list(), await runtime.adopt(ID), await runtime.openStopped(ID)]).toEqual([
    [],
    undefined,
    undefined,
  ]);
  await runtime.remove(ID);
  runtime.warm();
  expect(runtime.images()).toEqual(["host"]);
  await runtime.close();
  expect(opened).toBe(0);
  expect(readdirSync(home)).toEqual([]);
});

it("opens once, for machines that are made and those that are there", async () => {
  mkdirSync(join(home, "images", "debian"), { recursive: true });
  mkdirSync(join(home, "machines", ID), { recursive: true });
  const runtime = await prepare();
  expect(runtime.images()).toEqual(["debian", "host"]);
  expect(await runtime.adopt(ID)).toBeUndefined();
  expect((await runtime.create(machineSpec())).id).toBe(ID);
  expect([await runtime.list(), runtime.images(), runtime.abilities.cpu]).toEqual([[ID], ["host"], true]);
  expect(opened).toBe(1);
  await runtime.close();
});

it("tries again what could not be opened", async () => {
  const runtime = await prepare();
  problem = new RuntimeError("unable", "no cgroups");
  await expect(runtime.create(machineSpec())).rejects.toThrow("no cgroups");
  problem = undefined;
  expect((await runtime.create(machineSpec())).id).toBe(ID);
  expect(opened).toBe(2);
});
