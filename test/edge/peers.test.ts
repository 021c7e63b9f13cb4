import { afterEach, expect, test } from "vitest";
import {
  ask,
  metric,
  QUICK,
  QUIET,
  startEdge,
  startPeer,
  stopAll,
  type TestEdge,
  type TestPeer,
} from "./edge.test-kit.ts";
import { delay, eventually } from "../../src/core/waiting.test-kit.ts";

afterEach(stopAll);

const send = (edge: TestEdge) => ask(`${edge.url}/v1/query`, { body: "q" });
const usable = (edge: TestEdge) => metric(edge.metrics, "engine_edge_peer_usable");

/** A peer that answers when it is told to. */
async function startHolding(): Promise<{ peer: TestPeer; release: () => void }> {
  const waiting: (() => void)[] = [];
  const peer = await startPeer((_seen, response) => void waiting.push(() => response.end("held")));
  return { peer, release: () => waiting.splice(0).forEach((answer) => answer()) };
}

test("a request goes to the peer with the fewest in flight", async () => {
  const [a, b, c] = [await startHolding(), await startHolding(), await startHolding()];
  const held = [a, b, c];
  const edge = await startEdge({ query: held.map(({ peer }) => peer.url), times: QUIET });
  const answers = [];
  for (let i = 1; i <= 9; i++) {
    answers.push(send(edge));
    await eventually(() => held.reduce((sum, { peer }) => sum + peer.seen.length, 0) === i);
  }
  expect(held.map(({ peer }) => peer.seen.length)).toEqual([3, 3, 3]);
  b.release();
  await eventually(async () => (await metric(edge.metrics, "engine_edge_in_flight")) === 6);
  for (let i = 10; i <= 12; i++) {
    answers.push(send(edge));
    await eventually(() => held.reduce((sum, { peer }) => sum + peer.seen.length, 0) === i);
  }
  expect(held.map(({ peer }) => peer.seen.length)).toEqual([3, 6, 3]);
  for (const { release } of held) release();
  expect((await Promise.all(answers)).every(({ status }) => status === 200)).toBe(true);
  expect(await metric(edge.metrics, "engine_edge_in_flight")).toBe(0);
});

test("a peer that cannot be reached is ejected, asked again after growing times, and gets requests when it is back", async () => {
  const [a, b] = [await startPeer(), await startPeer()];
  const edge = await startEdge({ query: [a.url, b.url], times: QUICK });
  await eventually(() => a.checks > 0 && b.checks > 0);
  await a.kill();
  for (let i = 0; i < 20; i++) expect((await send(edge)).status).toBe(200);
  await eventually(async () => (await usable(edge)) === 1);
  expect(await metric(edge.metrics, "engine_edge_ejections_total")).toBe(1);
  // With nobody there the times between two looks grow to at most maxEjectMs; then it is found within one of them.
  await delay(1_000);
  expect(await metric(edge.metrics, "engine_edge_ejections_total")).toBe(1);
  const before = a.begun;
  await a.revive();
  await eventually(async () => (await usable(edge)) === 2);
  await eventually(async () => {
    await send(edge);
    return a.begun > before;
  });
});

test("an unhealthy peer is ejected without any request having failed, and is asked ever more rarely", async () => {
  const [a, b] = [await startPeer(), await startPeer()];
  const edge = await startEdge({ query: [a.url, b.url], times: QUICK });
  a.health = 500;
  await eventually(async () => (await usable(edge)) === 1);
  const { begun, checks } = a;
  const healthyChecks = b.checks;
  for (let i = 0; i < 10; i++) expect((await send(edge)).status).toBe(200);
  expect(a.begun).toBe(begun);
  await delay(900);
  // 40, 80, 160, 320, 320 ms against 30 ms.
  expect(a.checks - checks).toBeLessThanOrEqual(7);
  expect(b.checks - healthyChecks).toBeGreaterThan(2 * (a.checks - checks));
  a.health = 200;
  await eventually(async () => (await usable(edge)) === 2);
});

test("a peer that does not answer /health in time is unhealthy", async () => {
  const [a, b] = [await startPeer(), await startPeer()];
  const edge = await startEdge({ query: [a.url, b.url], times: { ...QUICK, healthTimeoutMs: 50 } });
  a.health = 0;
  await eventually(async () => (await metric(edge.metrics, "engine_edge_ejections_total")) === 1);
  expect(await metric(edge.metrics, "engine_edge_peer_usable", { peer: a.url })).toBe(0);
  expect(await metric(edge.metrics, "engine_edge_peer_usable", { peer: b.url })).toBe(1);
});

