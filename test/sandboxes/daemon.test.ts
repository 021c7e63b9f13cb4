import { spawn } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { listMounts, sweepMounts } from "../../src/sandbox/runtime/mounts.ts";
import { loopFiles } from "../../src/sandbox/runtime/loop-files.test-kit.ts";
import { describeAsRoot } from "../../src/sandbox/runtime/root.test-kit.ts";
import { cleanEnv, startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { fieldOf, SandboxClient } from "./sandboxes.test-kit.ts";

const ENTRY = fileURLToPath(new URL("../../bin/engine.js", import.meta.url));
const TIMEOUT_MS = 120_000;

/** `engine worker run`, in a process of its own. */
type Daemon = { log(): string; end(signal: NodeJS.Signals): Promise<number | null> };

function startDaemon(home: string, url: string, token: string): Daemon {
  const child = spawn(process.execPath, [ENTRY, "worker", "run", "--accept", "sandbox"], {
    env: {
      ...cleanEnv(),
      ENGINE_HOME: home,
      ENGINE_SERVER_URL: url,
      ENGINE_WORKER_TOKEN: token,
      ENGINE_WORKER_INSECURE: "1",
      ENGINE_SANDBOX_WARM_POOL: "0",
      ENGINE_SANDBOX_NODE_LABELS: "zone=a",
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let log = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (log += text));
  const ended = new Promise<number | null>((resolve) => child.once("exit", (code) => resolve(code)));
  return {
    log: () => log,
    end: (signal) => {
      child.kill(signal);
      return ended;
    },
  };
}

describeAsRoot("sandboxes of a node of its own", () => {
  let server: Awaited<ReturnType<typeof temporaryHome>>;
  let node: Awaited<ReturnType<typeof temporaryHome>>;
  let engine: Engine;
  let daemon: Daemon;
  let token: string;
  const client = new SandboxClient(() => engine);
  const start = async (): Promise<void> => {
    daemon = startDaemon(node.home, engine.url, token);
    const isTaking = () => daemon.log().includes("taking sandboxes");
    for (let waitedMs = 0; !isTaking() && waitedMs < 60_000; waitedMs += 50) await pause(50);
    if (!isTaking()) throw new Error(`the daemon does not take sandboxes; its log:\n${daemon.log()}`);
  };

  beforeAll(async () => {
    [server, node] = [await temporaryHome(), await temporaryHome()];
    engine = await startEngine({ home: server.home, env: { ENGINE_SANDBOX_RUNTIME: "off" } });
    const made = await fetch(`${engine.url}/v1/workers`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ name: "node-1", capabilities: ["sandbox"] }),
    });
    token = String(fieldOf(await made.json(), "token"));
    await start();
  }, TIMEOUT_MS);
  afterAll(async () => {
    try {
      expect(await daemon.end("SIGTERM")).toBe(0);
      expect((await listMounts(node.home)).map(({ at }) => at)).toEqual([]);
      expect(loopFiles(node.home)).toEqual([]);
    } finally {
      await daemon.end("SIGKILL");
      await engine.stop("SIGKILL");
      await sweepMounts(node.home);
      await Promise.all([server.remove(), node.remove()]);
    }
  }, TIMEOUT_MS);

  it("does what the server wishes, over the connection that the node opened", { timeout: TIMEOUT_MS }, async () => {
    const id = await client.create();
    expect(await client.exec(id, "echo far away; exit 3")).toEqual({ stdout: "far away\n", exitCode: 3 });
    expect((await client.call("PUT", `/${id}/files/home/agent/f`, "x".repeat(1_000_000))).status).toBe(200);
    expect((await client.call("GET", `/${id}/files/home/agent/f`)).text).toBe("x".repeat(1_000_000));
    expect((await client.call("POST", `/${id}/pause`)).json).toMatchObject({ state: "paused" });
    expect((await client.call("POST", `/${id}/resume`)).json).toMatchObject({ state: "running" });
    await client.call("DELETE", `/${id}`);
  });

  it("builds images, and has sandboxes of them", { timeout: TIMEOUT_MS }, async () => {
    const images = async (path: string, init?: RequestInit): Promise<unknown> =>
      (await fetch(`${engine.url}/api/v1/images${path}`, init)).json();
    // More than a part of the archive.
    const run = "head -c 6000000 /dev/urandom > /opt/noise; echo made > /opt/made";
    const asked = await images("/build", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        provider: "codex",
        template_source: `base = "host"\n[[commands]]\nrun = "${run}"\n`,
      }),
    });
    let build: unknown;
    do {
      await pause(100);
      build = await images(`/builds/${String(fieldOf(asked, "build_id"))}`);
    } while (["queued", "building"].includes(String(fieldOf(build, "status"))));
    expect(build).toMatchObject({ status: "succeeded", error: null });
    const id = await client.create({ image: String(fieldOf(build, "image_id")) });
    expect(await client.exec(id, "cat /opt/made; stat -c %s /opt/noise")).toEqual({
      stdout: "made\n6000000\n",
      exitCode: 0,
    });
    await client.call("DELETE", `/${id}`);
  });

  it.each(["SIGKILL", "SIGTERM"] as const)(
    "has sandboxes go on when the node gets %s",
    { timeout: TIMEOUT_MS },
    async (signal) => {
      const id = await client.create();
      const command = "for i in $(seq 1 50); do echo line $i; sleep 0.1; done; exit 4";
      const running = client.exec(id, command);
      await pause(1_500);
      await daemon.end(signal);
      await start();
      // The server attached to the command again.
      const lines = Array.from({ length: 50 }, (_, i) => `line ${i + 1}\n`).join("");
      expect(await running).toEqual({ stdout: lines, exitCode: 4 });
      expect(daemon.log()).toContain("going on with a sandbox of the process before");
      await client.call("DELETE", `/${id}`);
      await pause(1_000);
    },
  );
});
