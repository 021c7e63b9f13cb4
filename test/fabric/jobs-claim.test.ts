import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { startJobsApi, type JobsApi } from "./jobs.test-kit.ts";

let api: JobsApi;
let worker: { id: string; token: string };
beforeEach(async () => {
  api = await startJobsApi();
  worker = await api.newWorker({ labels: { gpu: "yes" } });
});
afterEach(() => api.close());

const enqueue = (body: unknown, by = "ops", headers = {}) => api.call("POST", "/v1/jobs", { by, body, headers });
const show = async (id: string, by = "ops") => (await api.call("GET", `/v1/jobs/${id}`, { by })).json;
describe("claiming", () => {
  test("leases jobs with all that a node needs", async () => {
    const id = await api.newJob({ payload: { n: 1 }, database: "a" });
    expect(await api.claim(worker.token)).toMatchObject([
      {
        id,
        kind: "x.task",
        status: "leased",
        payload: { n: 1 },
        holder: worker.id,
        fence: 1,
        attempt: 1,
        lease_secs: 300,
        lease_expires_at: new Date(api.clock.nowMs() + 300_000).toISOString(),
        owner: { subject: "ops", role: "write", databases: null },
        credentials: [],
      },
    ]);
    expect(await api.claim(worker.token)).toEqual([]);
  });

  test("gives a worker what its labels and its name allow", async () => {
    const other = await api.newWorker();
    await api.newJob({ selector: { gpu: "yes" } });
    await api.newJob({ worker_id: worker.id });
    expect(await api.claim(other.token, { max: 10 })).toEqual([]);
    expect(await api.claim(worker.token, { max: 10 })).toHaveLength(2);
  });

  test("refuses kinds that are not for this worker", async () => {
    const narrow = await api.newWorker({ capabilities: ["x.task"] });
    const claim = async (kinds: unknown, by: string) =>
      (await api.call("POST", "/v1/jobs/claim", { by, body: { kinds } })).status;
    expect(await claim(["x.task"], narrow.token)).toBe(200);
    expect(await claim(["x.task", "x.other"], narrow.token)).toBe(403);
    expect(await claim(["test_both"], narrow.token)).toBe(403);
    expect(await claim(["test_both"], worker.token)).toBe(200);
    expect(await claim(["test.engine"], worker.token)).toBe(403);
    expect(await claim(["nothing"], worker.token)).toBe(400);
    expect(await claim([], worker.token)).toBe(400);
    expect(
      await claim(
        Array.from({ length: 10_000 }, (_, i) => `x.k${i}`),
        worker.token,
      ),
    ).toBe(400);
  });

  test("takes 1 to 100 jobs, and lowers a wait that is too long", async () => {
    const claim = (body: Record<string, unknown>) =>
      api.call("POST", "/v1/jobs/claim", { by: worker.token, body: { kinds: ["x.task"], ...body } });
    for (const body of [{ max: 0 }, { max: 101 }, { max: 1e300 }, { wait_ms: -1 }, { wait_ms: "1" }, { ids: [] }]) {
      expect([body, (await claim(body)).status]).toEqual([body, 400]);
    }
    const waiting = claim({ wait_ms: 9_000_000 });
    await expect.poll(() => api.fabric.claimsWaiting).toBe(1);
    api.clock.advance(25_000);
    expect((await waiting).json).toEqual({ jobs: [] });
  });

  test("waits until there is one", async () => {
    const waiting = api.claim(worker.token, { wait_ms: 25_000 });
    await expect.poll(() => api.fabric.claimsWaiting).toBe(1);
    const id = await api.newJob();
    expect(await waiting).toMatchObject([{ id }]);
  });

  test("of a client that leaves ends, and takes nothing", async () => {
    const controller = new AbortController();
    const body = { kinds: ["x.task"], wait_ms: 25_000 };
    const waiting = api.call("POST", "/v1/jobs/claim", { by: worker.token, body, signal: controller.signal });
    await expect.poll(() => api.fabric.claimsWaiting).toBe(1);
    controller.abort();
    await expect(waiting).rejects.toThrow(/abort/);
    await expect.poll(() => api.fabric.claimsWaiting).toBe(0);
    expect(await show(await api.newJob())).toMatchObject({ status: "queued" });
  });

  test("gives a worker that drains nothing, also when it began to wait before", async () => {
    const waiting = api.claim(worker.token, { wait_ms: 25_000 });
    await expect.poll(() => api.fabric.claimsWaiting).toBe(1);
    await api.call("POST", `/v1/workers/${worker.id}/drain`, { by: "ops", body: { drain: true } });
    const id = await api.newJob();
    expect(await waiting).toEqual([]);
    expect(await show(id)).toMatchObject({ status: "queued", attempt: 0 });
    expect(await api.claim(worker.token, { wait_ms: 25_000 })).toEqual([]);
  });

  test("lets one worker wait with 64 claims, and no more, and others all the same", async () => {
    const body = { kinds: ["x.task"], wait_ms: 25_000 };
    const flood = Array.from({ length: 70 }, () => api.call("POST", "/v1/jobs/claim", { by: worker.token, body }));
    await expect.poll(() => api.fabric.claimsWaiting).toBe(64);
    const other = await api.newWorker({ capabilities: ["x.other"] });
    const id = await api.newJob({ kind: "x.other" });
    expect(await api.claim(other.token, { kinds: ["x.other"], wait_ms: 25_000 })).toMatchObject([{ id }]);
    api.clock.advance(25_000);
    const codes = (await Promise.all(flood)).map(({ code }) => code);
    expect(codes.filter((code) => code === "too_many_requests")).toHaveLength(6);
    expect(codes.filter((code) => code === "")).toHaveLength(64);
    expect(await api.claim(worker.token)).toEqual([]);
  });
});

