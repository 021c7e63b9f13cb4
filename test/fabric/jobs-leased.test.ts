import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { startJobsApi, type ClaimedJob, type JobsApi } from "./jobs.test-kit.ts";

let api: JobsApi;
let worker: { id: string; token: string };
beforeEach(async () => {
  api = await startJobsApi();
  worker = await api.newWorker({ labels: { gpu: "yes" } });
});
afterEach(() => api.close());

const show = async (id: string, by = "ops") => (await api.call("GET", `/v1/jobs/${id}`, { by })).json;
/** A write of the worker about a job. */
const write = (verb: string, { id, fence }: Pick<ClaimedJob, "id" | "fence">, body?: unknown, by = worker.token) =>
  api.call("POST", `/v1/jobs/${id}/${verb}`, { by, fence, body });

async function claimNew(body: Record<string, unknown> = {}): Promise<ClaimedJob> {
  await api.newJob(body);
  const [job] = await api.claim(worker.token);
  if (job === undefined) throw new Error("there was no job to claim");
  return job;
}

describe("what the holder writes", () => {
  test("progress, a longer lease, lines, a result", async () => {
    const job = await claimNew();
    const state = await write("progress", job, { done: 1 });
    const lease_expires_at = new Date(api.clock.nowMs() + 300_000).toISOString();
    expect([state.status, state.json]).toEqual([200, { cancel_requested: false, lease_expires_at }]);
    expect((await show(job.id))["progress"]).toEqual({ done: 1 });
    const longer = await write("lease", job, { lease_secs: 3_600 });
    expect(longer.json["lease_expires_at"]).toBe(new Date(api.clock.nowMs() + 3_600_000).toISOString());
    await api.call("POST", `/v1/jobs/${job.id}/cancel`, { by: "ops" });
    expect((await write("lease", job, { lease_secs: 10 })).json["cancel_requested"]).toBe(true);
    expect((await write("logs", job, { lines: [{ level: "info", message: "hello \u0000" }] })).status).toBe(204);
    expect(await api.logs.read(job.id, { afterSeq: 0, limit: 10 })).toMatchObject([{ level: "info" }]);
    expect((await write("complete", job, { rows: 3 })).status).toBe(204);
    expect(await show(job.id)).toMatchObject({ status: "done", result: { rows: 3 } });
    // Its answer may be lost, and then it is said again.
    expect((await write("complete", job, { rows: 3 })).status).toBe(204);
  });

  test("no result, where there is none", async () => {
    const job = await claimNew();
    expect((await write("complete", job)).status).toBe(204);
    expect(await show(job.id)).toMatchObject({ status: "done", result: null });
  });

  test("a failure for good, or one that may be tried again", async () => {
    const job = await claimNew();
    expect((await write("fail", job, JSON.stringify("it broke"))).status).toBe(204);
    expect(await show(job.id)).toMatchObject({ status: "failed", error: "it broke" });
    const again = await claimNew();
    expect((await write("fail", again, { error: "later", retryable: true, retry_after_ms: 60_000 })).status).toBe(204);
    expect(await show(again.id)).toMatchObject({
      status: "queued",
      error: "later",
      run_after: new Date(api.clock.nowMs() + 60_000).toISOString(),
    });
  });

  test("that it gives the job back", async () => {
    const job = await claimNew();
    expect((await write("release", job)).status).toBe(204);
    expect(await show(job.id)).toMatchObject({ status: "queued", attempt: 0 });
  });

  test.each([
    ["progress", '{"a":', 400],
    ["progress", JSON.stringify("x".repeat(65_536)), 413],
    ["progress", "[".repeat(100_000) + "]".repeat(100_000), 400],
    ["complete", JSON.stringify("x".repeat(262_144)), 413],
    ["complete", `"${"x".repeat(1_100_000)}"`, 413],
    ["fail", "{}", 400],
    ["fail", "", 400],
    ["fail", '{"error":"x","retry_after_ms":1e300}', 400],
    ["lease", '{"lease_secs":9}', 400],
    ["lease", '{"lease_secs":3601}', 400],
    ["lease", '{"lease_secs":1e999}', 400],
    ["logs", '{"lines":[{"level":"loud","message":"x"}]}', 400],
    ["logs", JSON.stringify({ lines: Array.from({ length: 10_000 }, () => ({ level: "info", message: "" })) }), 400],
  ])("refuses %s with %.40s", async (verb, body, status) => {
    const job = await claimNew();
    expect((await write(verb, job, body)).status).toBe(status);
    expect(await show(job.id)).toMatchObject({ status: "leased", progress: null });
    expect((await write("complete", job)).status).toBe(204);
  });
});

