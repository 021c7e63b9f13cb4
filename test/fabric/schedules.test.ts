import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startJobsApi, type JobsApi } from "./jobs.test-kit.ts";

let api: JobsApi;
beforeEach(async () => {
  api = await startJobsApi();
});
afterEach(() => api.close());

const HOURLY = { name: "hourly", kind: "x.task", timing: { every_ms: 3_600_000 } };
const create = (body: Record<string, unknown> = {}, by = "ops") =>
  api.call("POST", "/v1/schedules", { by, body: { ...HOURLY, ...body } });
const idOf = async (body: Record<string, unknown> = {}) => String((await create(body)).json["id"]);

describe("schedules", () => {
  it("are made, shown, changed and deleted", async () => {
    const made = await create({ payload: { n: 1 }, database: "A", timing: { cron: "0 5 * * *" }, jitter_ms: 10 });
    expect(made.status).toBe(200);
    expect(made.json).toMatchObject({
      name: "hourly",
      kind: "x.task",
      payload: { n: 1 },
      database: "a",
      timing: { cron: "0 5 * * *", time_zone: "UTC" },
      catch_up: "once",
      jitter_ms: 10,
      enabled: true,
      last_at: null,
      last_job_id: null,
      created_by: "ops",
    });
    expect(made.json["next_at"]).toMatch(/T05:00:00\.00\dZ$/);
    const path = `/v1/schedules/${String(made.json["id"])}`;
    expect((await api.call("GET", path, { by: "limited" })).json).toEqual(made.json);
    const body = { timing: { every_ms: 60_000 }, catch_up: "all", enabled: false };
    const changed = await api.call("PATCH", path, { by: "limited", body });
    expect(changed.json).toMatchObject({
      ...body,
      payload: { n: 1 },
      jitter_ms: 10,
      next_at: null,
      created_by: "ops",
      owned_by: "ops",
    });
    expect((await api.call("PATCH", path, { by: "ops", body: { payload: null } })).json["payload"]).toBeNull();
    expect((await api.call("DELETE", path, { by: "ops" })).json).toEqual({ deleted: true });
    expect((await api.call("GET", path, { by: "ops" })).status).toBe(404);
  });

  it("enqueue what the dispatchers find, and at once when asked to", async () => {
    const id = await idOf({ payload: [1] });
    const run = await api.call("POST", `/v1/schedules/${id}/run`, { by: "ops" });
    expect(run.status).toBe(202);
    api.clock.advance(3_600_000);
    expect(await api.schedules.fireDue()).toBe(1);
    const { token } = await api.newWorker();
    const jobs = await api.claim(token, { max: 5 });
    expect(jobs).toMatchObject([
      { payload: [1], dedup_key: null },
      { payload: [1], owner: { subject: "ops" } },
    ]);
    expect(jobs[0]?.id).toBe(run.json["job_id"]);
    const shown = await api.call("GET", `/v1/schedules/${id}`, { by: "ops" });
    expect(shown.json["last_job_id"]).toBe(jobs[1]?.id);
    expect(jobs[1]?.["dedup_key"]).toBe(`schedule/${id}/${String(shown.json["last_at"])}`);
  });

  it("are listed by name, page by page, as far as the token may see", async () => {
    for (const [name, database] of [
      ["c", "a"],
      ["a", "b"],
      ["b", "a"],
    ])
      await create({ name, database });
    const names = async (query: string, by = "ops") => {
      const { json } = await api.call("GET", `/v1/schedules${query}`, { by });
      return (json["schedules"] as { name: string }[]).map(({ name }) => name);
    };
    expect(await names("")).toEqual(["a", "b", "c"]);
    expect(await names("?limit=1&after=a")).toEqual(["b"]);
    expect(await names("", "limited")).toEqual(["b", "c"]);
    for (const query of ["?limit=0", "?limit=501", "?limit=x"]) {
      expect((await api.call("GET", `/v1/schedules${query}`, { by: "ops" })).code).toBe("invalid_parameter");
    }
  });

  it("are only for those who may enqueue their jobs", async () => {
    expect((await create({}, "reader")).status).toBe(403);
    expect((await create({ kind: "test.admin" })).code).toBe("forbidden");
    expect((await create({ kind: "test.internal" })).code).toBe("forbidden");
    expect((await create({}, "limited")).code).toBe("forbidden");
    expect((await create({ database: "b" }, "limited")).code).toBe("forbidden");
    const id = await idOf({ database: "b" });
    for (const [method, more] of [
      ["GET", ""],
      ["PATCH", ""],
      ["DELETE", ""],
      ["POST", "/run"],
    ] as const) {
      const body = method === "PATCH" ? { enabled: false } : undefined;
      expect((await api.call(method, `/v1/schedules/${id}${more}`, { by: "limited", body })).status).toBe(404);
    }
  });

  it("refuse what makes no sense", async () => {
    await create();
    const code = async (body: Record<string, unknown>) => (await create({ name: "other", ...body })).code;
    expect((await create()).code).toBe("conflict");
    for (const timing of [
      { every_ms: 999 },
      { cron: "* * *" },
      { cron: "* * * * *", time_zone: "Moon" },
      { cron: "* * * * *", every_ms: 5_000 },
      { cron: "0 0 30 2 *" },
      {},
    ]) {
      expect([timing, await code({ timing })]).toEqual([timing, "bad_request_body"]);
    }
    for (const body of [{ catch_up: "some" }, { jitter_ms: -1 }, { name: "a\u0000b" }, { name: "" }, { more: 1 }]) {
      expect([body, await code(body)]).toEqual([body, "bad_request_body"]);
    }
    expect(await code({ kind: "nothing" })).toBe("invalid_parameter");
    expect(await code({ database: "no name" })).toBe("invalid_name");
  });
});
