import { openToAll } from "../../src/auth/access.test-kit.ts";
import { createMetrics } from "../../src/core/metrics.ts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { startJobsApi, type JobsApi } from "./jobs.test-kit.ts";
import { engineRoutes } from "../../roles/routes.ts";
import { openApiOf } from "../../src/server/openapi.ts";

let api: JobsApi;
let worker: { id: string; token: string };
beforeEach(async () => {
  api = await startJobsApi();
  worker = await api.newWorker({ labels: { gpu: "yes" } });
});
afterEach(() => api.close());

const enqueue = (body: unknown, by = "ops", headers = {}) => api.call("POST", "/v1/jobs", { by, body, headers });
const show = async (id: string, by = "ops") => (await api.call("GET", `/v1/jobs/${id}`, { by })).json;
const list = async (query = "", by = "ops") => {
  const { json } = await api.call("GET", `/v1/jobs${query}`, { by });
  return (json["jobs"] as { id: string }[]).map(({ id }) => id);
};
describe("enqueueing", () => {
  test("stores what was asked for, and shows it", async () => {
    const trace_context = `00-${"1".repeat(32)}-${"2".repeat(16)}-01`;
    const due = new Date(api.clock.nowMs() + 60_000).toISOString();
    const body = {
      kind: "x.task",
      payload: { deep: [1, { two: "\u0000" }] },
      priority: 7,
      run_after: due,
      dedup_key: "k",
      max_attempts: 2,
      backoff_ms: 1,
      database: "A",
      selector: { gpu: "yes" },
      trace_context,
    };
    const made = await enqueue(body);
    expect([made.status, made.json["deduped"]]).toEqual([202, false]);
    const id = String(made.json["job_id"]);
    const now = new Date(api.clock.nowMs()).toISOString();
    const { payload, ...rest } = body;
    const shown = await show(id);
    expect(shown).toEqual({
      ...rest,
      payload,
      id,
      database: "a",
      status: "queued",
      worker_id: null,
      attempt: 0,
      lease_expires_at: null,
      holder: null,
      fence: 0,
      cancel_requested: false,
      progress: null,
      result: null,
      error: null,
      created_by: "ops",
      owned_by: "ops",
      created_at: now,
      started_at: null,
      finished_at: null,
      updated_at: now,
    });
    const again = await enqueue(body);
    expect([again.status, again.json]).toEqual([200, { job_id: id, deduped: true }]);
  });

  test("a time that is past lets nobody go ahead", async () => {
    const first = await api.newJob();
    api.clock.advance(1_000);
    const second = await api.newJob({ run_after: "1970-01-01T00:00:00Z" });
    expect((await show(second))["run_after"]).toBe(new Date(api.clock.nowMs()).toISOString());
    expect((await api.claim(worker.token, { max: 1 })).map(({ id }) => id)).toEqual([first]);
  });

  test("takes the trace of the request where the body has none, and passes over a malformed one", async () => {
    const traceparent = `00-${"a".repeat(32)}-${"b".repeat(16)}-00`;
    const traceOf = async (header: string) => {
      const { json } = await enqueue({ kind: "x.task" }, "ops", { traceparent: header });
      return (await show(String(json["job_id"])))["trace_context"];
    };
    expect(await traceOf(traceparent)).toBe(traceparent);
    expect(await traceOf("nonsense")).toBeNull();
  });

  test.each([
    [{}, 400],
    [{ kind: "nothing" }, 400],
    [{ kind: "x.task", unknown: 1 }, 400],
    [{ kind: "x.task", priority: 101 }, 400],
    [{ kind: "x.task", priority: 1.5 }, 400],
    [{ kind: "x.task", max_attempts: 0 }, 400],
    [{ kind: "x.task", max_attempts: 1e300 }, 400],
    [{ kind: "x.task", run_after: "tomorrow" }, 400],
    [{ kind: "x.task", run_after: "9999-01-01T00:00:00Z" }, 400],
    [{ kind: "x.task", dedup_key: "a\u0000b" }, 400],
    [{ kind: "x.task", dedup_key: "\ud800" }, 400],
    [{ kind: "x.task", database: "no such/name" }, 400],
    [{ kind: "x.task", trace_context: "x" }, 400],
    [{ kind: "x.task", payload: "x".repeat(300_000) }, 413],
    [{ kind: "x.task", worker_id: "nobody" }, 404],
    [{ kind: "x.task", credentials: ["nothing"] }, 404],
    [{ kind: "x.task", credentials: Array.from({ length: 17 }, () => "c") }, 400],
    [{ kind: "test.admin" }, 403],
    [{ kind: "test.internal" }, 403],
  ])("refuses %j", async (body, status) => {
    expect((await enqueue(body)).status).toBe(status);
    expect(await list()).toEqual([]);
  });

  test("refuses what is nested too deep for others to read", async () => {
    const nested = (levels: number) => `{"kind":"x.task","payload":${"[".repeat(levels)}${"]".repeat(levels)}}`;
    expect((await enqueue(nested(199))).status).toBe(202);
    for (const levels of [201, 500_000]) {
      const refused = await enqueue(nested(levels));
      expect([levels, refused.status, refused.code]).toEqual([levels, 400, "bad_request_body"]);
    }
  });

  test("names only credentials that whoever enqueues may use", async () => {
    const make = async (
      databases: readonly string[] | undefined,
      more: { subject?: string; shared?: boolean } = {},
    ) => {
      const { subject = "ops", shared } = more;
      const caller = { subject, kind: "static", role: "write", databases } as const;
      const origin = { caller, address: "", requestId: "" };
      return (await api.credentials.create({ label: "c", value: { kind: "pat", token: "t" }, shared }, origin)).id;
    };
    const [everyones, of_a] = [await make(undefined), await make(["a"])];
    const job = (id: string) => ({ kind: "x.task", database: "a", credentials: [id] });
    expect((await enqueue(job(everyones))).status).toBe(202);
    expect((await enqueue(job(await make(undefined, { subject: "x" })))).status).toBe(404);
    expect((await enqueue(job(await make(undefined, { subject: "x", shared: true })))).status).toBe(202);
    expect((await enqueue(job(everyones), "limited")).status).toBe(404);
    expect((await enqueue(job(of_a), "limited")).status).toBe(202);
  });
});