describe("a worker's own jobs", () => {
  const own = (body: unknown, by = worker.token) => api.call("POST", "/v1/jobs/self", { by, body });

  test("are for it alone, and its own, with the least role", async () => {
    const other = await api.newWorker();
    const { status, json } = await own({ kind: "x.task", payload: 1 });
    expect(status).toBe(202);
    expect(await api.claim(other.token)).toEqual([]);
    expect(await api.claim(worker.token)).toMatchObject([
      { id: json["job_id"], worker_id: worker.id, owner: { subject: "worker:w", role: "read" } },
    ]);
  });

  test("keep no job of others from being enqueued by their keys", async () => {
    expect((await own({ kind: "x.task", dedup_key: "k" })).status).toBe(202);
    expect((await own({ kind: "x.task", dedup_key: "k" })).status).toBe(200);
    expect((await enqueue({ kind: "x.task", dedup_key: "k" })).status).toBe(202);
    const other = await api.newWorker();
    expect((await own({ kind: "x.task", dedup_key: "k" }, other.token)).status).toBe(202);
  });

  test.each([
    [{ kind: "test.engine" }, 403],
    [{ kind: "test.admin" }, 403],
    [{ kind: "test.internal" }, 403],
    [{ kind: "x.task", credentials: ["c"] }, 400],
    [{ kind: "x.task", database: "a" }, 400],
    [{ kind: "x.task", worker_id: "other" }, 400],
    [{ kind: "x.task", selector: {} }, 400],
  ])("are not %j", async (body, status) => {
    expect((await own(body)).status).toBe(status);
  });

  test("are of the kinds that it may have, and a thousand at most wait", async () => {
    const narrow = await api.newWorker({ capabilities: ["x.other"] });
    expect((await own({ kind: "x.task" }, narrow.token)).status).toBe(403);
    const owner = { subject: "x", kind: "worker", role: "read", databases: undefined, owner: "ops" } as const;
    const request = { kind: "x.other", payload: null, workerId: narrow.id };
    await Promise.all(Array.from({ length: 1_000 }, () => api.fabric.enqueue(request, owner)));
    expect((await own({ kind: "x.other" }, narrow.token)).code).toBe("too_many_requests");
    await api.claim(narrow.token, { kinds: ["x.other"] });
    expect((await own({ kind: "x.other" }, narrow.token)).status).toBe(202);
  });
});
