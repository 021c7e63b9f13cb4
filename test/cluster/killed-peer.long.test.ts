import { afterEach, expect, test } from "vitest";
import { ingest } from "../support/client.ts";
import { keepAsking, metricsOf, portOf, start, startEdge, stopAll, usablePeers } from "./edge.test-kit.ts";
import { eventually, freePort } from "../../src/core/waiting.test-kit.ts";

afterEach(stopAll);

test("a peer that is killed with -9 fails no request that has an idempotency key, and is back when it is", async () => {
  const peers = [await start({}, await freePort()), await start({}, await freePort())];
  const edge = await startEdge(peers.map(({ url }) => url));
  for (const peer of peers) await ingest(peer.url, "t", '{"body":"first"}\n');
  let n = 0;
  const clients = keepAsking(edge, 4, () => ({ "X-Idempotency-Key": `key-${n++}` }));
  await eventually(() => clients.state.acknowledged > 20);
  const [victim] = peers;
  if (victim === undefined) throw new Error("no peer");
  await victim.stop("SIGKILL");
  const before = clients.state.acknowledged;
  await eventually(async () => (await usablePeers(edge)) === 2 && clients.state.acknowledged > before + 20);
  expect(await metricsOf(edge)).toMatch(/engine_edge_ejections_total\{[^}]*\} 1/);
  await start({}, portOf(victim), victim.home);
  await eventually(async () => (await usablePeers(edge)) === 4);
  await clients.stop();
  // A query has no key: those that the peer was answering just then are lost, and said to be.
  expect(clients.state.failures.filter((text) => !text.startsWith("query: "))).toEqual([]);
  expect(clients.state.failures.length).toBeLessThanOrEqual(4);
});
