import { execFile } from "node:child_process";
import { chmodSync, appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { signalProcess } from "../../src/core/signals.test-kit.ts";

/** A local deployment through its life, by the command line alone. */

const ENTRY = fileURLToPath(new URL("../../bin/engine.js", import.meta.url));
const TIMEOUT_MS = 300_000;
const NAMES = [
  "postgres",
  "query-1",
  "query-2",
  "ingest-1",
  "ingest-2",
  "committer-1",
  "compaction-1",
  "worker-1",
  "edge-1",
  "edge-2",
];

type Up = { url: string; admin_token: string | null; changes: { action: string; subject: string }[] };
type Status = {
  state: string;
  drift: string[];
  processes: { name: string; pid: number; version: string | null; url: string | null }[];
};

describe.skipIf(lacks("PostgreSQL"))("engine deploy, to this machine", () => {
  let home = "";
  let token = "";

  beforeAll(() => {
    home = mkdtempSync(join(tmpdir(), "engine-deploy-"));
    chmodSync(home, 0o711);
  });
  afterAll(async () => {
    await deploy("destroy", "--yes", "--force");
    rmSync(home, { recursive: true, force: true, maxRetries: 3 });
  }, TIMEOUT_MS);

  function deploy(...words: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
    const env = { PATH: process.env["PATH"], HOME: home, ENGINE_HOME: home };
    return new Promise((resolve) => {
      execFile(
        process.execPath,
        [ENTRY, "deploy", ...words, "--name", "lab", "--json"],
        { env },
        (error, stdout, stderr) => {
          resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
        },
      );
    });
  }

  async function up(): Promise<Up> {
    const { code, stdout, stderr } = await deploy("up", "--yes");
    expect({ code, stderr }).toMatchObject({ code: 0 });
    return JSON.parse(stdout) as Up;
  }

  async function status(): Promise<Status> {
    return JSON.parse((await deploy("status")).stdout) as Status;
  }

  async function edges(): Promise<string[]> {
    return (await status()).processes.flatMap(({ name, url }) =>
      name.startsWith("edge-") && url !== null ? [url] : [],
    );
  }

  async function send(edge: string, path: string, body: string): Promise<string> {
    const headers = {
      authorization: `Bearer ${token}`,
      "x-table": "notes",
      "content-type": path === "/v1/query" ? "text/plain" : "application/x-ndjson",
    };
    const reply = await fetch(`${edge}${path}`, { method: "POST", headers, body, signal: AbortSignal.timeout(60_000) });
    const text = await reply.text();
    if (!reply.ok) throw new Error(`${reply.status} ${text}`);
    return text;
  }

  const countOf = async (edge: string) =>
    (JSON.parse(await send(edge, "/v1/query", "SELECT count(*) AS n FROM notes")) as { n: number }).n;

  it("comes up, and shows its token once", { timeout: TIMEOUT_MS }, async () => {
    expect(await deploy("init", "--target", "local", "--yes")).toMatchObject({ code: 0 });
    const first = await up();
    expect(first.changes.map(({ subject }) => subject).sort()).toEqual([...NAMES].sort());
    token = first.admin_token ?? "";
    await send(first.url, "/v1/ingest", '{"body":"one"}\n');
    expect(await countOf(first.url)).toBe(1);
    expect((await fetch(`${first.url}/v1/query`, { method: "POST", body: "SELECT 1" })).status).toBe(401);
    expect(await up()).toEqual({ url: first.url, admin_token: null, changes: [] });
    expect(await status()).toMatchObject({ state: "healthy", drift: [] });
  });

  it("adopts what runs after the supervisor was killed, and starts the rest", { timeout: TIMEOUT_MS }, async () => {
    const before = new Map((await status()).processes.map(({ name, pid }) => [name, pid]));
    signalProcess(supervisor(), "SIGKILL");
    for (const name of ["postgres", "ingest-1"]) signalProcess(before.get(name) ?? 0, "SIGKILL");
    const { url, changes } = await up();
    expect(changes.map(({ subject }) => subject)).toEqual(["supervisor", "postgres", "ingest-1"]);
    const after = await status();
    expect(after.state).toBe("healthy");
    const restarted = after.processes.filter(({ name, pid }) => pid !== before.get(name)).map(({ name }) => name);
    expect(restarted).toEqual(["postgres", "ingest-1"]);
    expect(await countOf(url)).toBe(1);
  });

  it("starts by itself what is killed", { timeout: TIMEOUT_MS }, async () => {
    const pidOf = ({ processes }: Status) => processes.find(({ name }) => name === "query-1")?.pid;
    const killed = pidOf(await status()) ?? 0;
    signalProcess(killed, "SIGKILL");
    const isBack = async () => {
      const now = await status();
      return now.state === "healthy" && pidOf(now) !== killed;
    };
    await expect.poll(isBack, { timeout: 60_000, interval: 500 }).toBe(true);
  });

  it("changes its settings without a failed request", { timeout: TIMEOUT_MS }, async () => {
    const urls = await edges();
    const before = (await status()).processes;
    appendFileSync(join(home, "deployments", "lab", "engine.toml"), 'log.level = "warn"\n');
    const rolled = new AbortController();
    let sent = 0;
    const client = async (start: number) => {
      for (let i = start; !rolled.signal.aborted; i++) {
        await balanced(urls, i, (edge) =>
          i % 2 === 0 ? send(edge, "/v1/ingest", '{"body":"more"}\n') : countOf(edge),
        );
        sent++;
        await delay(100);
      }
    };
    const load = Promise.all([client(0), client(1)]);
    const { changes } = await up();
    rolled.abort();
    await load;
    expect(sent).toBeGreaterThan(20);
    expect(changes.map(({ subject }) => subject)).toEqual(NAMES.filter((name) => name !== "postgres"));
    const pids = new Set(before.filter(({ name }) => name !== "postgres").map(({ pid }) => pid));
    expect((await status()).processes.filter(({ pid }) => pids.has(pid))).toEqual([]);
  });

  it("ends and keeps its data, and comes back with it", { timeout: TIMEOUT_MS }, async () => {
    const [edge = ""] = await edges();
    const rows = await countOf(edge);
    const pids = (await status()).processes.map(({ pid }) => pid);
    expect(await deploy("destroy", "--yes")).toMatchObject({ code: 0 });
    for (const pid of pids) expect(existsSync(`/proc/${pid}/cmdline`) && isOurs(pid)).toBe(false);
    expect(await status()).toMatchObject({ state: "stopped" });
    const { url } = await up();
    expect(await countOf(url)).toBe(rows);
    expect(await deploy("destroy", "--yes", "--force")).toMatchObject({ code: 0 });
    expect(existsSync(join(home, "deployments", "lab"))).toBe(false);
  });

  function supervisor(): number {
    const state = JSON.parse(readFileSync(join(home, "deployments/lab/local/state.json"), "utf8")) as {
      supervisor: { pid: number };
    };
    return state.supervisor.pid;
  }

  /** Not a later process with the same id. */
  function isOurs(pid: number): boolean {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(home);
  }
});

/** As a load balancer does: an edge that refuses the connection, or drains, is passed over for the other one. */
async function balanced(
  urls: readonly string[],
  start: number,
  request: (edge: string) => Promise<unknown>,
): Promise<void> {
  for (let i = 0; i < urls.length; i++) {
    const edge = urls[(start + i) % urls.length] ?? "";
    const isReady = await fetch(`${edge}/health`).then(
      (reply) => reply.ok,
      () => false,
    );
    if (!isReady) continue;
    await request(edge);
    return;
  }
  throw new Error("no edge is ready");
}
