import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ADMIN } from "../../src/auth/access.test-kit.ts";
import { startJobsApi, type JobsApi } from "./jobs.test-kit.ts";

/** Two tenants with the role write (`ops`, `other`), and an admin (`root`). */
let api: JobsApi;
beforeEach(async () => {
  api = await startJobsApi();
});
afterEach(() => api.close());

async function workerOf(by: string, body: Record<string, unknown> = {}): Promise<{ id: string; token: string }> {
  const { json, text } = await api.call("POST", "/v1/workers", { by, body: { name: "w", ...body } });
  if (typeof json["token"] !== "string") throw new Error(`no worker was made: ${text}`);
  return { id: String(json["worker_id"]), token: json["token"] };
}

async function jobOf(by: string, body: Record<string, unknown> = {}): Promise<string> {
  const { json, text } = await api.call("POST", "/v1/jobs", { by, body: { kind: "x.task", ...body } });
  if (typeof json["job_id"] !== "string") throw new Error(`nothing was enqueued: ${text}`);
  return json["job_id"];
}

function admit(id: string, admitted: readonly string[] | null, by = "root") {
  return api.call("POST", `/v1/workers/${id}/admit`, { by, body: { admitted } });
}

async function newCredential(subject: string, shared = false): Promise<string> {
  const caller = { ...ADMIN, subject, role: "write" } as const;
  const value = { kind: "pat", token: `the secret of ${subject}` } as const;
  const origin = { caller, address: "", requestId: "" };
  return (await api.credentials.create({ label: "c", value, shared }, origin)).id;
}

async function secretOf(token: string, credential: string, job: { id: string; fence: number }): Promise<unknown> {
  const answer = await api.call("GET", `/v1/jobs/${job.id}/credentials/${credential}`, { by: token, fence: job.fence });
  return answer.status === 200 ? answer.json["token"] : answer.status;
}

async function claimOne(token: string, kinds: readonly string[] = ["x.task"]) {
  const [job, ...more] = await api.claim(token, { kinds, max: 5 });
  if (job === undefined || more.length > 0) throw new Error(`${more.length + 1} jobs were expected to be one`);
  return job;
}

