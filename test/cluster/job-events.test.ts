import { afterEach, expect, test } from "vitest";
import type { Engine } from "../support/engine.ts";
import { metricsOf, start, startEdge, stopAll } from "./edge.test-kit.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";

/** The events of a job, as they come through an edge. */

afterEach(stopAll);

async function post(engine: Engine, path: string, body?: unknown): Promise<Record<string, unknown>> {
  const sent =
    body === undefined ? {} : { headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const response = await fetch(engine.url + path, { method: "POST", ...sent });
  expect([200, 202]).toContain(response.status);
  return (await response.json()) as Record<string, unknown>;
}

async function watch(engine: Engine, jobId: string) {
  const leaving = new AbortController();
  const response = await fetch(`${engine.url}/v1/jobs/${jobId}/events`, { signal: leaving.signal });
  expect([response.status, response.headers.get("x-accel-buffering")]).toEqual([200, "no"]);
  const seen = { text: "", isOver: false, leave: () => leaving.abort() };
  const read = async () => {
    for await (const piece of response.body ?? []) seen.text += Buffer.from(piece).toString("utf8");
    seen.isOver = true;
  };
  // A stream that is left or torn is not over.
  read().catch(() => undefined);
  return seen;
}

test("events pass an edge as they come; who leaves frees the peer, and a peer that drains ends them", async () => {
  const engine = await start({});
  const edge = await startEdge([engine.url]);
  const jobId = String((await post(edge, "/v1/jobs", { kind: "x.task" }))["job_id"]);
  const [staying, leaving] = [await watch(edge, jobId), await watch(edge, jobId)];
  await eventually(() => [staying, leaving].every(({ text }) => text.includes('"status":"queued"')));
  const streams = async () => (await metricsOf(engine)).match(/^engine_http_requests_in_flight (\d+)$/m)?.[1];
  expect(await streams()).toBe("2");
  leaving.leave();
  await eventually(async () => (await streams()) === "1");
  await post(edge, `/v1/jobs/${jobId}/cancel`);
  await eventually(() => staying.isOver);
  expect(staying.text).toMatch(/event: state\ndata: \{"status":"cancelled".*\n\nevent: end\ndata: .*\n\n$/);

  const other = String((await post(edge, "/v1/jobs", { kind: "x.task" }))["job_id"]);
  const cut = await watch(edge, other);
  await eventually(() => cut.text.includes("event: state"));
  expect((await engine.stop()).code).toBe(0);
  await eventually(() => cut.isOver);
  expect(cut.text).not.toContain("event: end");
});
