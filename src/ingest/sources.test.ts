import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { SourceStep } from "../catalog/input-positions.ts";
import { PositionMoved } from "../catalog/refusals.ts";
import type { IngestService } from "./ingest.ts";
import { seal } from "./seal-thread.ts";
import { send, StagedWorld } from "./staged/staged-world.test-kit.ts";

/** Requests of inputs that can be read again: `IngestRequest.source`. */

let world: StagedWorld;

beforeEach(async () => {
  world = await StagedWorld.open();
});

afterEach(async () => {
  await world.catalog.verify();
  await world.close();
});

const step = (from: string | undefined, to: string): SourceStep => ({
  name: "input",
  to,
  ...(from !== undefined && { from }),
});
const sendStep = (to: IngestService, body: string, source: SourceStep) => send(to, body, { source });

describe.each(["sync", "staged"] as const)("a request with a source, in %s mode", (mode) => {
  test("is committed before it is acknowledged, once, and hears where the input is otherwise", async () => {
    const node = world[mode]();
    expect(await sendStep(node, '{"body":"a"}', step(undefined, "1"))).toMatchObject({ snapshotId: 1, rows: 1 });
    expect(await world.values("body")).toEqual(["a"]);
    const again = sendStep(node, '{"body":"again"}', step(undefined, "1"));
    await expect(again).rejects.toMatchObject({ name: "PositionMoved", source: "input", position: "1" });
    await expect(again).rejects.toBeInstanceOf(PositionMoved);
    await sendStep(node, '{"body":"b"}', step("1", "2"));
    expect(await world.values("body")).toEqual(["a", "b"]);
    // What the catalog sent back left no object behind.
    expect(await world.keys()).toHaveLength(2);
  });

  test("shares a flush with those before and after it, in order, and fails with the one it rests on", async () => {
    const [sealing, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let seals = 0;
    const node = world[mode]({
      seal: async (task) => {
        seals++;
        if (seals > 1) {
          sealing.resolve();
          await released.promise;
        }
        return await seal(task);
      },
    });
    await send(node, '{"body":"first"}', { source: { name: "another", to: "0" } });
    const before = send(node, '{"body":"before"}', { source: { name: "another", from: "0", to: "1" } });
    await sealing.promise;
    const sent = Promise.allSettled([
      sendStep(node, '{"body":"0"}', step(undefined, "0")),
      sendStep(node, '{"body":"1"}', step("0", "1")),
      sendStep(node, '{"body":"2"}', step("1", "2")),
      sendStep(node, '{"body":', step("2", "3")),
      sendStep(node, '{"body":"4"}', step("3", "4")),
      sendStep(node, '{"body":"stale"}', step("0", "1")),
    ]);
    await setImmediate();
    released.resolve();
    await before;
    const outcomes = await sent;
    expect(outcomes.map((one) => (one.status === "fulfilled" ? "stored" : one.reason.code))).toEqual([
      "stored",
      "stored",
      "stored",
      "bad_request_body",
      "conflict",
      "conflict",
    ]);
    expect(await world.values("body")).toEqual(["0", "1", "2", "before", "first"]);
    // The first, the one before, all of these, and once more those that are stored.
    expect(seals).toBe(4);
  });
});

test("a conflict of an input leaves requests of clients alone", async () => {
  const node = world.staged();
  await sendStep(node, '{"body":"first"}', step(undefined, "1"));
  const [client, input] = await Promise.allSettled([
    send(node, '{"body":"client"}'),
    sendStep(node, '{"body":"stale"}', step(undefined, "1")),
  ]);
  expect(client).toMatchObject({ status: "fulfilled", value: { staged: true } });
  expect(input).toMatchObject({ status: "rejected", reason: { position: "1" } });
});