describe("a worker", () => {
  test("claims its owner's jobs only, also when it waits for some", async () => {
    const [mine, theirs] = [await workerOf("ops"), await workerOf("other")];
    const waiting = api.claim(theirs.token, { wait_ms: 25_000 });
    await expect.poll(() => api.fabric.claimsWaiting).toBe(1);
    const job = await jobOf("ops");
    expect(await api.claim(theirs.token)).toEqual([]);
    expect((await claimOne(mine.token)).id).toBe(job);
    const own = await jobOf("other");
    expect((await waiting).map(({ id }) => id)).toEqual([own]);
  });

  test("of an admin claims everybody's, unless the admin says otherwise", async () => {
    const [all, own] = [await workerOf("root"), await workerOf("root", { admitted: [] })];
    const job = await jobOf("ops");
    expect(await api.claim(own.token)).toEqual([]);
    expect((await claimOne(all.token)).id).toBe(job);
  });

  test("claims everybody's jobs of a kind that an admin admits it for, until the admin takes it back", async () => {
    const worker = await workerOf("other");
    await jobOf("ops", { kind: "x.other" });
    const job = await jobOf("ops");
    expect((await admit(worker.id, ["x.task"])).json).toMatchObject({ admitted: ["x.task"], owned_by: "other" });
    expect((await claimOne(worker.token, ["x.task", "x.other"])).id).toBe(job);
    await jobOf("ops");
    expect((await admit(worker.id, [])).status).toBe(200);
    expect(await api.claim(worker.token)).toEqual([]);
  });

  test("is admitted by admins alone, and never for what no worker may have", async () => {
    const { id } = await workerOf("ops");
    expect((await admit(id, ["x.task"], "ops")).code).toBe("forbidden");
    for (const admitted of [["x.task"], null, []]) {
      const refused = await api.call("POST", "/v1/workers", { by: "ops", body: { name: "w", admitted } });
      expect([admitted, refused.code]).toEqual([admitted, "forbidden"]);
    }
    expect((await admit(id, ["test.engine"])).code).toBe("forbidden");
    expect((await admit("nothing", [])).code).toBe("not_found");
  });

  test("has kinds that need it only when an admin has admitted it, whoever owns the job", async () => {
    const kinds = ["test.node"];
    const capabilities = kinds;
    const refused = await api.call("POST", "/v1/workers", { by: "ops", body: { name: "w", capabilities } });
    expect(refused.code).toBe("forbidden");
    const worker = await workerOf("ops");
    const job = await jobOf("ops", { kind: "test.node" });
    const claim = () => api.call("POST", "/v1/jobs/claim", { by: worker.token, body: { kinds } });
    expect((await claim()).code).toBe("forbidden");
    expect((await api.call("POST", "/v1/workers/register", { by: worker.token, body: { kinds } })).code).toBe(
      "forbidden",
    );
    expect((await admit(worker.id, kinds)).status).toBe(200);
    expect((await claimOne(worker.token, kinds)).id).toBe(job);
  });

  test("is there for its owner and for admins", async () => {
    const { id } = await workerOf("ops");
    const listed = async (by: string) => (await api.call("GET", "/v1/workers", { by })).text.includes(id);
    expect([await listed("ops"), await listed("other"), await listed("root")]).toEqual([true, false, true]);
    expect((await api.call("POST", `/v1/workers/${id}/drain`, { by: "other", body: { drain: true } })).status).toBe(
      404,
    );
    expect((await api.call("DELETE", `/v1/workers/${id}`, { by: "other" })).status).toBe(404);
    expect((await api.call("POST", `/v1/workers/${id}/drain`, { by: "root", body: { drain: true } })).status).toBe(200);
    expect((await api.call("DELETE", `/v1/workers/${id}`, { by: "ops" })).status).toBe(200);
  });

  test("enqueues jobs that are its owner's", async () => {
    const { token } = await workerOf("ops");
    const { json } = await api.call("POST", "/v1/jobs/self", { by: token, body: { kind: "x.task" } });
    const path = `/v1/jobs/${String(json["job_id"])}`;
    expect((await api.call("GET", path, { by: "ops" })).json).toMatchObject({
      owned_by: "ops",
      created_by: "worker:w",
    });
    expect((await api.call("GET", path, { by: "other" })).status).toBe(404);
  });
});

describe("a secret", () => {
  test("is shown to the worker of its owner, for a job that names it and as long as it is held", async () => {
    const { token } = await workerOf("ops");
    const credential = await newCredential("ops");
    await jobOf("ops", { credentials: [credential] });
    const job = await claimOne(token);
    expect(await secretOf(token, credential, job)).toBe("the secret of ops");
    expect(await secretOf(token, await newCredential("ops"), job)).toBe(404);
    await api.call("POST", `/v1/jobs/${job.id}/complete`, { by: token, fence: job.fence, body: null });
    expect(await secretOf(token, credential, job)).toBe(409);
  });

  test("that is shared is not shown to workers of those who may use it: only to those that an admin admitted", async () => {
    const shared = await newCredential("ops", true);
    const spy = await workerOf("other");
    await jobOf("other", { credentials: [shared] });
    const job = await claimOne(spy.token);
    expect(await secretOf(spy.token, shared, job)).toBe(404);
    await admit(spy.id, ["x.task"]);
    expect(await secretOf(spy.token, shared, job)).toBe("the secret of ops");
  });

  test("of somebody's job is not shown any more to a worker that is no longer admitted", async () => {
    const credential = await newCredential("ops");
    const worker = await workerOf("other");
    await admit(worker.id, null);
    await jobOf("ops", { credentials: [credential] });
    const job = await claimOne(worker.token);
    expect(await secretOf(worker.token, credential, job)).toBe("the secret of ops");
    await admit(worker.id, ["x.other"]);
    expect(await secretOf(worker.token, credential, job)).toBe(404);
  });

  test("is not shown for a job whose owner may not use it any more", async () => {
    const credential = await newCredential("ops", true);
    const admins = await workerOf("root");
    await jobOf("other", { credentials: [credential] });
    const job = await claimOne(admins.token);
    expect(await secretOf(admins.token, credential, job)).toBe("the secret of ops");
    const owner = { ...ADMIN, subject: "ops", role: "write" } as const;
    await api.credentials.share(credential, false, { caller: owner, address: "", requestId: "" });
    expect(await secretOf(admins.token, credential, job)).toBe(404);
  });
});
