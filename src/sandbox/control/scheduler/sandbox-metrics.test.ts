import { PassThrough } from "node:stream";
import { SANDBOX_METRICS } from "../../contract/metrics.ts";
import { afterEach, beforeEach, expect, it } from "vitest";
import { openMemoryCatalog } from "../../../catalog/sqlite/memory.test-kit.ts";
import { ManualClock } from "../../../core/clock.ts";
import { EngineError } from "../../../core/errors.ts";
import { silentLog } from "../../../core/log.ts";
import { NodeDirectory } from "../link/node-directory.ts";
import { controlPlaneOn, LeasedBox, LEASE_MS, type ControlPlane } from "./scheduler.test-kit.ts";

const NODE = "node-1";
const clock = new ManualClock();
let opened: ReturnType<typeof openMemoryCatalog>;
let plane: ControlPlane;

beforeEach(() => {
  opened = openMemoryCatalog(clock);
  plane = controlPlaneOn({ catalog: opened.catalog, clock }, { limits: { maxPerTenant: 4 } });
});
afterEach(async () => {
  plane.fabric.close();
  await opened.catalog.close();
});

/** Samples of a metric that are not 0, by their labels' values. */
async function samplesOf(name: string): Promise<Record<string, number>> {
  const text = await plane.metrics.registry.getSingleMetricAsString(name);
  const rows = text.split("\n").filter((row) => row !== "" && !row.startsWith("#"));
  return Object.fromEntries(
    rows.flatMap((row) => {
      const [sample = "", value = "0"] = row.split(" ");
      const labels = [...sample.matchAll(/="([^"]*)"/g)].map(([, label]) => label).join(" ");
      return value === "0" ? [] : [[labels, Number(value)]];
    }),
  );
}

async function leased(): Promise<LeasedBox> {
  const [hold] = await plane.claim(NODE, 1);
  if (hold === undefined) throw new Error("no node got it");
  const box = new LeasedBox(plane, hold);
  await box.desiredState();
  return box;
}

it("creations are counted by outcome, and failures by reason", async () => {
  await plane.report(NODE);
  for (let i = 0; i < 4; i++) await plane.create(i === 0 ? { name: "one" } : {});
  await expect(plane.create({ image: "none" })).rejects.toMatchObject({ code: "config_validation_error" });
  await expect(plane.create()).rejects.toMatchObject({ code: "rate_limited" });
  expect(await samplesOf("engine_sandbox_creates_total")).toEqual({
    ok: 4,
    config_validation_error: 1,
    rate_limited: 1,
  });
  const [first, second, lost] = [await leased(), await leased(), await leased()];
  await first.say("creating");
  await first.say("failed", "RunScript:a: it ended with exit code 1");
  await second.say("creating");
  clock.advance(2_500);
  await second.say("running");
  expect(await SANDBOX_METRICS.of(plane.metrics).sandboxMakingDuration.get()).toMatchObject({
    values: expect.arrayContaining([
      expect.objectContaining({ metricName: "engine_sandbox_making_duration_seconds_sum", value: 2.5 }),
    ]) as unknown,
  });
  await second.say("failed", "its machine ended");
  await lost.say("creating");
  expect(await samplesOf("engine_sandbox_failures_total")).toEqual({ making: 1, ended: 1 });
  clock.advance(LEASE_MS + 1);
  await plane.fabric.sweep();
  await plane.sandboxes.settle();
  expect(await samplesOf("engine_sandbox_failures_total")).toMatchObject({ making: 1, ended: 1, node_lost: 1 });
  clock.advance(60_000);
  await plane.sandboxes.settle();
  expect(await samplesOf("engine_sandbox_failures_total")).toEqual({ making: 1, ended: 1, node_lost: 1, no_room: 1 });
});

it("all sandboxes and nodes are counted, by the process that is asked to", async () => {
  await plane.report(NODE);
  await plane.report("node-2");
  await plane.create();
  await plane.create();
  await (await leased()).say("creating");
  expect(await samplesOf("engine_sandboxes_existing")).toEqual({});
  await plane.sandboxes.show();
  expect(await samplesOf("engine_sandboxes_existing")).toEqual({ pending: 1, creating: 1 });
  expect(await samplesOf("engine_sandbox_nodes")).toEqual({ live: 2 });
  clock.advance(16_000);
  await plane.report("node-2");
  await plane.sandboxes.show();
  expect(await samplesOf("engine_sandbox_nodes")).toEqual({ live: 1, silent: 1 });
  plane.sandboxes.hide();
  expect(await samplesOf("engine_sandboxes_existing")).toEqual({});
  expect(await samplesOf("engine_sandbox_nodes")).toEqual({});
});

it("calls of nodes are counted by outcome, and their answers while they are passed on", async () => {
  const directory = new NodeDirectory({ clock, log: silentLog, metrics: plane.metrics });
  const bodies: PassThrough[] = [];
  directory.register(NODE, async ({ method }) => {
    if (method === "stats") throw new EngineError("sandbox_invalid_state", "it is stopped");
    const body = new PassThrough();
    bodies.push(body);
    return { result: {}, body };
  });
  const call = (method: "exec" | "shell" | "stats") =>
    directory.call(NODE, { method, sandboxId: "s", params: {}, signal: new AbortController().signal });
  const [exec, shell] = [await call("exec"), await call("shell")];
  await call("exec");
  await expect(call("stats")).rejects.toThrow("it is stopped");
  expect(await samplesOf("engine_sandbox_streams_open")).toEqual({ exec: 2, shell: 1 });
  bodies[0]?.end("over");
  exec.body?.resume();
  shell.body?.destroy();
  await expect.poll(() => samplesOf("engine_sandbox_streams_open")).toEqual({ exec: 1 });
  expect(await samplesOf("engine_sandbox_calls_total")).toEqual({
    "exec ok": 2,
    "shell ok": 1,
    "stats sandbox_invalid_state": 1,
  });
});
