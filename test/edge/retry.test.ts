import { afterEach, describe, expect, test } from "vitest";
import { DRAINING_HEADER } from "../../src/io/http/client/draining.ts";
import { uwsProblem } from "../../src/io/http/http.test-kit.ts";
import {
  ask,
  metric,
  MIB,
  QUIET,
  startEdge,
  startPeer,
  startRawPeer,
  stopAll,
  type TestEdge,
} from "./edge.test-kit.ts";

afterEach(stopAll);

const DRIVERS = uwsProblem === undefined ? (["node", "uws"] as const) : (["node"] as const);
const NOBODY = ["http://127.0.0.1:1", "http://127.0.0.2:1", "http://127.0.0.3:1"];
const KEY = { "x-idempotency-key": "k" };

const retriesAfter = (edge: TestEdge, after: string) => metric(edge.metrics, "engine_edge_retries_total", { after });
const codeOf = (answer: { body: Buffer }) =>
  (JSON.parse(answer.body.toString()) as { error: { code: string; message: string } }).error;

/** Takes a request's head and the beginning of its body, and resets the connection. */
const startResetting = () =>
  startRawPeer((message) => void message.once("data", () => message.socket.resetAndDestroy()));
/** Refuses everything because it is about to stop, without reading bodies. */
const startDraining = () =>
  startRawPeer((_message, response) => void response.writeHead(503, { [DRAINING_HEADER]: "true" }).end("draining"));

describe.each(DRIVERS)("an edge on %s", (driver) => {
  test("goes on to another peer when there is no connection, without losing a byte of the body", async () => {
    const peer = await startPeer();
    const edge = await startEdge({ driver, ingest: [...NOBODY, peer.url], times: QUIET });
    const body = Buffer.alloc(3 * MIB, "y");
    for (let i = 0; i < 12; i++) expect((await ask(`${edge.url}/v1/ingest`, { body })).status).toBe(200);
    expect(peer.seen.every((one) => one.body.equals(body))).toBe(true);
    // Each that cannot be reached is left alone after two failures.
    const unreachable = await metric(edge.metrics, "engine_edge_requests_total", { outcome: "unreachable" });
    expect(unreachable).toBe(await retriesAfter(edge, "unreachable"));
    expect(unreachable).toBeGreaterThan(0);
    expect(unreachable).toBeLessThanOrEqual(2 * NOBODY.length);
  });

  test("says 503 with Retry-After when no peer can be reached", async () => {
    const edge = await startEdge({ driver, query: NOBODY, times: QUIET });
    for (let i = 0; i < 4; i++) {
      const answer = await ask(`${edge.url}/v1/query`, { body: "q" });
      expect([answer.status, codeOf(answer).code, answer.headers["retry-after"]]).toEqual([503, "unavailable", "1"]);
    }
    expect(await metric(edge.metrics, "engine_edge_ejections_total")).toBe(3);
    expect(await metric(edge.metrics, "engine_edge_peer_usable")).toBe(0);
    expect(await metric(edge.metrics, "engine_edge_no_peer_total")).toBe(4);
  });

  test("does not send a request again when the connection broke, and says that the outcome is unknown", async () => {
    const [broken, whole] = [await startResetting(), await startPeer()];
    const edge = await startEdge({ driver, ingest: [broken.url], times: QUIET });
    const both = await startEdge({ driver, ingest: [broken.url, whole.url], times: QUIET });
    const answer = await ask(`${edge.url}/v1/ingest`, { body: "{}" });
    expect([answer.status, codeOf(answer).code]).toEqual([503, "unavailable"]);
    expect(codeOf(answer).message).toContain("is not known");
    expect(answer.headers["retry-after"]).toBeUndefined();
    const statuses: number[] = [];
    for (let i = 0; i < 30; i++) statuses.push((await ask(`${both.url}/v1/ingest`, { body: "{}" })).status);
    expect(statuses.filter((status) => status === 503)).toHaveLength(broken.begun - 1);
    expect(statuses.filter((status) => status === 200)).toHaveLength(whole.begun);
    expect(broken.begun).toBeGreaterThan(1);
    expect(await retriesAfter(both, "broken")).toBe(0);
  });

  test("sends a request with an idempotency key again when the connection broke, with the same body", async () => {
    const [broken, whole] = [await startResetting(), await startPeer()];
    const edge = await startEdge({ driver, ingest: [broken.url, whole.url], times: QUIET });
    const body = Buffer.alloc(700_000, "z");
    for (let i = 0; i < 30; i++) {
      expect((await ask(`${edge.url}/v1/ingest`, { headers: KEY, body })).status).toBe(200);
    }
    expect(whole.seen.every((one) => one.body.equals(body))).toBe(true);
    expect(whole.seen).toHaveLength(30);
    expect(broken.begun).toBeGreaterThan(0);
    expect(await retriesAfter(edge, "broken")).toBe(broken.begun);
  });

  test("does not keep a large body, so it is not sent again even with a key", async () => {
    // Reads all of the body before it resets the connection.
    const broken = await startRawPeer((message) => {
      message.resume();
      message.once("end", () => message.socket.resetAndDestroy());
    });
    const whole = await startPeer();
    const edge = await startEdge({ driver, ingest: [broken.url, whole.url], times: QUIET });
    const body = Buffer.alloc(2 * MIB, "z");
    const statuses = new Set<number>();
    for (let i = 0; i < 30; i++) statuses.add((await ask(`${edge.url}/v1/ingest`, { headers: KEY, body })).status);
    expect(statuses).toEqual(new Set([200, 503]));
    expect(await retriesAfter(edge, "broken")).toBe(0);
  });

  test("goes on to another peer when one says that it is draining, and leaves that one alone", async () => {
    const [draining, up] = [await startDraining(), await startPeer()];
    const edge = await startEdge({ driver, query: [draining.url, up.url], times: QUIET });
    for (let i = 0; i < 30; i++) {
      expect((await ask(`${edge.url}/v1/query`, { body: `q${i}` })).body.toString()).toBe("ok");
    }
    expect(up.seen.map((one) => one.body.toString())).toEqual(Array.from({ length: 30 }, (_, i) => `q${i}`));
    expect(draining.begun).toBe(1);
    expect(await retriesAfter(edge, "draining")).toBe(1);
  });

  test("passes on what a draining peer says when there is no other", async () => {
    const draining = await startDraining();
    const edge = await startEdge({ driver, query: [draining.url], times: QUIET });
    const answer = await ask(`${edge.url}/v1/query`, { body: "q" });
    expect([answer.status, answer.body.toString()]).toEqual([503, "draining"]);
    // From now on it is known.
    expect(codeOf(await ask(`${edge.url}/v1/query`, { body: "q" })).code).toBe("unavailable");
    expect(draining.begun).toBe(1);
  });
});
