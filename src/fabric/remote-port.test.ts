import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ManualClock } from "../core/clock.ts";
import { StartupError } from "../core/errors.ts";
import { silentLog } from "../core/log.ts";
import { checkServerUrl } from "./remote-port-http.ts";
import { beat } from "./remote-port-heartbeat.ts";
import { RemotePort } from "./remote-port.ts";
import { NodeRefused } from "./runner-failure.ts";

type Seen = { method: string; url: string; headers: IncomingHttpHeaders; body: string };
type Answer = { status: number; body?: unknown; headers?: Record<string, string> };

let server: Server;
let port: RemotePort;
let seen: Seen[];
/** What the control plane says next. */
let answer: Answer;

const HOLD = { jobId: "a b", holder: "w1", fence: 7 };
const STATE = { cancel_requested: true, lease_expires_at: "2026-01-01T00:00:10.000Z" };
const JOB = {
  id: "j1",
  kind: "x.demo",
  status: "leased",
  priority: 3,
  database: null,
  dedup_key: null,
  worker_id: null,
  selector: null,
  payload: { n: 1 },
  credentials: ["c1"],
  owner: { subject: "ann", role: "write", databases: ["logs"] },
  trace_context: null,
  attempt: 2,
  max_attempts: 5,
  backoff_ms: 5_000,
  lease_secs: 30,
  fence: 9,
  holder: "w1",
  cancel_requested: false,
  progress: null,
  result: null,
  run_after: "2026-01-01T00:00:00.000Z",
  lease_expires_at: "2026-01-01T00:00:30.000Z",
  created_at: "2026-01-01T00:00:00.000Z",
  started_at: "2026-01-01T00:00:00.000Z",
  finished_at: null,
  updated_at: "2026-01-01T00:00:00.000Z",
  something_new: true,
};