test("a draining peer finishes what it has and gets nothing new", async () => {
  const { peer: a, release } = await startHolding();
  const b = await startPeer();
  const edge = await startEdge({ query: [a.url, b.url], times: QUICK });
  const first = [];
  while (a.seen.length === 0) {
    first.push(send(edge));
    await delay(10);
  }
  a.health = 503;
  await eventually(async () => (await usable(edge)) === 1);
  const begun = a.begun;
  for (let i = 0; i < 10; i++) expect((await send(edge)).body.toString()).toBe("ok");
  expect(a.begun).toBe(begun);
  release();
  expect((await Promise.all(first)).map(({ body }) => body.toString())).toContain("held");
  expect(await metric(edge.metrics, "engine_edge_ejections_total")).toBe(0);
});

// Other systems have no 127.0.0.2 unless somebody adds it.
test.runIf(process.platform === "linux")(
  "names are looked up again: every address is a peer, a new one gets requests, one that is gone finishes",
  async () => {
    const first = await startHolding();
    const { port } = first.peer;
    // The first peer is on 127.0.0.1; the others on the same port of other addresses.
    const others = [await startPeer(undefined, "127.0.0.2", port), await startPeer(undefined, "127.0.0.3", port)];
    let addresses: readonly string[] | undefined = ["127.0.0.1"];
    const asked = new Set<string>();
    const lookup = async (name: string): Promise<readonly string[]> => {
      asked.add(name);
      if (addresses === undefined) throw new Error("the name server is away");
      return addresses;
    };
    const edge = await startEdge({ query: [`http://peers.test:${port}`], times: QUICK, lookup });
    expect(await usable(edge)).toBe(1);
    const held = send(edge);
    await eventually(() => first.peer.seen.length === 1);
    expect(first.peer.seen[0]?.headers["host"]).toBe(`peers.test:${port}`);

    addresses = ["127.0.0.2", "127.0.0.3"];
    const text = async () => (await edge.metrics.registry.metrics()).match(/peer_usable\{.*/g)?.join("\n") ?? "";
    await eventually(async () => (await text()).includes("127.0.0.3"));
    await eventually(async () => !(await text()).includes("127.0.0.1") || first.peer.begun === 1);
    for (let i = 0; i < 20; i++) expect((await send(edge)).body.toString()).toBe("ok");
    expect(first.peer.begun).toBe(1);
    expect(others.every((peer) => peer.begun > 0)).toBe(true);
    first.release();
    expect((await held).body.toString()).toBe("held");
    await eventually(async () => !(await text()).includes("127.0.0.1"));

    // A name that cannot be looked up keeps its last addresses.
    addresses = undefined;
    await delay(150);
    expect((await send(edge)).status).toBe(200);
    addresses = [];
    await delay(100);
    expect((await send(edge)).status).toBe(200);
    expect([...asked]).toEqual(["peers.test"]);
  },
);

test("an edge whose peers have no address yet starts, and finds them later", async () => {
  const peer = await startPeer();
  let known = false;
  const lookup = () => (known ? Promise.resolve(["127.0.0.1"]) : Promise.reject(new Error("not yet")));
  const edge = await startEdge({ query: [`http://later.test:${peer.port}`], times: QUICK, lookup });
  expect((await send(edge)).status).toBe(503);
  known = true;
  await eventually(async () => (await send(edge)).status === 200);
});

test("a connection is not used for ever", async () => {
  const ports = new Set<number | undefined>();
  const peer = await startPeer((_seen, response) => {
    ports.add(response.socket?.remotePort);
    response.end("ok");
  });
  const edge = await startEdge({ query: [peer.url], times: { ...QUIET, connectionLifetimeMs: 100 } });
  await send(edge);
  await send(edge);
  expect(ports.size).toBe(1);
  await delay(150);
  await send(edge);
  expect(ports.size).toBe(2);
});

test("a peer below a path gets its requests and its health there", async () => {
  const peer = await startPeer();
  const edge = await startEdge({ query: [`${peer.url}/below`], times: QUIET });
  await send(edge);
  expect(peer.seen[0]?.url).toBe("/below/v1/query");
});