describe("who does not hold the job", () => {
  const VERBS: readonly [string, unknown][] = [
    ["progress", 1],
    ["complete", 1],
    ["fail", { error: "x", retryable: true }],
    ["lease", { lease_secs: 60 }],
    ["release", undefined],
    ["logs", { lines: [{ level: "info", message: "x" }] }],
  ];

  test("writes nothing: another worker, a stale fence, an ended lease, no such job", async () => {
    const other = await api.newWorker();
    const job = await claimNew();
    const before = await show(job.id);
    for (const [verb, body] of VERBS) {
      const refusals = [
        await write(verb, job, body, other.token),
        await write(verb, { ...job, fence: job.fence + 1 }, body),
        await write(verb, { ...job, fence: 0 }, body),
        await write(verb, { ...job, fence: 999_999_999_999_999 }, body),
        await write(verb, { ...job, id: worker.id }, body),
        await write(verb, { ...job, id: "a%00b" }, body),
        await write(verb, { ...job, id: "x".repeat(2_000) }, body),
      ];
      const answers = refusals.map(({ status, code }) => [verb, status, code]);
      expect(answers).toEqual(refusals.map(() => [verb, 409, "lease_lost"]));
    }
    expect(await show(job.id)).toEqual(before);
    api.clock.advance(300_000);
    for (const [verb, body] of VERBS) expect((await write(verb, job, body)).code).toBe("lease_lost");
    await api.fabric.sweep();
    const [next] = await api.claim(worker.token);
    expect(next).toMatchObject({ id: job.id, fence: job.fence + 1 });
    for (const [verb, body] of VERBS) expect((await write(verb, job, body)).code).toBe("lease_lost");
    expect((await write("complete", next ?? job)).status).toBe(204);
  });

  test("may show no fence, but none that is not a number", async () => {
    const { id } = await claimNew();
    for (const [verb, body] of VERBS) {
      for (const fence of ["", "x", "-1", "1.5", "1e3", "9".repeat(16), "9".repeat(4_000)]) {
        const { code } = await api.call("POST", `/v1/jobs/${id}/${verb}`, { by: worker.token, body, fence });
        expect([fence, code]).toEqual([fence, "invalid_header"]);
      }
    }
  });

  test("is told apart from who has no token at all", async () => {
    const job = await claimNew();
    for (const [verb, body] of VERBS) expect((await write(verb, job, body, "ops")).status).toBe(401);
  });
});

describe("a worker that shows no fence", () => {
  const bare = (verb: string, id: string, body?: unknown, by = worker.token) =>
    api.call("POST", `/v1/jobs/${id}/${verb}`, { by, body });
  const answerOf = async (calling: ReturnType<typeof bare>) => {
    const { status, code } = await calling;
    return [status, code];
  };

  test("writes under the lease that it has", async () => {
    const job = await claimNew();
    expect((await bare("progress", job.id, { done: 1 })).status).toBe(200);
    expect((await bare("lease", job.id, { lease_secs: 600 })).status).toBe(200);
    expect((await bare("logs", job.id, { lines: [{ level: "info", message: "x" }] })).status).toBe(204);
    expect((await bare("complete", job.id, { rows: 3 })).status).toBe(204);
    expect(await show(job.id)).toMatchObject({ status: "done", progress: { done: 1 }, result: { rows: 3 } });
    // Said again, for its answer may have been lost: the first result stays.
    expect((await bare("complete", job.id, { rows: 4 })).status).toBe(204);
    expect((await show(job.id))["result"]).toEqual({ rows: 3 });
    expect(await answerOf(bare("progress", job.id, 1))).toEqual([409, "lease_lost"]);
    const failing = await claimNew();
    for (let i = 0; i < 2; i++) expect((await bare("fail", failing.id, JSON.stringify("broke"))).status).toBe(204);
    expect(await show(failing.id)).toMatchObject({ status: "failed", error: "broke" });
    const released = await claimNew();
    expect((await bare("release", released.id)).status).toBe(204);
    expect(await answerOf(bare("release", released.id))).toEqual([409, "lease_lost"]);
  });

  test("is refused once the lease has ended, with whoever has the job then", async () => {
    const job = await claimNew();
    api.clock.advance(300_000);
    expect(await answerOf(bare("complete", job.id, 1))).toEqual([409, "lease_lost"]);
    await api.fabric.sweep();
    expect(await answerOf(bare("complete", job.id, 1))).toEqual([409, "lease_lost"]);
    const other = await api.newWorker();
    const [next] = await api.claim(other.token);
    expect(next).toMatchObject({ id: job.id, fence: job.fence + 1 });
    expect(await answerOf(bare("complete", job.id, 1))).toEqual([409, "lease_lost"]);
    expect((await bare("complete", job.id, 2, other.token)).status).toBe(204);
    expect(await answerOf(bare("complete", job.id, 1))).toEqual([409, "lease_lost"]);
    expect((await show(job.id))["result"]).toBe(2);
  });

  test("writes under its newest lease, and with a fence under that one only", async () => {
    const job = await claimNew();
    api.clock.advance(300_000);
    await api.fabric.sweep();
    const [again] = await api.claim(worker.token);
    expect(again?.id).toBe(job.id);
    expect((await write("progress", job, 1)).code).toBe("lease_lost");
    expect((await bare("progress", job.id, 2)).status).toBe(200);
    expect((await show(job.id))["progress"]).toBe(2);
  });

  test("cannot tell others' jobs from those that do not exist, and does nothing to either", async () => {
    const queued = await api.newJob();
    const stranger = await api.call("POST", "/v1/workers", { by: "other", body: { name: "s" } });
    const token = String(stranger.json["token"]);
    const before = await show(queued);
    for (const id of [queued, "01977f3e-7c3a-7d2e-9d6f-0d5b0f4b6a11", "nothing", "a%00b", "x".repeat(2_000)]) {
      for (const [verb, body] of [
        ["complete", 1],
        ["release", undefined],
        ["lease", { lease_secs: 60 }],
      ] as const) {
        expect([id, verb, ...(await answerOf(bare(verb, id, body, token)))]).toEqual([id, verb, 404, "not_found"]);
      }
    }
    // Of a job that it could have, and that it does not hold, a worker may know.
    expect(await answerOf(bare("complete", queued, 1))).toEqual([409, "lease_lost"]);
    expect(await show(queued)).toEqual(before);
  });

  test("is nobody without a worker's token", async () => {
    const job = await claimNew();
    expect((await bare("complete", job.id, 1, "ops")).status).toBe(401);
    expect((await api.call("POST", `/v1/jobs/${job.id}/complete`, { body: 1 })).status).toBe(401);
  });
});

