import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ANONYMOUS } from "../../src/auth/caller.ts";
import { newToken } from "../../src/auth/tokens.ts";
import { systemRandom } from "../../src/core/random.ts";
import { OFFLINE_MS, startJobsApi, type JobsApi } from "./jobs.test-kit.ts";

let api: JobsApi;
beforeEach(async () => {
  api = await startJobsApi();
});
afterEach(() => api.close());

const statusOf = async (id: string) => (await api.workers.find(id))?.status;
const beat = (token: string) => api.call("POST", "/v1/workers/heartbeat", { by: token });

describe("admitting workers", () => {
  test("shows the token once, keeps its hash, and writes an audit entry", async () => {
    const body = { name: "node-1", capabilities: ["x.task", "test_both"], labels: { gpu: "yes" } };
    const made = await api.call("POST", "/v1/workers", { by: "ops", body });
    expect([made.status, made.headers.get("cache-control")]).toEqual([200, "no-store"]);
    const token = String(made.json["token"]);
    expect(token).toMatch(/^engine_wt_/);
    const listed = await api.call("GET", "/v1/workers", { by: "ops" });
    expect(listed.text).not.toContain(token);
    expect(listed.json["workers"]).toEqual([
      {
        id: made.json["worker_id"],
        name: "node-1",
        status: "new",
        drain: false,
        admitted: [],
        owned_by: "ops",
        capabilities: ["x.task", "test.both"],
        labels: { gpu: "yes" },
        preview: `engine_wt_…${token.slice(-4)}`,
        host: null,
        created_by: "ops",
        created_at: new Date(api.clock.nowMs()).toISOString(),
        registered_at: null,
        seen_at: null,
        revoked_at: null,
      },
    ]);
    const [entry] = await api.audit.list({ limit: 1 });
    expect(entry).toMatchObject({ action: "worker.create", actor: "ops", target: made.json["worker_id"] });
    await api.call("POST", "/v1/workers/heartbeat", { by: `${token.slice(0, -1)}x` });
    expect(api.said.join("\n")).not.toContain(token);
  });

  test.each([
    [{ name: "" }, 400],
    [{ name: "a\u0000b" }, 400],
    [{ name: "x".repeat(201) }, 400],
    [{ name: "w", capabilities: ["nothing"] }, 400],
    [{ name: "w", capabilities: ["test.engine"] }, 403],
    [{ name: "w", labels: { "": "x" } }, 400],
    [{ name: "w", labels: { a: "x".repeat(65) } }, 400],
    [{ name: "w", labels: { a: "\u0000" } }, 400],
    [{ name: "w", labels: Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`l${i}`, "x"])) }, 400],
  ])("refuses %j", async (body, status) => {
    expect((await api.call("POST", "/v1/workers", { by: "ops", body })).status).toBe(status);
    expect(await api.workers.list(ANONYMOUS)).toEqual([]);
  });

  test("is for operators whose token is not limited to databases", async () => {
    const { id } = await api.newWorker();
    for (const [method, path, body] of [
      ["POST", "/v1/workers", { name: "w" }],
      ["GET", "/v1/workers", undefined],
      ["DELETE", `/v1/workers/${id}`, undefined],
      ["POST", `/v1/workers/${id}/drain`, { drain: true }],
    ] as const) {
      for (const by of ["reader", "limited"]) expect((await api.call(method, path, { by, body })).status).toBe(403);
    }
    expect(await statusOf(id)).toBe("new");
  });
});

describe("the token of a worker", () => {
  test("opens the routes of workers and no other; theirs open none for workers", async () => {
    const { token } = await api.newWorker();
    expect((await beat(token)).status).toBe(200);
    for (const path of ["/v1/workers", "/v1/jobs"]) {
      expect((await api.call("GET", path, { by: token })).code).toBe("unauthorized");
    }
    for (const by of [undefined, "ops", "reader", "nonsense", newToken("worker", systemRandom)]) {
      const refused = await api.call("POST", "/v1/workers/heartbeat", { by });
      expect([refused.status, refused.code]).toEqual([401, "unauthorized"]);
      expect(refused.headers.get("www-authenticate")).toMatch(/^Bearer /);
    }
  });

  test("is needed, and opens nothing else, while nobody else needs one", async () => {
    const open = await startJobsApi({ isOn: false });
    try {
      const { token } = await open.newWorker();
      expect((await open.call("GET", "/v1/workers")).status).toBe(200);
      expect((await open.call("GET", "/v1/workers", { by: token })).status).toBe(401);
      expect((await open.call("POST", "/v1/workers/heartbeat")).status).toBe(401);
      expect((await open.call("POST", "/v1/workers/heartbeat", { by: token })).status).toBe(200);
    } finally {
      await open.close();
    }
  });

  test("must wait when it is shown again and again and is wrong; a good one passes all the while", async () => {
    const { token } = await api.newWorker();
    const wrong = newToken("worker", systemRandom);
    for (let i = 0; i < 50; i++) expect((await beat(wrong)).status).toBe(401);
    const refused = await beat(wrong);
    expect([refused.status, refused.code]).toEqual([429, "too_many_requests"]);
    expect((await beat(token)).status).toBe(200);
    api.clock.advance(60_000);
    expect((await beat(wrong)).status).toBe(401);
  });
});

