import { spawn } from "node:child_process";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { cleanEnv, startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { freePort } from "../../src/core/waiting.test-kit.ts";

/** A node daemon as a process, against a server as a process. */
const BIN = fileURLToPath(new URL("../../bin/engine.js", import.meta.url));
const PATIENCE = { interval: 50 };

const SOON = { ENGINE_FABRIC_SWEEP_SECS: "1", ENGINE_FABRIC_LEASE_SECS: "10" };

let engine: Engine;
let home: string;
let removeHome: () => Promise<void>;
const daemons: Daemon[] = [];

beforeAll(async () => {
  ({ home, remove: removeHome } = await temporaryHome());
  // Where it will listen again: one that the system chose is not free again at once.
  engine = await startEngine({ home, port: await freePort(), env: SOON });
});
afterEach(async () => {
  await Promise.all(daemons.splice(0).map((daemon) => daemon.stop("SIGKILL")));
});
afterAll(async () => {
  await engine.stop();
  await removeHome();
});

type Daemon = {
  log: () => string;
  ended: Promise<number | null>;
  stop(signal: NodeJS.Signals): Promise<number | null>;
};

async function call(method: string, path: string, body?: unknown): Promise<Record<string, unknown>> {
  const response = await fetch(engine.url + path, {
    method,
    headers: { "Content-Type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  expect([text, Math.floor(response.status / 100)]).toEqual([text, 2]);
  return text === "" ? {} : (JSON.parse(text) as Record<string, unknown>);
}

async function newWorker(name: string): Promise<{ id: string; token: string }> {
  const { worker_id: id, token } = await call("POST", "/v1/workers", { name });
  return { id: String(id), token: String(token) };
}

async function enqueue(kind: string, payload: unknown, more: object = {}): Promise<string> {
  return String((await call("POST", "/v1/jobs", { kind, payload, ...more }))["job_id"]);
}

const jobOf = async (id: string) => await call("GET", `/v1/jobs/${id}`);
const statusOf = async (id: string) => (await jobOf(id))["status"];

/** A program that runs a job as this text of Node says: `payload` is parsed, `attempt` a number. */
function program(name: string, text: string): string {
  const file = join(home, name);
  const head = `#!${process.execPath}\nconst { readFileSync } = require("node:fs");\n`;
  const given =
    "const payload = JSON.parse(readFileSync(0, 'utf8'));\nconst attempt = +process.env.ENGINE_JOB_ATTEMPT;\n";
  writeFileSync(file, head + given + text);
  chmodSync(file, 0o755);
  return file;
}

function startDaemon(args: readonly string[], env: Record<string, string> = {}): Daemon {
  const child = spawn(process.execPath, [BIN, "worker", "run", "--server", engine.url, ...args], {
    env: { ...cleanEnv(), ENGINE_HOME: home, ENGINE_WORKER_INSECURE: "1", ...env },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let log = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (log += text));
  const ended = new Promise<number | null>((resolve) => child.once("exit", (code) => resolve(code)));
  const daemon = { log: () => log, ended, stop: (signal: NodeJS.Signals) => (child.kill(signal), ended) };
  daemons.push(daemon);
  return daemon;
}

describe("a node daemon", () => {
  it("runs a program for each job, and says what became of it", async () => {
    const { id: workerId, token } = await newWorker("node-1");
    const run = program(
      "run",
      `console.error("attempt", attempt, process.env.ENGINE_JOB_KIND);
      if (payload.how === "late" && attempt < 2) process.exit(75);
      if (payload.how === "bad") { console.error("it is bad"); process.exit(3); }
      if (payload.how === "text") { console.log("just text"); process.exit(0); }
      console.log(JSON.stringify({ n: payload.n, secrets: Object.keys(process.env).filter((k) => /TOKEN|SERVER/.test(k)) }));`,
    );
    const daemon = startDaemon(["--accept", "x.demo", "--exec", run, "--max-concurrent", "3", "--name", "here"], {
      ENGINE_WORKER_TOKEN: token,
    });
    const jobs = {
      well: await enqueue("x.demo", { n: 1 }),
      late: await enqueue("x.demo", { n: 2, how: "late" }, { backoff_ms: 10 }),
      bad: await enqueue("x.demo", { how: "bad" }),
      text: await enqueue("x.demo", { how: "text" }),
    };
    await expect.poll(() => statusOf(jobs.late), PATIENCE).toBe("done");
    await expect.poll(() => statusOf(jobs.text), PATIENCE).toBe("done");
    expect(await jobOf(jobs.well)).toMatchObject({ status: "done", result: { n: 1, secrets: [] }, holder: workerId });
    expect(await jobOf(jobs.late)).toMatchObject({ attempt: 2, result: { n: 2 } });
    expect(await jobOf(jobs.text)).toMatchObject({ result: "just text" });
    expect(await jobOf(jobs.bad)).toMatchObject({
      status: "failed",
      attempt: 1,
      error: "it ended with 3\nattempt 1 x.demo\nit is bad",
    });
    const { workers } = (await call("GET", "/v1/workers")) as { workers: { id: string; status: string }[] };
    expect(workers.find(({ id }) => id === workerId)?.status).toBe("online");
    expect(await daemon.stop("SIGTERM")).toBe(0);
    expect(daemon.log()).not.toContain(token);
  });

  it.skipIf(lacks("ps"))("stops a program whose job is cancelled, and all that it started", async () => {
    const { token } = await newWorker("node-2");
    const mark = `mark-${process.pid}`;
    const run = program(
      "stubborn",
      `const { spawn } = require("node:child_process");
      spawn(process.execPath, ["-e", "setInterval(() => undefined, 1000)", "${mark}"], { stdio: "ignore" });
      process.on("SIGTERM", () => { console.error("told"); process.exit(1); });
      console.error("begun");
      setInterval(() => undefined, 1000);`,
    );
    startDaemon(["--accept", "x.long", "--exec", run], { ENGINE_WORKER_TOKEN: token });
    const id = await enqueue("x.long", null);
    await expect.poll(() => running(mark), PATIENCE).toBeGreaterThan(0);
    await call("POST", `/v1/jobs/${id}/cancel`);
    await expect.poll(() => statusOf(id), PATIENCE).toBe("cancelled");
    await expect.poll(() => running(mark), PATIENCE).toBe(0);
  });

  it("gives its jobs back when it is told to stop, without a lost attempt", async () => {
    const { token } = await newWorker("node-3");
    const run = program("slow", `setInterval(() => undefined, 1000);`);
    const args = ["--accept", "x.slow", "--exec"];
    const first = startDaemon([...args, run], { ENGINE_WORKER_TOKEN: token, ENGINE_DRAIN_TIMEOUT_SECS: "1" });
    const id = await enqueue("x.slow", null, { max_attempts: 1 });
    await expect.poll(() => statusOf(id), PATIENCE).toBe("leased");
    expect(await first.stop("SIGTERM")).toBe(0);
    expect(await jobOf(id)).toMatchObject({ status: "queued", attempt: 0 });
    startDaemon([...args, program("quick", "console.log(7)")], { ENGINE_WORKER_TOKEN: token });
    await expect.poll(async () => (await jobOf(id))["result"], PATIENCE).toBe(7);
  });

  it("survives a server that is away, and ends when its token is revoked", async () => {
    const { id: workerId, token } = await newWorker("node-4");
    const daemon = startDaemon(
      ["--accept", "x.any", "--exec", program("any", "setTimeout(() => console.log(1), payload)")],
      {
        ENGINE_WORKER_TOKEN: token,
        ENGINE_DRAIN_TIMEOUT_SECS: "1",
      },
    );
    await expect.poll(() => daemon.log(), PATIENCE).toContain("registered");
    const port = Number(new URL(engine.url).port);
    await engine.stop();
    engine = await startEngine({ home, port, env: SOON });
    const id = await enqueue("x.any", 0);
    await expect.poll(() => statusOf(id), PATIENCE).toBe("done");
    // While it has a job it soon asks something: a claim that waits for jobs would hear of it in 25 s.
    const held = await enqueue("x.any", 500);
    await expect.poll(() => statusOf(held), PATIENCE).toBe("leased");
    await call("DELETE", `/v1/workers/${workerId}`);
    expect(await daemon.ended).toBe(4);
    expect(daemon.log()).toContain("refuses this node");
  });

  it("waits, online, where nothing runs its kinds yet", async () => {
    const { id: workerId, token } = await newWorker("node-5");
    const daemon = startDaemon([], { ENGINE_WORKER_TOKEN: token });
    await expect.poll(() => daemon.log(), PATIENCE).toContain("registered");
    expect(daemon.log()).toContain("no handler for jobs of source_sync");
    const statusOfNode = async () => {
      const { workers } = (await call("GET", "/v1/workers")) as { workers: { id: string; status: string }[] };
      return workers.find(({ id }) => id === workerId)?.status;
    };
    await expect.poll(statusOfNode, PATIENCE).toBe("online");
    // Workers of other programs may ask for them, and hear of nothing.
    const claim = await fetch(`${engine.url}/v1/jobs/claim`, {
      method: "POST",
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` },
      body: JSON.stringify({ kinds: ["source_sync", "data_source_sync", "dreaming"] }),
    });
    expect([claim.status, await claim.json()]).toEqual([200, { jobs: [] }]);
    const made = await fetch(`${engine.url}/v1/jobs`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ kind: "dreaming" }),
    });
    expect(made.status).toBe(403);
    expect(await daemon.stop("SIGTERM")).toBe(0);
  });

  it("runs what it can beside kinds that nothing runs yet", async () => {
    const { token } = await newWorker("node-6");
    const run = program("beside", "console.log(payload + 1)");
    const daemon = startDaemon(["--accept", "source_sync,x.beside", "--exec", run], { ENGINE_WORKER_TOKEN: token });
    const id = await enqueue("x.beside", 1);
    await expect.poll(async () => (await jobOf(id))["result"], PATIENCE).toBe(2);
    expect(daemon.log()).toContain("no handler for jobs of source_sync");
  });

  it.each([
    ["no server", [], { ENGINE_SERVER_URL: "" }, 2, "ENGINE_SERVER_URL"],
    ["no token", [], { ENGINE_WORKER_TOKEN: "" }, 2, "engine worker create"],
    ["no TLS", [], { ENGINE_WORKER_INSECURE: "0" }, 2, "has no TLS"],
    ["a kind that nothing is called", ["--accept", "source sync"], {}, 2, "no kind of job is called so"],
    ["own kinds without a program", ["--accept", "x.a"], {}, 2, "--exec PROGRAM"],
    ["a program that is none", ["--accept", "x.a", "--exec", "/nowhere"], {}, 2, "no program that may be run"],
    ["a number that is none", ["--max-concurrent", "0"], {}, 2, "expected an integer from 1 to 100"],
    ["another token", ["--accept", "x.a", "--exec", "true"], {}, 4, "refuses this node"],
  ])("does not start with %s", async (what, args, env, code, message) => {
    const server = what === "no server" ? [] : ["--server", engine.url];
    const child = spawn(process.execPath, [BIN, "worker", "run", ...server, ...args], {
      env: { ...cleanEnv(), ENGINE_HOME: home, ENGINE_WORKER_TOKEN: "t", ENGINE_WORKER_INSECURE: "1", ...env },
      stdio: ["ignore", "ignore", "pipe"],
    });
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => (said += text));
    const closed = new Promise<number | null>((resolve) => child.once("close", resolve));
    daemons.push({ log: () => said, ended: closed, stop: (signal) => (child.kill(signal), closed) });
    const ended = await closed;
    expect([said, ended]).toEqual([expect.stringContaining(message), code]);
  });
});

/** Processes of this machine with that word in their command line. */
async function running(word: string): Promise<number> {
  const child = spawn("ps", ["-eo", "args"], { stdio: ["ignore", "pipe", "ignore"] });
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (piece: string) => (text += piece));
  await new Promise((resolve) => child.once("close", resolve));
  return text.split("\n").filter((line) => line.includes(word)).length;
}
