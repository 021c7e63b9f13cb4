import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  startScriptedProvider,
  type ScriptedProvider,
} from "../../src/knowledge/agent/engines/scripted-provider.test-kit.ts";
import type { ScriptedReply } from "../../src/knowledge/agent/engines/scripted-wire.test-kit.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";
import { ingest, ndjson } from "../support/client.ts";
import { PROVIDER_KEY, send, setEngine, startAsked, type AskedEngine } from "./agent.test-kit.ts";
import {
  claimDream,
  newWorker,
  ofJob,
  startDreamWorker,
  type Answered,
  type HeldDream,
  type WorkerProcess,
} from "./dream-worker.test-kit.ts";

/**
 * Dreams whose model a worker asks. The only slot of the server is taken by a dream that never ends, so that others come to
 * workers.
 */

type Json = Record<string, unknown>;

const PATH = "/v1/agent/memory/dreaming";
const AUTH = { Authorization: "Bearer adm" };
const WORKER_KEY = "sk-of-the-worker-0123456789";
const SHARED_KEY = "sk-shared-0123456789abcdef";
const SERVER = {
  ENGINE_AUTH_TOKENS: "adm:admin,rea:read",
  ENGINE_FABRIC_WORKERS: "1",
  ENGINE_FABRIC_LEASE_SECS: "10",
  ENGINE_FABRIC_SWEEP_SECS: "1",
  ENGINE_SECRET_KEY: "x".repeat(32),
  ENGINE_AGENT_COMMAND: "/bin/false",
};

let asked: AskedEngine;
let provider: ScriptedProvider;
let url: string;
let database = "";
let databases = 0;
const processes: WorkerProcess[] = [];

async function call(method: string, path: string, body?: unknown): Promise<Answered> {
  const response = await send(url, method, path, body, { ...AUTH, "X-Database": database });
  const text = await response.text();
  return { status: response.status, json: text === "" ? {} : (JSON.parse(text) as Json) };
}

async function observe(...bodies: string[]): Promise<void> {
  const rows = bodies.map((body) => ({ label: "transcript", body }));
  expect((await ingest(url, "firehose", ndjson(rows), { ...AUTH, "X-Database": database })).status).toBe(200);
}

async function newestRun(): Promise<Json> {
  const { json } = await call("GET", `${PATH}/runs?limit=1`);
  return (json["runs"] as Json[])[0] ?? {};
}

const isOver = ({ status }: Json): boolean => status === "done" || status === "failed" || status === "cancelled";

async function over(): Promise<Json> {
  await eventually(async () => isOver(await newestRun()), 60_000);
  return await newestRun();
}

/** Queues a dream; resolves to its job. */
async function ask(body: Json = {}): Promise<string> {
  const { status, json } = await call("POST", `${PATH}/run`, body);
  expect([status, json]).toEqual([202, expect.anything()]);
  return String(json["job_id"]);
}

async function contents(): Promise<string[]> {
  const { json } = await call("GET", "/v1/agent/memory/export");
  const nodes = json["memory_nodes"] as Json[];
  return nodes.filter((node) => node["invalidated_at"] === null).map((node) => String(node["content"]));
}

const fact = (content: string, more: Json = {}): Json => ({
  action: "add",
  reason: "The event says so.",
  evidence: ["e1"],
  content,
  ...more,
});
const says = (...proposals: Json[]): ScriptedReply => ({
  toolCalls: [{ name: "propose_memories", input: { reasoning: "As they say.", proposals } }],
  usage: { input: 100, output: 20 },
});

async function worker(env: Record<string, string> = {}, token?: string): Promise<WorkerProcess & { id: string }> {
  const made = token === undefined ? await newWorker(url, AUTH) : { id: "", token };
  const own = { ENGINE_ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: WORKER_KEY, ...env };
  const started = await startDreamWorker({ url, home: asked.home, token: made.token }, own);
  processes.push(started);
  return { ...started, id: made.id };
}

