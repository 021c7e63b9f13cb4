import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { FlushCommit, FlushOutcome } from "../../catalog/catalog.ts";
import { InvariantViolation } from "../../catalog/invariants.ts";
import { ExtentPendingDeletion } from "../../catalog/refusals.ts";
import { ManualClock, systemClock } from "../../core/clock.ts";
import { EngineError } from "../../core/errors.ts";
import { createMetrics } from "../../core/metrics.ts";
import { listStaged } from "./listing.ts";
import { send, StagedWorld, withCalls } from "./staged-world.test-kit.ts";

let world: StagedWorld;
const never = new AbortController().signal;

beforeEach(async () => {
  world = await StagedWorld.open();
});

afterEach(async () => {
  // Whatever a test does, the catalog is sound, and every live extent has its object.
  await world.catalog.verify();
  await world.rows();
  await world.close();
});

const stagedKeys = () => world.keys("engine/_staged/");
const extentKeys = () => world.keys("engine/default/");

describe("what is damaged", () => {
  test("is set aside with its reason, blocks nothing and is told", async () => {
    const node = world.staged();
    await send(node, '{"body":"damaged"}');
    const [key = ""] = await stagedKeys();
    const bytes = await world.inner.get(key);
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
    await world.inner.put(key, bytes);
    await world.inner.put("engine/_staged/stray.txt", Buffer.from("stray"));
    await send(node, '{"body":"sound"}');
    const pending = await Array.fromAsync(listStaged(world.store, "engine"));
    expect(pending.map(({ state }) => state)).toEqual(["pending", "pending", "pending"]);
    const metrics = createMetrics();
    await world.commit({ metrics });
    expect(await world.values("body")).toEqual(["sound"]);
    expect(await stagedKeys()).toEqual([]);
    const [damaged, stray] = await Array.fromAsync(listStaged(world.store, "engine"));
    const id = key.split("/").at(-1) ?? "";
    expect(damaged).toMatchObject({ state: "damaged", node: "node-1", id, sizeBytes: bytes.length });
    expect(damaged?.reason).toContain("does not match");
    expect(Math.abs((damaged?.stagedAtMs ?? 0) - systemClock.nowMs())).toBeLessThan(60_000);
    expect(stray).toMatchObject({ state: "damaged", id: "stray.txt", reason: "its key is none of a staged object" });
    expect(Buffer.compare(await world.inner.get(damaged?.key ?? ""), bytes)).toBe(0);
    expect(await metrics.registry.metrics()).toMatch(/engine_staged_damaged_total 2\n[^]*damaged_objects 2\n/);
  });

  test("stays staged when it cannot be set aside, and blocks nothing", async () => {
    await world.inner.put("engine/_staged/stray.txt", Buffer.from("stray"));
    await send(world.staged(), '{"body":"x"}');
    world.store.script({ operation: "put", keyHolds: "_damaged", fault: { kind: "fail_before" } });
    await world.commit();
    expect(await world.values("body")).toEqual(["x"]);
    expect(await stagedKeys()).toEqual(["engine/_staged/stray.txt"]);
    await world.commit();
    expect(await stagedKeys()).toEqual([]);
  });
});

describe("an object that makes the commit fail", () => {
  /** A catalog that fails whenever the object is among what is committed. */
  const failingFor = (id: () => string, error: () => Error, after = false) =>
    withCalls(world.catalog, {
      commit: async (flushes: readonly FlushCommit[], lease): Promise<FlushOutcome[]> => {
        const hit = flushes.some(({ staged }) => staged === id());
        if (hit && !after) throw error();
        const outcomes = await world.catalog.commit(flushes, lease);
        if (hit) throw error();
        return outcomes;
      },
    });

  async function stageThree(): Promise<string> {
    const node = world.staged();
    for (const name of ["a", "b", "c"]) await send(node, `{"body":"${name}"}`);
    return (await stagedKeys())[1]?.split("/").at(-1) ?? "";
  }

  test.each([
    ["refused", () => new InvariantViolation("extentIsWellFormed", "no")],
    ["refused as a request", () => new EngineError("conflict", "no")],
    ["pending_deletion", () => new ExtentPendingDeletion(["x"])],
    ["failed, nobody knows how", () => new Error("connection reset")],
  ])("%s: the others are committed; it stays, is passed over for a while, and is committed later", async (_, error) => {
    const id = await stageThree();
    const clock = new ManualClock();
    const committer = world.committer({ catalog: failingFor(() => id, error), clock });
    for (const _ of [1, 2]) await committer.commitRound(undefined, never);
    expect(await world.values("body")).toEqual(["a", "c"]);
    expect(await stagedKeys()).toHaveLength(1);
    await world.commit();
    expect(await world.values("body")).toEqual(["a", "b", "c"]);
    expect(await stagedKeys()).toEqual([]);
  });

  test("after it took effect: nothing is stored twice, and no live extent is deleted", async () => {
    const id = await stageThree();
    await world.commit({ catalog: failingFor(() => id, () => new Error("connection reset"), true) }); // oxfmt-ignore
    await world.commit();
    expect(await world.values("body")).toEqual(["a", "b", "c"]);
    expect(await stagedKeys()).toEqual([]);
  });

  test("a catalog that is away ends the round, and leaves no extents behind", async () => {
    await stageThree();
    const catalog = withCalls(world.catalog, { commit: () => Promise.reject(new EngineError("unavailable", "away")) });
    await expect(world.commit({ catalog })).rejects.toMatchObject({ code: "unavailable" });
    expect(await extentKeys()).toEqual([]);
    expect(await stagedKeys()).toHaveLength(3);
    await world.commit();
    expect(await world.values("body")).toEqual(["a", "b", "c"]);
  });

  test("one that cannot be read or written is passed over, and its turn comes", async () => {
    await stageThree();
    world.store.script(
      { operation: "get", fault: { kind: "fail_before" } },
      { operation: "put", fault: { kind: "fail_before" } },
    );
    const clock = new ManualClock();
    const metrics = createMetrics();
    const committer = world.committer({ clock, metrics });
    await committer.commitRound(undefined, never);
    expect(await world.rows()).toHaveLength(1);
    expect(await extentKeys()).toHaveLength(1);
    await committer.commitRound(undefined, never);
    expect(await world.rows()).toHaveLength(1);
    expect(await metrics.registry.metrics()).toMatch(/engine_staged_postponed_total 2\n/);
    clock.advance(1_000);
    await committer.commitRound(undefined, never);
    expect(await world.values("body")).toEqual(["a", "b", "c"]);
  });
});