describe("secrets of a job", () => {
  const fetchOne = (job: Pick<ClaimedJob, "id" | "fence">, credentialId: string, by = worker.token) =>
    api.call("GET", `/v1/jobs/${job.id}/credentials/${credentialId}`, { by, fence: job.fence });

  async function newCredential(token: string): Promise<string> {
    const caller = { subject: "ops", kind: "static", role: "write", databases: undefined } as const;
    const origin = { caller, address: "", requestId: "" };
    return (await api.credentials.create({ label: "c", value: { kind: "pat", token } }, origin)).id;
  }

  test("are for the holder, while it holds the job, and each time is on record", async () => {
    const [named, other] = [await newCredential("the-secret"), await newCredential("another-secret")];
    const job = await claimNew({ credentials: [named] });
    expect(job["credentials"]).toEqual([named]);
    const answer = await fetchOne(job, named);
    expect([answer.status, answer.json]).toEqual([200, { kind: "pat", token: "the-secret" }]);
    expect(answer.headers.get("cache-control")).toBe("no-store");
    expect(await api.audit.list({ limit: 1 })).toMatchObject([
      { action: "credential.reveal", actor: "worker:w", actorKind: "worker", target: named, details: { job: job.id } },
    ]);
    for (const id of [other, "nothing", "a%00b"]) expect((await fetchOne(job, id)).status).toBe(404);
    const stranger = await api.newWorker();
    expect((await fetchOne(job, named, stranger.token)).code).toBe("lease_lost");
    expect((await fetchOne({ ...job, fence: 2 }, named)).code).toBe("lease_lost");
    expect((await fetchOne({ ...job, id: "a%00b" }, named)).code).toBe("lease_lost");
    const bare = `/v1/jobs/${job.id}/credentials/${named}`;
    expect((await api.call("GET", bare, { by: stranger.token })).code).toBe("lease_lost");
    api.clock.advance(300_000);
    expect((await fetchOne(job, named)).code).toBe("lease_lost");
    expect((await api.call("GET", bare, { by: worker.token })).code).toBe("lease_lost");
    const entries = await api.audit.list({ limit: 100, action: "credential.reveal" });
    expect(entries).toHaveLength(1);
    expect(api.said.join("\n")).not.toMatch(/the-secret|another-secret/);
  });

  test("are not given once the credential is deleted", async () => {
    const id = await newCredential("gone");
    const job = await claimNew({ credentials: [id] });
    const caller = { subject: "ops", kind: "static", role: "write", databases: undefined } as const;
    await api.credentials.remove(id, { caller, address: "", requestId: "" });
    expect((await fetchOne(job, id)).status).toBe(404);
  });
});
