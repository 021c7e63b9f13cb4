import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { startJobsApi, type JobsApi } from "./jobs.test-kit.ts";
import type { Hold } from "../../src/fabric/job.ts";
import { runHere, type Outcome } from "../../src/cli/cli.test-kit.ts";

let api: JobsApi;
beforeEach(async () => {
  api = await startJobsApi();
});
afterEach(() => api.close());

const run = (...argv: string[]): Promise<Outcome> =>
  runHere([...argv, "--server", api.url], { env: { ENGINE_TOKEN: "ops" } });

async function json(...argv: string[]): Promise<unknown> {
  const { code, stdout, stderr } = await run(...argv, "--json");
  expect([code, stderr]).toEqual([0, ""]);
  return JSON.parse(stdout);
}

async function runningJob(): Promise<Hold> {
  const { id, token } = await api.newWorker();
  const jobId = await api.newJob();
  const [job] = await api.claim(token);
  return { jobId, holder: id, fence: job?.fence ?? 0 };
}

describe("jobs", () => {
  test("are listed, filtered, and shown", async () => {
    expect(await run("jobs", "list")).toEqual({ code: 0, stdout: "there are no jobs\n", stderr: "" });
    const first = await api.newJob({ payload: { n: 1 } });
    const second = await api.newJob({ kind: "test.both", database: "a" });
    const { stdout } = await run("jobs", "list");
    expect(stdout).toMatch(/^ID +KIND +STATUS +DATABASE +ATTEMPT +HOLDER +CREATED +ERROR *\n/);
    expect(stdout).toMatch(new RegExp(`${second} +test.both +queued +a +0/5 .*\n${first} +x.task +queued +- +0/5 `));
    const ids = async (...more: string[]) =>
      ((await json("jobs", "list", ...more)) as { id: string }[]).map(({ id }) => id);
    expect(await ids("--limit", "1")).toEqual([second]);
    expect(await ids("--kind", "x.task")).toEqual([first]);
    expect(await ids("--status", "failed")).toEqual([]);
    expect(await json("jobs", "show", first)).toMatchObject({ id: first, payload: { n: 1 } });
    expect((await run("jobs", "show", first)).stdout).toContain('payload           {"n":1}\n');
    const none = await run("jobs", "show", "nothing");
    expect([none.code, none.stderr]).toEqual([1, "error: there is no job nothing\n"]);
    expect((await run("jobs", "list", "--status", "lost")).code).toBe(2);
  });

  test("are cancelled and tried again", async () => {
    const id = await api.newJob();
    expect((await run("jobs", "cancel", id)).stdout).toBe(`job ${id} is cancelled\n`);
    expect((await run("jobs", "retry", id)).stdout).toBe(`job ${id} is queued\n`);
    const again = await run("jobs", "retry", id);
    expect([again.code, again.stderr]).toEqual([1, `error: job ${id} cannot be retried: it is queued\n`]);
    await api.call("POST", `/v1/jobs/${id}/cancel`, { by: "ops" });
    const { jobId } = await runningJob();
    expect((await run("jobs", "cancel", jobId)).stdout).toBe(`job ${jobId} is told to stop\n`);
    expect(await json("jobs", "cancel", jobId)).toMatchObject({ id: jobId, status: "leased" });
  });

  test("are followed to their end", async () => {
    const hold = await runningJob();
    await api.logs.append(hold, [{ level: "warn", message: "slow \u001b[2J" }]);
    await api.fabric.progress(hold, { done: 1 });
    await api.fabric.complete(hold, { rows: 3 });
    const { code, stdout, stderr } = await run("jobs", "show", hold.jobId, "--follow");
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(/^job done, attempt 1\/5, progress \{"done":1\}\n20\S+Z warn  slow \\u001b\[2J\n$/);
    const events = (await run("jobs", "show", hold.jobId, "--follow", "--json")).stdout.trim().split("\n");
    expect(events.map((line) => JSON.parse(line))).toMatchObject([
      { event: "state", data: { status: "done", progress: { done: 1 } } },
      { event: "log", id: 1 },
      { event: "end", data: { status: "done" } },
    ]);
    const failing = await runningJob();
    await api.fabric.fail(failing, { error: "broken" });
    const failed = await run("jobs", "show", failing.jobId, "--follow");
    expect([failed.code, failed.stdout]).toEqual([1, "job failed, attempt 1/5, error: broken\n"]);
    expect((await run("jobs", "show", "nothing", "--follow")).stderr).toBe("error: there is no job nothing\n");
  });
});

describe("a stream that breaks", () => {
  let server: Server;
  let asked: (string | undefined)[];
  /** Answers by the number of the request. */
  const start = async (answers: readonly (string | number)[]): Promise<string> => {
    asked = [];
    server = createServer((request, response) => {
      const answer = answers[asked.length];
      asked.push(request.headers["last-event-id"]?.toString());
      if (answer === undefined || answer === BROKEN) request.socket.destroy();
      else if (typeof answer === "number") response.writeHead(answer).end(`{"error":{"message":"not now"}}`);
      else response.writeHead(200, { "content-type": "text/event-stream" }).end(answer);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  };
  afterEach(() => server.close());
  const follow = (url: string) => runHere(["jobs", "show", "j", "--follow", "--server", url]);

  const BROKEN = "";
  const STATE = 'event: state\ndata: {"status":"leased","attempt":1,"max_attempts":5,"holder":"w"}\n\n';
  const log = (id: number) => `event: log\nid: ${id}\ndata: {"at":"T","level":"info","message":"m${id}"}\n\n`;
  const END = 'event: end\ndata: {"status":"done"}\n\n';

  test("is taken up after the last line", async () => {
    const url = await start([STATE + log(1) + log(2), BROKEN, 503, `: keep-alive\n\n${STATE}${log(3)}${END}`]);
    const { code, stdout, stderr } = await follow(url);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toBe("job leased, attempt 1/5, on w\nT info  m1\nT info  m2\nT info  m3\n");
    expect(asked).toEqual(["0", "2", "2", "2"]);
  });

  test("is given up when the server says something else than events", async () => {
    const broken = await follow(await start(["event: log\ndata: nonsense\n\n"]));
    expect([broken.code, broken.stderr]).toEqual([
      1,
      expect.stringMatching(/^error: what answers at .* is no engine\n$/),
    ]);
  });
});

describe("workers", () => {
  test("are admitted with a token that is shown once, listed, and revoked", async () => {
    expect((await run("worker", "list")).stdout).toBe("there are no workers\n");
    const made = await run(
      "worker",
      "create",
      "--name",
      "gpu-1",
      "--capabilities",
      "x.a, x.b",
      "--labels",
      "gpu=yes,zone=b=c",
    );
    const token = made.stdout.trim();
    expect(made.code).toBe(0);
    expect(made.stdout).toMatch(/^\S+\n$/);
    expect(made.stderr).toMatch(/^worker \S+ admitted; its token is shown this once\n$/);
    expect(await api.claim(token, { kinds: ["x.a"] })).toEqual([]);
    const [worker] = (await json("worker", "list")) as { id: string }[];
    expect(worker).toMatchObject({ name: "gpu-1", capabilities: ["x.a", "x.b"], labels: { gpu: "yes", zone: "b=c" } });
    const { stdout } = await run("worker", "list");
    expect(stdout).toMatch(/^ID +NAME +STATUS +CAPABILITIES +OWNER +JOBS OF +LABELS +HOST +TOKEN +LAST SEEN *\n/);
    expect(stdout).toMatch(/ gpu-1 +\S+ +x\.a, x\.b +ops +its owner alone +gpu=yes, zone=b=c +- /);
    expect(stdout).not.toContain(token);
    expect((await run("worker", "revoke", worker?.id ?? "")).stdout).toBe(`worker ${worker?.id} revoked\n`);
    expect((await api.call("POST", "/v1/workers/heartbeat", { by: token })).status).toBe(401);
    expect(await json("worker", "create", "--name", "w")).toEqual({
      worker_id: expect.any(String),
      token: expect.any(String),
    });
  });

  test("are admitted for everybody's jobs by an admin", async () => {
    const { id } = await api.newWorker();
    const admit = (token: string, ...more: string[]) =>
      runHere(["worker", "admit", id, ...more, "--server", api.url], { env: { ENGINE_TOKEN: token } });
    expect((await admit("ops")).code).not.toBe(0);
    const said = async (...more: string[]) => (await admit("root", ...more)).stdout;
    expect(await said("--kinds", "x.a, x.b")).toBe(`worker ${id} may have jobs of everybody: x.a, x.b\n`);
    expect(await said()).toBe(`worker ${id} may have jobs of everybody\n`);
    expect(await said("--none")).toBe(`worker ${id} may have jobs of its owner alone\n`);
    expect((await admit("root", "--none", "--kinds", "x.a")).code).toBe(2);
  });

  test("are not admitted with labels that are none", async () => {
    for (const labels of ["gpu", "=x", "a=", "a=1,a=2", ""]) {
      const { code, stderr } = await run("worker", "create", "--name", "w", "--labels", labels);
      expect([code, stderr.startsWith("error: --labels ")]).toEqual([2, true]);
    }
    expect((await run("worker", "create")).code).toBe(2);
  });
});
