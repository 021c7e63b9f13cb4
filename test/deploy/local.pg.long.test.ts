import { execFile } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { signalProcess } from "../../src/core/signals.test-kit.ts";
import { VERSION } from "../../src/core/version.ts";
import { Balancer } from "../cluster/balancer.ts";

/** A local deployment through its life, by the command line alone. */

const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));
const NEXT_VERSION = "9.8.7";
const TIMEOUT_MS = 300_000;
const SERVERS = [
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

type Change = { action: string; subject: string; reason: string };
type Up = { url: string; admin_token: string | null; changes: Change[] };
type Status = {
  state: string;
  drift: string[];
  processes: { name: string; pid: number; version: string | null; url: string | null }[];
};

describe.skipIf(lacks("PostgreSQL"))("engine deploy, to this machine", () => {
  let home = "";
  let token = "";
  let entry = join(REPOSITORY, "bin/engine.js");

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
        [entry, "deploy", ...words, "--name", "lab", "--json"],
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

  async function send(edge: string, path: string, body: string, bearer = token): Promise<string> {
    const headers = {
      authorization: `Bearer ${bearer}`,
      "x-table": "notes",
      "content-type": path === "/v1/query" ? "text/plain" : "application/x-ndjson",
    };
    const reply = await fetch(`${edge}${path}`, { method: "POST", headers, body, signal: AbortSignal.timeout(60_000) });
    const text = await reply.text();
    if (!reply.ok) throw new Error(`${reply.status} ${text}`);
    return text;
  }

  const settings = () => join(home, "deployments", "lab", "engine.toml");
  const countOf = async (edge: string, bearer = token) =>
    (JSON.parse(await send(edge, "/v1/query", "SELECT count(*) AS n FROM notes", bearer)) as { n: number }).n;

  /** Clients that write and read through whichever edge says that it is healthy, and send nothing twice. */
  async function startLoad(urls: readonly string[]) {
    const balancer = new Balancer(urls);
    await balancer.start();
    const state = { isRunning: true, sent: 0, failures: [] as string[] };
    const attempt = async (request: (edge: string) => Promise<unknown>): Promise<void> => {
      try {
        await request(balancer.next());
        state.sent++;
      } catch (error) {
        state.failures.push(String(error));
      }
    };
    const client = async () => {
      while (state.isRunning) {
        await attempt((edge) => send(edge, "/v1/ingest", '{"body":"more"}\n'));
        await attempt((edge) => countOf(edge));
        await delay(100);
      }
    };
    const clients = Promise.all([client(), client()]);
    const stop = async () => {
      state.isRunning = false;
      await clients;
      await balancer.stop();
    };
    return { state, stop };
  }

  it("comes up, and shows its token once", { timeout: TIMEOUT_MS }, async () => {
    expect(await deploy("init", "--target", "local", "--yes")).toMatchObject({ code: 0 });
    // Longer than edges take to notice, and shorter than the default.
    appendFileSync(settings(), "server.drain_notice_secs = 3\n");
    const first = await up();
    expect(first.changes.map(({ subject }) => subject).sort()).toEqual(["postgres", ...SERVERS].sort());
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
    await expect.poll(isBack, { interval: 500 }).toBe(true);
  });

  it("takes another version and other settings without a failed request", { timeout: TIMEOUT_MS }, async () => {
    const before = (await status()).processes;
    const reader = "somebody-who-reads";
    appendFileSync(settings(), `server.http_keep_alive_secs = 350\nauth.tokens = ["${reader}:read"]\n`);
    const restarts = (reason: string) => SERVERS.map((subject) => ({ action: "restart", subject, reason }));
    const { changes: planned } = JSON.parse((await deploy("up", "--print-only")).stdout) as Up;
    expect(planned).toEqual(restarts("its settings or program changed"));
    entry = makeNextVersion(join(home, "next"));

    const load = await startLoad(await edges());
    const rolling = up();
    const versions = async () => new Set((await status()).processes.flatMap(({ version }) => version ?? []));
    await expect.poll(versions, { interval: 1_000 }).toEqual(new Set([VERSION, NEXT_VERSION]));
    const sentBefore = load.state.sent;
    const { changes } = await rolling;
    const sentSince = load.state.sent - sentBefore;
    await load.stop();
    expect(load.state.failures).toEqual([]);
    expect(sentSince).toBeGreaterThan(20);
    expect(changes).toEqual(restarts(`version ${VERSION} to ${NEXT_VERSION}`));
    const after = await status();
    expect(after).toMatchObject({ state: "healthy", drift: [] });
    const servers = after.processes.filter(({ name }) => name !== "postgres");
    expect(servers.map(({ name, version }) => ({ name, version }))).toEqual(
      SERVERS.map((name) => ({ name, version: NEXT_VERSION })),
    );
    const pids = new Set(before.map(({ pid }) => pid));
    expect(after.processes.filter(({ pid }) => pids.has(pid)).map(({ name }) => name)).toEqual(["postgres"]);
    // The settings hold, beside the token that `up` showed.
    const [edge = ""] = await edges();
    expect((await fetch(`${edge}/health`)).headers.get("keep-alive")).toBe("timeout=350");
    expect(await countOf(edge, reader)).toBeGreaterThan(1);
    await expect(send(edge, "/v1/ingest", '{"body":"no"}\n', reader)).rejects.toThrow("403");
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

/** The same build with another version, in a folder as of an installed package. Returns the path of its program. */
function makeNextVersion(folder: string): string {
  cpSync(join(REPOSITORY, "dist"), join(folder, "dist"), {
    recursive: true,
    filter: (path) => !path.endsWith(".map") && !path.endsWith("/release"),
  });
  for (const path of ["bin", "package.json"]) cpSync(join(REPOSITORY, path), join(folder, path), { recursive: true });
  symlinkSync(join(REPOSITORY, "node_modules"), join(folder, "node_modules"));
  const bundle = join(folder, "dist", "engine.js");
  const pieces = readFileSync(bundle, "utf8").split(`="${VERSION}"`);
  expect(pieces).toHaveLength(2);
  writeFileSync(bundle, pieces.join(`="${NEXT_VERSION}"`));
  return join(folder, "bin", "engine.js");
}