describe("what operators see", () => {
  test("jobs by kind, status and page, without what may be large", async () => {
    const ids = [await api.newJob(), await api.newJob({ kind: "test_both" }), await api.newJob({ payload: "hidden" })];
    await api.call("POST", `/v1/jobs/${ids[0]}/cancel`, { by: "ops" });
    const newestFirst = ids.toReversed();
    expect(await list()).toEqual(newestFirst);
    expect(await list("?kind=test_both")).toEqual([ids[1]]);
    expect(await list("?status=cancelled")).toEqual([ids[0]]);
    expect(await list("?limit=2")).toEqual(newestFirst.slice(0, 2));
    expect(await list(`?limit=2&before=${ids[1]}`)).toEqual([ids[0]]);
    const { text } = await api.call("GET", "/v1/jobs", { by: "ops" });
    expect(text).not.toContain("hidden");
    for (const query of ["limit=0", "limit=501", "limit=x", "status=odd", "kind=nothing", "before=%00"]) {
      expect([query, (await api.call("GET", `/v1/jobs?${query}`, { by: "ops" })).status]).toEqual([query, 400]);
    }
  });

  test("fifty jobs unless they ask for more", async () => {
    for (let i = 0; i < 55; i++) await api.newJob();
    expect(await list()).toHaveLength(50);
    expect(await list("?limit=500")).toHaveLength(55);
  });

  test("those with a limited token see jobs of their databases, and do nothing to others", async () => {
    const [none, a, b] = [await api.newJob(), await api.newJob({ database: "a" }), await api.newJob({ database: "b" })];
    expect(await list("", "limited")).toEqual([a]);
    for (const id of [none, b]) {
      for (const [method, path] of [
        ["GET", `/v1/jobs/${id}`],
        ["POST", `/v1/jobs/${id}/cancel`],
        ["POST", `/v1/jobs/${id}/retry`],
      ] as const) {
        expect((await api.call(method, path, { by: "limited" })).status).toBe(404);
      }
    }
    expect((await enqueue({ kind: "x.task", database: "b" }, "limited")).code).toBe("forbidden");
    expect((await enqueue({ kind: "x.task" }, "limited")).code).toBe("forbidden");
    expect((await enqueue({ kind: "x.task", database: "a" }, "limited")).status).toBe(202);
  });

  test("cancelling and trying again", async () => {
    const id = await api.newJob();
    const act = (verb: string) => api.call("POST", `/v1/jobs/${id}/${verb}`, { by: "ops" });
    expect((await act("retry")).code).toBe("conflict");
    expect((await act("cancel")).json).toMatchObject({ id, status: "cancelled" });
    expect((await act("retry")).json).toMatchObject({ id, status: "queued", attempt: 0 });
    for (const missing of ["nothing", "a%00b"]) {
      for (const verb of ["cancel", "retry"]) {
        expect((await api.call("POST", `/v1/jobs/${missing}/${verb}`, { by: "ops" })).status).toBe(404);
      }
      expect((await api.call("GET", `/v1/jobs/${missing}`, { by: "ops" })).status).toBe(404);
    }
  });

  test("are those with the role write", async () => {
    const id = await api.newJob();
    expect((await enqueue({ kind: "test.engine" }, "reader")).status).toBe(403);
    for (const path of ["/v1/jobs", `/v1/jobs/${id}`]) {
      expect((await api.call("GET", path, { by: "reader" })).status).toBe(403);
    }
  });
});

test("the document says which routes take the token of a worker, and no other", async () => {
  const forward = () => Promise.reject(new Error("nothing is forwarded here"));
  const service = { metrics: createMetrics(), authenticator: openToAll(), version: "0", isDraining: () => false };
  const nobody = { query: undefined, ingest: undefined, access: undefined, exports: undefined, deletion: undefined };
  const routes = await engineRoutes({ service, ...nobody, fabric: { forward } });
  const document = openApiOf(routes, { title: "engine", version: "0" });
  const paths = document["paths"] as Record<string, Record<string, { security: unknown; description: string }>>;
  expect(paths["/v1/jobs/claim"]?.["post"]).toMatchObject({
    security: [{ worker: [] }],
    description: expect.stringContaining("Needs the token of a worker.") as string,
  });
  expect(paths["/v1/jobs"]?.["post"]).toMatchObject({ security: [{ bearer: [] }, {}] });
});