/** A dream that this test holds as a worker. */
async function held(body: Json = {}): Promise<HeldDream> {
  const { token } = await newWorker(url, AUTH);
  await ask(body);
  return await claimDream(url, token);
}

const post = (dream: HeldDream, path: string, body?: unknown) => ofJob(url, dream, path, body);
const next = (dream: HeldDream) => post(dream, "dreaming/next");

async function question(dream: HeldDream): Promise<{ position: string; content: string; instructions: string }> {
  const { status, json } = await next(dream);
  expect([status, json]).toEqual([200, expect.objectContaining({ over: false, result: null, failure: null })]);
  return json["question"] as { position: string; content: string; instructions: string };
}

const usage = { input_tokens: 10, output_tokens: 5 };
const apply = (dream: HeldDream, position: string, proposals: unknown[]) =>
  post(dream, "dreaming/apply", { position, usage, proposals });

const problem = (code: string) => ({ error: expect.objectContaining({ code }) });

beforeAll(async () => {
  asked = await startAsked("anthropic", SERVER);
  ({ url } = asked.engine);
  provider = await startScriptedProvider();
  asked.play(() => ({ hang: true }));
  database = "busy";
  await observe("This one takes for ever.");
  await ask();
  await asked.provider.reached(1);
});
afterAll(async () => {
  await asked.remove();
  await provider.close();
});
beforeEach(async () => {
  database = `dreams_${++databases}`;
  await observe("The gateway listens on port 8080, says ann.");
});
afterEach(async () => {
  await Promise.all(processes.splice(0).map((each) => each.kill("SIGKILL")));
  const { job_id: jobId, status } = await newestRun();
  if (status === "queued" || status === "running") await call("POST", `/v1/jobs/${String(jobId)}/cancel`);
});