describe("reports of a worker", () => {
  test("registering says who it is, and refuses kinds that it may not have", async () => {
    const { id, token } = await api.newWorker({ capabilities: ["x.task"] });
    const register = (body?: unknown) => api.call("POST", "/v1/workers/register", { by: token, body });
    const host = { host: "box", version: "1.2.3", kinds: ["x.task"] };
    const answer = { worker_id: id, heartbeat_interval_secs: 30, lease_secs: 300 };
    expect((await register(host)).json).toEqual(answer);
    expect(await api.workers.get(id, ANONYMOUS)).toMatchObject({
      host: "box (1.2.3)",
      status: "online",
      registeredAtMs: api.clock.nowMs(),
    });
    expect((await register()).json).toEqual(answer);
    expect((await register({ kinds: ["x.other"] })).code).toBe("forbidden");
    expect((await register({ kinds: ["nothing"] })).code).toBe("invalid_parameter");
  });

  test("its status follows what is heard of it", async () => {
    const { id, token } = await api.newWorker();
    expect(await statusOf(id)).toBe("new");
    expect((await beat(token)).json).toEqual({
      status: "online",
      drain: false,
      recommended_poll_ms: 1000,
      cancel: [],
    });
    api.clock.advance(OFFLINE_MS);
    expect(await statusOf(id)).toBe("online");
    api.clock.advance(1);
    expect(await statusOf(id)).toBe("offline");
    const drained = await api.call("POST", `/v1/workers/${id}/drain`, { by: "ops", body: { drain: true } });
    expect(drained.json).toMatchObject({ id, drain: true, status: "offline" });
    expect((await beat(token)).json).toMatchObject({ status: "draining", drain: true });
    await api.call("POST", `/v1/workers/${id}/drain`, { by: "ops", body: { drain: false } });
    expect((await beat(token)).json).toMatchObject({ status: "online", drain: false });
  });

  test("that it was heard of is written every ten seconds at most", async () => {
    const { id, token } = await api.newWorker();
    const seenAtMs = async () => {
      await beat(token);
      return (await api.workers.get(id, ANONYMOUS)).seenAtMs;
    };
    const first = await seenAtMs();
    api.clock.advance(10_000);
    expect(await seenAtMs()).toBe(first);
    api.clock.advance(1);
    expect(await seenAtMs()).toBe(api.clock.nowMs());
  });

  test("a heartbeat names jobs of its own that somebody cancelled", async () => {
    const [mine, other] = [await api.newWorker(), await api.newWorker()];
    const jobId = await api.newJob();
    await api.claim(mine.token);
    expect((await api.call("POST", `/v1/jobs/${jobId}/cancel`, { by: "ops" })).json).toMatchObject({
      status: "leased",
      cancel_requested: true,
    });
    expect((await beat(mine.token)).json["cancel"]).toEqual([jobId]);
    expect((await beat(other.token)).json["cancel"]).toEqual([]);
  });
});

describe("revoking a worker", () => {
  const revoke = (id: string) => api.call("DELETE", `/v1/workers/${id}`, { by: "ops" });

  test("refuses what it writes at once, and gives its jobs to others with the next sweep", async () => {
    const [mine, other] = [await api.newWorker(), await api.newWorker()];
    const jobId = await api.newJob();
    const [job] = await api.claim(mine.token);
    expect(job?.id).toBe(jobId);
    expect((await revoke(mine.id)).json).toEqual({ deleted: true });
    expect((await beat(mine.token)).code).toBe("unauthorized");
    const hold = { jobId, holder: mine.id, fence: job?.fence ?? 0 };
    await expect(api.fabric.progress(hold, 1)).rejects.toMatchObject({ code: "lease_lost" });
    expect(await api.fabric.sweep()).toMatchObject([{ id: jobId, status: "queued" }]);
    expect(await api.claim(other.token)).toMatchObject([{ id: jobId, holder: other.id }]);
    expect(await api.workers.get(mine.id, ANONYMOUS)).toMatchObject({
      status: "revoked",
      revokedAtMs: api.clock.nowMs(),
    });
    expect(await api.audit.list({ limit: 1, action: "worker.revoke" })).toMatchObject([{ target: mine.id }]);
    expect((await revoke(mine.id)).status).toBe(404);
    expect((await api.call("POST", `/v1/workers/${mine.id}/drain`, { by: "ops", body: { drain: true } })).status).toBe(
      404,
    );
  });

  test("fails the jobs that nobody else may have, and says why", async () => {
    const { id, token } = await api.newWorker();
    const waiting = await api.newJob({ worker_id: id, run_after: "2024-01-01T00:00:00Z" });
    const held = await api.newJob({ worker_id: id });
    expect(await api.claim(token, { max: 1 })).toMatchObject([{ id: held }]);
    await revoke(id);
    expect(await api.fabric.sweep()).toEqual([]);
    for (const jobId of [waiting, held]) {
      const { json } = await api.call("GET", `/v1/jobs/${jobId}`, { by: "ops" });
      expect(json).toMatchObject({ status: "failed", error: "the only worker that may run it was revoked" });
      expect((await api.call("POST", `/v1/jobs/${jobId}/retry`, { by: "ops" })).code).toBe("conflict");
    }
    const body = { kind: "x.task", worker_id: id };
    expect((await api.call("POST", "/v1/jobs", { by: "ops", body })).code).toBe("conflict");
  });

  test("ends a claim of it that waits without a job", async () => {
    const { id, token } = await api.newWorker();
    const waiting = api.call("POST", "/v1/jobs/claim", { by: token, body: { kinds: ["x.task"], wait_ms: 25_000 } });
    await expect.poll(() => api.fabric.claimsWaiting).toBe(1);
    await revoke(id);
    const jobId = await api.newJob();
    expect((await waiting).code).toBe("unauthorized");
    expect(await api.fabric.find(jobId, ANONYMOUS)).toMatchObject({ status: "queued", attempt: 0 });
  });

  test.each(["nothing", "a%00b", "%F0%9F%98%80"])("knows no worker %s", async (id) => {
    expect((await revoke(id)).status).toBe(404);
  });
});