beforeEach(async () => {
  seen = [];
  answer = { status: 204 };
  server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => (body += text));
    request.on("end", () => {
      const { method = "", url = "", headers } = request;
      seen.push({ method, url, headers, body });
      response.writeHead(answer.status, { "content-type": "application/json", ...answer.headers });
      response.end(answer.body === undefined ? "" : JSON.stringify(answer.body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port: number } = server.address() as AddressInfo;
  port = new RemotePort({ url: `http://127.0.0.1:${number}`, token: "secret", userAgent: "test" });
});
afterEach(async () => {
  await port.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const refusal = (code: string, status: number, headers = {}): Answer => ({
  status,
  headers,
  body: { error: { code, message: `it is ${code}` } },
});

describe("calls", () => {
  it("carry the token and, of a job, the fence", async () => {
    await port.complete(HOLD, { rows: 1 });
    await port.complete(HOLD, undefined);
    await port.release(HOLD);
    await port.log(HOLD, [{ level: "warn", message: "m" }]);
    await port.fail(HOLD, { error: "e", retryable: true, retryAfterMs: 1.4 });
    expect(seen.map(({ method, url, body }) => [method, url, body])).toEqual([
      ["POST", "/v1/jobs/a%20b/complete", '{"rows":1}'],
      ["POST", "/v1/jobs/a%20b/complete", "null"],
      ["POST", "/v1/jobs/a%20b/release", ""],
      ["POST", "/v1/jobs/a%20b/logs", '{"lines":[{"level":"warn","message":"m"}]}'],
      ["POST", "/v1/jobs/a%20b/fail", '{"error":"e","retryable":true,"retry_after_ms":1}'],
    ]);
    for (const { headers } of seen) {
      expect([headers.authorization, headers["x-job-fence"]]).toEqual(["Bearer secret", "7"]);
    }
  });

  it("understand claims, the state of a hold and credentials", async () => {
    answer = { status: 200, body: { jobs: [JOB] } };
    const { signal } = new AbortController();
    const [job] = await port.claim({ kinds: ["x.demo"], max: 2, waitMs: 40_000, signal });
    expect(JSON.parse(seen[0]?.body ?? "")).toEqual({ kinds: ["x.demo"], max: 2, wait_ms: 25_000 });
    expect(job).toMatchObject({
      id: "j1",
      payload: { n: 1 },
      leaseMs: 30_000,
      fence: 9,
      attempt: 2,
      database: undefined,
      credentials: ["c1"],
      owner: { subject: "ann", role: "write", databases: ["logs"] },
    });
    answer = { status: 200, body: STATE };
    const state = { cancelRequested: true, leaseExpiresAtMs: Date.parse(STATE.lease_expires_at) };
    expect(await port.extend(HOLD, 30_500)).toEqual(state);
    expect(await port.progress(HOLD, 5)).toEqual(state);
    expect(seen.slice(1).map(({ body }) => body)).toEqual(['{"lease_secs":30}', "5"]);
    answer = { status: 200, body: { kind: "pat", token: "t" } };
    expect(await port.credential(HOLD, "c/1")).toEqual({ kind: "pat", token: "t" });
    expect(seen.at(-1)?.url).toBe("/v1/jobs/a%20b/credentials/c%2F1");
  });

  it("tell who listens what is to be cancelled, until they leave", async () => {
    const told: string[] = [];
    const leave = port.onCancel((id) => told.push(id));
    answer = { status: 200, body: { status: "online", drain: true, recommended_poll_ms: 1_000, cancel: ["a", "b"] } };
    expect(await port.heartbeat()).toEqual({ status: "online", drain: true });
    leave();
    await port.heartbeat();
    expect(told).toEqual(["a", "b"]);
  });

  it("end when nobody wants the answer any more", async () => {
    const leaving = new AbortController();
    leaving.abort(new Error("left"));
    const claim = port.claim({ kinds: ["x.demo"], max: 1, waitMs: 25_000, signal: leaving.signal });
    await expect(claim).rejects.toThrow("left");
  });
});

describe("refusals", () => {
  it.each([
    ["lease_lost", 409],
    ["body_too_large", 413],
    ["unavailable", 503],
  ])("%s comes through as it is", async (code, status) => {
    answer = refusal(code, status);
    await expect(port.complete(HOLD, 1)).rejects.toMatchObject({ code, message: `it is ${code}` });
  });

  it("bring along when to try again", async () => {
    answer = refusal("too_many_requests", 429, { "retry-after": "3" });
    await expect(port.heartbeat()).rejects.toMatchObject({ details: { headers: { "Retry-After": "3" } } });
  });

  it.each([
    ["an unknown code", refusal("of_tomorrow", 418), "bad_request"],
    ["a proxy's page", { status: 502 }, "unavailable"],
    ["a success that is none", { status: 200, body: { hello: 1 } }, "unavailable"],
  ])("%s is one of ours", async (_, given, code) => {
    answer = given;
    await expect(port.heartbeat()).rejects.toMatchObject({ code });
  });

  it("of the token are for good; what is forbidden of one job is not", async () => {
    answer = refusal("unauthorized", 401);
    await expect(port.complete(HOLD, 1)).rejects.toThrow(NodeRefused);
    await expect(port.heartbeat()).rejects.toThrow(/refuses this node: it is unauthorized/);
    answer = refusal("forbidden", 403);
    await expect(port.heartbeat()).rejects.toThrow(NodeRefused);
    await expect(port.credential(HOLD, "c")).rejects.toMatchObject({ code: "forbidden" });
  });

  it("are not all that may go wrong: a server that is away is unavailable", async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await expect(port.heartbeat()).rejects.toMatchObject({ code: "unavailable", message: /^no answer from http/ });
    server.listen(0);
  });

  it("gives up a renewal that is not answered while there is time for others", async () => {
    server.removeAllListeners("request").on("request", () => undefined);
    const startedMs = performance.now();
    await expect(port.extend(HOLD, 2_000)).rejects.toMatchObject({ code: "unavailable" });
    expect(performance.now() - startedMs).toBeLessThan(2_000);
    server.closeAllConnections();
  });
});

it("takes no server without TLS, unless that is wished", () => {
  expect(() => checkServerUrl("https://engine.example", false)).not.toThrow();
  expect(() => checkServerUrl("http://engine.example", true)).not.toThrow();
  const refused = () => checkServerUrl("http://127.0.0.1:8080", false);
  expect(refused).toThrow(StartupError);
  expect(refused).toThrow(/has no TLS: .*ENGINE_WORKER_INSECURE=1/);
});

describe("heartbeats", () => {
  it("come seldom while the node is idle, often while it works, and survive failures", async () => {
    const clock = new ManualClock();
    const stop = new AbortController();
    let [beats, busy, fails] = [0, 0, false];
    const heartbeat = () => {
      beats++;
      return fails ? Promise.reject(new Error("away")) : Promise.resolve({ status: "online", drain: false });
    };
    const options = { port: { heartbeat }, clock, log: silentLog, intervalMs: 30_000, busy: () => busy };
    const beating = beat(options, stop.signal);
    const during = async (ms: number) => {
      const before = beats;
      for (let passed = 0; passed < ms; passed += 1_000) {
        clock.advance(1_000);
        await new Promise(setImmediate);
      }
      return beats - before;
    };
    expect(beats).toBe(1);
    await new Promise(setImmediate);
    expect(await during(120_000)).toBe(4);
    busy = 1;
    expect(await during(60_000)).toBe(12);
    busy = 0;
    fails = true;
    expect(await during(60_000)).toBeGreaterThan(5);
    stop.abort();
    await beating;
  });

  it("end when the node is refused", async () => {
    const refused = new NodeRefused("revoked");
    const options = {
      port: { heartbeat: () => Promise.reject(refused) },
      clock: new ManualClock(),
      log: silentLog,
      intervalMs: 30_000,
      busy: () => 0,
    };
    await expect(beat(options, new AbortController().signal)).rejects.toBe(refused);
  });
});
