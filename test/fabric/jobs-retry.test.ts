import { afterEach, beforeEach, expect, it } from "vitest";
import { startJobsApi, type JobsApi } from "./jobs.test-kit.ts";

let api: JobsApi;
beforeEach(async () => {
  api = await startJobsApi();
});
afterEach(() => api.close());

it("is refused for jobs that only the engine enqueues: a build that was cancelled would store layers for nobody", async () => {
  const owner = { subject: "ops", kind: "session", role: "write", databases: undefined } as const;
  const { job } = await api.fabric.enqueue({ kind: "test.internal", payload: null }, owner);
  const { id } = job;
  expect((await api.call("POST", `/v1/jobs/${id}/cancel`, { by: "ops" })).status).toBe(200);
  for (const by of ["ops", "root"]) {
    expect(await api.call("POST", `/v1/jobs/${id}/retry`, { by })).toMatchObject({ status: 403, code: "forbidden" });
  }
  expect(await api.call("POST", `/v1/jobs/${id}/retry`, { by: "other" })).toMatchObject({ status: 404 });
  expect((await api.call("GET", `/v1/jobs/${id}`, { by: "ops" })).json).toMatchObject({ status: "cancelled" });
});