describe("a worker that accepts dreams", () => {
  test("asks the model itself; the run says what it rests on, where it ran, and can be taken back", async () => {
    provider.play([says(fact("The gateway listens on port 8080.", { tags: ["ports"] }))]);
    const { id, log } = await worker();
    const jobId = await ask();
    const run = await over();
    expect(run).toMatchObject({
      status: "done",
      engine: "anthropic",
      model: "scripted-1",
      worker_id: id,
      job_id: jobId,
      events_scanned: 1,
      memories_written: 1,
      progress: null,
      error: null,
      stats: { proposals: 1, accepted: { add: 1 }, questions: 1, input_tokens: 100, output_tokens: 20 },
    });
    const { json: exported } = await call("GET", "/v1/agent/memory/export");
    expect(exported["memory_nodes"]).toMatchObject([
      {
        content: "The gateway listens on port 8080.",
        trust: "derived",
        source: `dreaming run ${String(run["id"])}`,
        props: { dream: { evidence: [{ text: expect.stringContaining("says ann") }] } },
      },
    ]);
    await eventually(async () => (await call("GET", `/v1/jobs/${jobId}`)).json["status"] === "done");
    const { json: job } = await call("GET", `/v1/jobs/${jobId}`);
    expect(job["result"]).toEqual({ run_id: run["id"], events_scanned: 1, memories_written: 1 });
    // The worker's operator has a key of their own; the server's provider was asked for the busy dream alone.
    expect(provider.requests.at(-1)?.headers["x-api-key"]).toBe(WORKER_KEY);
    expect(asked.asked()).toHaveLength(1);
    expect(log() + asked.engine.log() + JSON.stringify([job, run])).not.toContain(WORKER_KEY);
    const { json } = await call("POST", `${PATH}/runs/${String(run["id"])}/revert`);
    expect(json).toMatchObject({ reverted: 1, kept: [] });
    expect(await contents()).toEqual([]);
  });

  test("goes through all pages, and past an event that its engine fails on", async () => {
    await observe("a".repeat(70_000), "b".repeat(70_000), "poison", "four");
    provider.play(({ body }) => (JSON.stringify(body).includes("poison") ? { status: 413 } : says(fact("Read."))));
    await worker();
    let scanned = 0;
    for (let dreams = 0, isBehind = true; isBehind && dreams < 5; dreams++) {
      await eventually(async () => (await call("POST", `${PATH}/run`)).status === 202);
      const run = await over();
      expect(run).toMatchObject({ status: "done", stats: { failure: expect.anything() } });
      scanned += Number(run["events_scanned"]);
      isBehind = (run["stats"] as Json)["more_events"] === true;
    }
    expect(scanned).toBe(5);
    expect(await contents()).toEqual(["Read."]);
  });

  test("that is killed midway leaves the dream to another one, and it is written once", async () => {
    const before = provider.requests.length;
    provider.play([{ hang: true }]);
    const first = await worker();
    await ask();
    await provider.reached(before + 1);
    expect(await newestRun()).toMatchObject({ status: "running", worker_id: first.id, progress: { phase: "asking" } });
    await first.kill("SIGKILL");
    provider.play(() => says(fact("The gateway listens on port 8080.")));
    const second = await worker();
    expect(await over()).toMatchObject({
      status: "done",
      worker_id: second.id,
      events_scanned: 1,
      memories_written: 1,
    });
    const { json } = await call("GET", "/v1/agent/memory/export");
    expect(json["memory_nodes"]).toMatchObject([{ content: "The gateway listens on port 8080.", version: 1 }]);
    // The watermark is where the run left it.
    await eventually(async () => (await call("POST", `${PATH}/run`)).status === 202, 30_000);
    expect(await over()).toMatchObject({ status: "done", events_scanned: 0 });
  });

  test("uses the credential that the engine names, and that use is on record", async () => {
    const credential = { label: "shared", value: { kind: "api_key", key: SHARED_KEY }, shared: true };
    const made = await call("POST", "/v1/credentials", credential);
    expect([made.json, made.status]).toEqual([expect.anything(), 200]);
    const id = String(made.json["id"]);
    const engine = { kind: "anthropic", model: "scripted-1", credential_id: id, host: null, extras: {} };
    expect((await call("PUT", "/v1/agent/engine", engine)).status).toBe(200);
    try {
      provider.play([says(fact("The gateway listens on port 8080."))]);
      const { id: workerId, log } = await worker({ ANTHROPIC_API_KEY: "" });
      const jobId = await ask();
      const run = await over();
      expect(run).toMatchObject({ status: "done", worker_id: workerId, memories_written: 1 });
      expect(provider.requests.at(-1)?.headers["x-api-key"]).toBe(SHARED_KEY);
      const { json: audit } = await call("GET", "/v1/admin/audit?action=credential.reveal");
      expect(JSON.stringify(audit)).toContain(jobId);
      const { json: job } = await call("GET", `/v1/jobs/${jobId}`);
      expect(log() + asked.engine.log() + JSON.stringify([run, job])).not.toContain(SHARED_KEY);

      // For the job that names it alone, and for whoever holds that.
      await Promise.all(processes.splice(0).map((each) => each.kill("SIGKILL")));
      await observe("More.");
      const dream = await held();
      const other = await newWorker(url, AUTH);
      const secretOf = async (token: string, credentialId: string, fence = dream.fence) => {
        const headers = { Authorization: `Bearer ${token}`, "X-Job-Fence": String(fence) };
        const path = `/v1/jobs/${dream.id}/credentials/${credentialId}`;
        return (await send(url, "GET", path, undefined, headers)).status;
      };
      // Before the first question the job names none.
      expect(await secretOf(dream.token, id)).toBe(404);
      await question(dream);
      expect(await secretOf(dream.token, id)).toBe(200);
      expect(await secretOf(dream.token, run["id"] as string)).toBe(404);
      expect(await secretOf(other.token, id)).toBe(409);
      expect(await secretOf(dream.token, id, dream.fence + 1)).toBe(409);
    } finally {
      await setEngine(url, "anthropic", AUTH);
    }
  });

  test("without a key of its own fails the run, and says so", async () => {
    await worker({ ANTHROPIC_API_KEY: "" });
    await ask();
    expect(await over()).toMatchObject({
      status: "failed",
      error: { code: "not_configured", message: expect.stringMatching(/on the worker: .*ANTHROPIC_API_KEY/u) },
      events_scanned: 0,
    });
    expect(await contents()).toEqual([]);
  });

  test("starts no program: the engine cli is the server's", async () => {
    const engine = { kind: "cli", model: "default", credential_id: null, host: null, extras: {} };
    expect((await call("PUT", "/v1/agent/engine", engine)).status).toBe(200);
    try {
      await worker();
      await ask();
      expect(await over()).toMatchObject({
        status: "failed",
        error: { code: "not_configured", message: "on the worker: the engine `cli` answers on servers alone" },
      });
    } finally {
      await setEngine(url, "anthropic", AUTH);
    }
  });

  test("asks no host that its own operator does not list", async () => {
    const { url: host } = asked.provider;
    const engine = { kind: "localmodel", model: "scripted-1", credential_id: null, host, extras: {} };
    expect((await call("PUT", "/v1/agent/engine", engine)).status).toBe(200);
    try {
      const before = asked.asked().length;
      await worker({ ENGINE_LOCALMODEL_HOST: provider.url });
      await ask();
      expect(await over()).toMatchObject({ status: "failed", error: { code: "not_configured" } });
      expect(asked.asked()).toHaveLength(before);
    } finally {
      await setEngine(url, "anthropic", AUTH);
    }
  });
});

