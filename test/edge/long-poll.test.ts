import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { startJobsApi, type JobsApi } from "../fabric/jobs.test-kit.ts";
import { QUICK, startEdge, stopAll } from "./edge.test-kit.ts";

let api: JobsApi;
beforeEach(async () => {
  api = await startJobsApi();
});
afterEach(async () => {
  await stopAll();
  await api.close();
});

describe.each(["node", "uws"] as const)("a claim through an edge on %s", (driver) => {
  async function claimAt(signal?: AbortSignal): Promise<Response> {
    // Health is looked at many times while the peer says nothing of the claim.
    const edge = await startEdge({ driver, query: [api.url], times: QUICK });
    const { token } = await api.newWorker();
    return await fetch(`${edge.url}/v1/jobs/claim`, {
      method: "POST",
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
      body: JSON.stringify({ kinds: ["x.task"], wait_ms: 25_000 }),
      ...(signal !== undefined && { signal }),
    });
  }

  test("waits as long as the peer does", async () => {
    const answer = claimAt();
    await expect.poll(() => api.fabric.claimsWaiting).toBe(1);
    await new Promise((resolve) => void setTimeout(resolve, 1_500));
    expect(api.fabric.claimsWaiting).toBe(1);
    const id = await api.newJob();
    expect(await (await answer).json()).toMatchObject({ jobs: [{ id }] });
  });

  test("ends at the peer when the client leaves", async () => {
    const controller = new AbortController();
    const answer = claimAt(controller.signal);
    await expect.poll(() => api.fabric.claimsWaiting).toBe(1);
    controller.abort();
    await expect(answer).rejects.toThrow(/abort/);
    await expect.poll(() => api.fabric.claimsWaiting).toBe(0);
  });
});
