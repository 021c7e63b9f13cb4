import { afterEach, expect, test } from "vitest";
import { ingest } from "../support/client.ts";
import { countRows, keepAsking, portOf, start, startEdge, stopAll, usablePeers } from "./edge.test-kit.ts";
import { eventually, freePort } from "../../src/core/waiting.test-kit.ts";

afterEach(stopAll);

test("a rolling restart of two peers fails no request", async () => {
  const env = { ENGINE_DRAIN_NOTICE_SECS: "3" };
  const peers = [await start(env, await freePort()), await start(env, await freePort())];
  const edge = await startEdge(peers.map(({ url }) => url));
  for (const peer of peers) await ingest(peer.url, "t", '{"body":"first"}\n');
  const clients = keepAsking(edge, 4, () => ({}));
  await eventually(() => clients.state.acknowledged > 20);
  for (const [i, peer] of peers.entries()) {
    expect(await peer.stop("SIGTERM")).toEqual({ code: 0, signal: null });
    const before = clients.state.acknowledged;
    peers[i] = await start(env, portOf(peer), peer.home);
    await eventually(async () => (await usablePeers(edge)) === 2 * 2);
    expect(clients.state.acknowledged).toBeGreaterThan(before);
  }
  await clients.stop();
  expect(clients.state.failures).toEqual([]);
  // Nothing was stored twice or lost on the way.
  const counts = await Promise.all(peers.map(countRows));
  expect(counts.reduce((sum, n) => sum + n, 0)).toBe(clients.state.acknowledged + peers.length);
  expect(counts.every((n) => n > 1)).toBe(true);
});