describe("the routes of a dream on a worker", () => {
  test("show events and memories, masked, and take an answer once", async () => {
    await observe(`The password is password="hunter2secret9"`, "a".repeat(70_000), "b".repeat(70_000));
    const dream = await held();
    const first = await question(dream);
    expect(first.content).toContain("says ann");
    expect(first.content).not.toContain("hunter2secret9");
    expect(first.instructions).not.toContain("says ann");
    // Asked again, it shows the same, and the former question is none any more.
    const again = await question(dream);
    expect(again.position).not.toBe(first.position);
    expect((await apply(dream, first.position, [])).json).toEqual(problem("conflict"));
    const taken = { status: 200, json: { over: false, result: null, failure: null } };
    expect(await apply(dream, again.position, [fact("One.")])).toEqual(taken);
    expect(await apply(dream, again.position, [fact("Another one.")])).toEqual(taken);
    expect(await contents()).toEqual([]);
    const second = await question(dream);
    expect(second.content).toContain("bbbb");
    // At once, as a client does that did not get the answer in time.
    const both = await Promise.all([1, 2].map(() => apply(dream, second.position, [fact("Two.")])));
    const { id } = await newestRun();
    const result = { run_id: id, events_scanned: 4, memories_written: 2 };
    for (const each of [...both, await apply(dream, second.position, [fact("Three.")]), await next(dream)]) {
      expect(each).toMatchObject({ status: 200, json: { over: true, result, failure: null } });
    }
    expect((await contents()).toSorted()).toEqual(["One.", "Two."]);
    expect(await newestRun()).toMatchObject({ status: "done", stats: { proposals: 2, questions: 2 } });
    expect((await post(dream, "complete", result)).status).toBe(204);
    expect((await apply(dream, second.position, [])).json).toEqual(problem("lease_lost"));
  });

  test("are for whoever holds the dream, under its fence, and for nobody else", async () => {
    const dream = await held();
    const { position } = await question(dream);
    const stranger = { ...dream, token: (await newWorker(url, AUTH)).token };
    const own = await newWorker(url, AUTH);
    expect((await call("POST", "/v1/jobs", { kind: "x.other", payload: {} })).status).toBe(202);
    const headers = { Authorization: `Bearer ${own.token}` };
    const claimed = await send(url, "POST", "/v1/jobs/claim", { kinds: ["x.other"], wait_ms: 20_000 }, headers);
    const { jobs } = (await claimed.json()) as { jobs: { id: string; fence: number }[] };
    const other = { id: jobs[0]?.id ?? "", fence: jobs[0]?.fence ?? 0, token: own.token };
    for (const [path, body] of [
      ["dreaming/next", undefined],
      ["dreaming/apply", { position, usage, proposals: [fact("By somebody else.")] }],
    ] as const) {
      const at = (job: Parameters<typeof ofJob>[1]) => ofJob(url, job, path, body);
      expect(await at({ ...dream, fence: dream.fence + 1 })).toMatchObject({
        status: 409,
        json: problem("lease_lost"),
      });
      expect(await at({ ...dream, fence: dream.fence - 1 })).toMatchObject({
        status: 409,
        json: problem("lease_lost"),
      });
      expect(await at(stranger)).toMatchObject({ status: 409, json: problem("lease_lost") });
      expect(await at({ ...stranger, fence: null })).toMatchObject({ status: 409, json: problem("lease_lost") });
      expect(await at(other)).toMatchObject({ status: 404, json: problem("not_found") });
      expect(await at({ ...other, id: "no-job", fence: null })).toMatchObject({ status: 404 });
      expect((await at({ ...dream, token: "adm" })).status).toBeGreaterThanOrEqual(401);
      expect((await at({ ...dream, token: "nobody" })).status).toBe(401);
    }
    // Its token opens nothing else.
    for (const [method, path] of [
      ["GET", "/v1/agent/memory/export"],
      ["GET", `${PATH}/runs`],
      ["POST", "/v1/query"],
      ["GET", `/v1/jobs/${dream.id}`],
    ] as const) {
      const { status } = await send(url, method, path, undefined, { Authorization: `Bearer ${dream.token}` });
      expect([path, status]).toEqual([path, expect.toSatisfy((code: number) => code === 401 || code === 403)]);
    }
    // A worker of somebody who is no admin has no dreams, unless it is admitted.
    const unadmitted = await newWorker(url, AUTH, { admitted: [] });
    const claim = { kinds: ["dreaming"] };
    const none = await send(url, "POST", "/v1/jobs/claim", claim, { Authorization: `Bearer ${unadmitted.token}` });
    expect(none.status).toBe(403);
    expect((await ofJob(url, { ...dream, token: unadmitted.token, fence: null }, "dreaming/next")).status).toBe(404);
    expect(await contents()).toEqual([]);
  });

  test("check hostile answers, each proposal on its own, and go on", async () => {
    await observe("a".repeat(70_000), "b".repeat(70_000));
    const dream = await held();
    const { position } = await question(dream);
    const nested = JSON.parse(`${"[".repeat(500)}${"]".repeat(500)}`) as unknown;
    const proposals = [
      fact("x".repeat(100_000)),
      fact("Of an event that was not shown.", { evidence: ["e99"] }),
      fact("Of no event.", { evidence: [] }),
      fact("By a name of an object.", { evidence: ["__proto__"] }),
      fact("In another's realm.", { realm: "user:token:adm" }),
      fact("With more fields.", { trust: "stated", id: "mine" }),
      { action: "erase", target: "m1" },
      { action: "invalidate", reason: "So.", evidence: ["e1"], target: "m1", by: "constructor" },
      nested,
      null,
      fact("Sound."),
    ];
    expect((await apply(dream, position, proposals)).status).toBe(200);
    const { position: second } = await question(dream);
    const refused = [
      { position: second, usage },
      { position: second, usage, proposals: [], late: true },
      { position: second, usage: { input_tokens: -1, output_tokens: 0 }, proposals: [] },
      { position: second, usage: { input_tokens: 1e300, output_tokens: 0 }, proposals: [] },
      { position: second, usage, proposals: Array.from({ length: 201 }, () => fact("Many.")) },
      { position: second, usage, proposals: "none" },
      { position: second, usage, proposals: [], caller: { role: "admin" } },
      { position: second, usage, failure: { code: "internal", message: "as I say" } },
    ];
    for (const body of refused) {
      expect(await post(dream, "dreaming/apply", body)).toMatchObject({
        status: 400,
        json: problem("bad_request_body"),
      });
    }
    const huge = await apply(dream, second, [fact("x".repeat(5 * 1024 * 1024))]);
    expect(huge).toMatchObject({ status: 413, json: problem("body_too_large") });
    // Nested too deeply for any stack.
    const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
    const body = JSON.stringify({ position: second, usage, proposals: ["deep", fact("Sound, too.")] });
    const response = await fetch(`${url}/v1/jobs/${dream.id}/dreaming/apply`, {
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        Authorization: `Bearer ${dream.token}`,
        "X-Job-Fence": String(dream.fence),
      },
      body: body.replace('"deep"', deep),
    });
    expect(await response.json()).toMatchObject({ over: true, result: { memories_written: 2 } });
    expect((await newestRun())["stats"]).toMatchObject({
      accepted: { add: 2 },
      refused: { malformed: 6, unknown_event: 2, no_evidence: 1, realm: 1, unknown_record: 1 },
    });
    expect((await contents()).toSorted()).toEqual(["Sound, too.", "Sound."]);
  });

  test("hear why an engine gave no answer: the run fails, or is tried again, as it would be here", async () => {
    const dream = await held();
    const { position } = await question(dream);
    const said = `busy;\0 the key is ${PROVIDER_KEY}, password="hunter2secret9"`;
    const passing = { code: "rate_limited", message: said, retryable: true, retry_after_ms: 5 };
    const answer = await post(dream, "dreaming/apply", { position, usage, failure: passing });
    expect(answer.json).toMatchObject({ over: true, result: null, failure: { retryable: true, retry_after_ms: 5 } });
    expect(JSON.stringify(answer.json)).not.toContain("hunter2secret9");
    expect((await newestRun())["status"]).toBe("running");
    const final = { code: "engine_failed", message: "the provider answered 401" };
    const { position: another } = await question(dream);
    const ended = await post(dream, "dreaming/apply", { position: another, usage, failure: final });
    const failure = { error: "engine_failed: the provider answered 401", retryable: false, retry_after_ms: null };
    expect(ended.json).toEqual({ over: true, result: null, failure });
    expect(await newestRun()).toMatchObject({ status: "failed", error: final, events_scanned: 0 });
    // Both say it again.
    expect((await next(dream)).json).toMatchObject({ over: true, failure });
    expect((await post(dream, "dreaming/apply", { position: another, usage, failure: final })).json).toEqual(
      ended.json,
    );
    expect((await post(dream, "fail", { error: failure.error })).status).toBe(204);
  });

  test("refuse a dream that was cancelled, and the run says so", async () => {
    const dream = await held();
    const { position } = await question(dream);
    expect((await call("POST", `/v1/jobs/${dream.id}/cancel`)).status).toBe(200);
    expect(await next(dream)).toMatchObject({ status: 409, json: problem("conflict") });
    expect(await apply(dream, position, [fact("Too late.")])).toMatchObject({ status: 409, json: problem("conflict") });
    expect((await post(dream, "fail", { error: "cancelled" })).status).toBe(204);
    expect(await newestRun()).toMatchObject({ status: "cancelled" });
    expect(await contents()).toEqual([]);
  });

  test("begin anew for whoever has the job next; the answer of the former holder is refused", async () => {
    const dream = await held();
    const { position } = await question(dream);
    expect((await post(dream, "release")).status).toBe(204);
    const { token } = await newWorker(url, AUTH);
    const later = await claimDream(url, token);
    expect(later.fence).toBeGreaterThan(dream.fence);
    expect((await apply(later, position, [fact("Of another hold.")])).json).toEqual(problem("conflict"));
    const { position: fresh } = await question(later);
    expect((await apply(dream, position, [fact("Late.")])).json).toEqual(problem("lease_lost"));
    expect((await apply(later, fresh, [fact("In time.")])).json).toMatchObject({ over: true });
    expect(await contents()).toEqual(["In time."]);
  });
});
