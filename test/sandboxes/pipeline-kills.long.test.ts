import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startNameServer } from "../../src/sandbox/network/egress/proxy.test-kit.ts";
import { makeRepository, startGitServer, type GitServer } from "../../src/sandbox/network/git-server.test-kit.ts";
import { startRegistry } from "../../src/sandbox/network/registry.test-kit.ts";
import { rootFolder } from "../../src/sandbox/runtime/root.test-kit.ts";
import { bundledAgent } from "./bundled-agent.ts";
import { describeWithAgent } from "./bundled-agent.test-kit.ts";
import { serverWithDaemon } from "./daemon.test-kit.ts";
import { eventsIn, fieldOf } from "./sandboxes.test-kit.ts";

const TIMEOUT_MS = 240_000;
/** Requests name addresses of name servers without ports: this one answers at the usual one. */
const NAME_SERVER = "127.53.0.3";
const STEPS = [
  "LoadImage",
  "MountVolumes",
  "CreateMachine",
  "PrepareDisk",
  "CloneRepositories",
  "InstallBinaries",
  "InstallSkills",
  "RunScript:count",
  "RunPreCommands",
  "ConfigureAgent",
  "StartAgent",
];
const COUNT = 'sleep 1; echo once >> "$HOME/$COUNTED"';

describeWithAgent("a node of its own that is killed in each step of the pipeline", () => {
  const folder = rootFolder("pipeline-kills");
  let names: Awaited<ReturnType<typeof startNameServer>>;
  let registry: Awaited<ReturnType<typeof startRegistry>>;
  let git: GitServer;
  const setUp = {
    ENGINE_SANDBOX_REPOSITORY_HOSTS: "git.test",
    ENGINE_SANDBOX_PLAIN_HTTP_REPOSITORIES: "1",
    ENGINE_SANDBOX_REGISTRY_HOSTS: "registry.test",
    ENGINE_SANDBOX_EGRESS_RANGES: "127.0.0.0/8",
    ENGINE_SANDBOX_AGENT_COMMANDS: "opencode=/usr/bin/node /workspace/app/agent.mjs",
  };

  beforeAll(async () => {
    makeRepository(join(folder, "app.git"), { "agent.mjs": await bundledAgent() });
    makeRepository(join(folder, "tools.git"), { "SKILL.md": "a skill\n" });
    git = await startGitServer(folder);
    mkdirSync(join(folder, "registry"));
    registry = await startRegistry(join(folder, "registry"));
    names = await startNameServer(() => "127.0.0.1", { host: NAME_SERVER, port: 53 });
  });
  afterAll(async () => {
    git.close();
    registry.close();
    await names.close();
  });
  const server = serverWithDaemon(() => ({ server: setUp, node: setUp }));
  const { client } = server;

  const call = async (path: string, body?: unknown): Promise<unknown> => {
    const response = await fetch(`${server.url}/api/v1${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: { "content-type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${response.status} ${text}`);
    return JSON.parse(text);
  };
  const image = async (): Promise<string> => {
    const asked = await call("/images/build", {
      provider: "opencode",
      template_source: 'base = "host"\n[[commands]]\nrun = "echo built > /opt/built"\n',
    });
    for (;;) {
      const build = await call(`/images/builds/${String(fieldOf(asked, "build_id"))}`);
      const status = fieldOf(build, "status");
      if (status === "succeeded") return String(fieldOf(build, "image_id"));
      if (status !== "queued" && status !== "building") throw new Error(JSON.stringify(build));
      await pause(100);
    }
  };
  const launch = async (more: Record<string, unknown>): Promise<string> => {
    const source = `http://git.test:${git.port}`;
    const made = await call("/sandboxes", {
      agent_provider: "opencode",
      agent_config: { model: "m-1" },
      volumes: [{ name: "data", mount_path: "/data", size_mb: 16 }],
      working_directory: "/workspace/app",
      git_repos: [{ url: `${source}/app.git`, dest_path: "/workspace/app" }],
      binaries: [{ manager: "npm", name: "hello-tool" }],
      skills: [{ source: `${source}/tools.git`, name: "tools" }],
      provisioning_scripts: [{ name: "count", script: `COUNTED=script; ${COUNT}`, user: "agent" }],
      pre_commands: [{ command: "sh", args: ["-c", `COUNTED=command; ${COUNT}`] }],
      subagents: [{ name: "reviewer", description: "Reviews.", prompt: "Be strict." }],
      network: { dns_servers: [NAME_SERVER] },
      env_vars: {
        npm_config_registry: `http://registry.test:${registry.port}`,
        npm_config_fetch_retries: "10",
        npm_config_fetch_retry_mintimeout: "500",
        npm_config_fetch_retry_maxtimeout: "1000",
      },
      ...more,
    });
    return String(fieldOf(made, "id"));
  };
  /** Kills the node the first time that a step is begun, and starts it again. */
  const killInEach = async (id: string): Promise<string[]> => {
    const [killed, told]: [string[], string[]] = [[], []];
    const response = await fetch(`${server.url}/api/v1/sandboxes/${id}/stream?from=start`);
    let text = "";
    for await (const piece of response.body ?? []) {
      text += Buffer.from(piece).toString();
      const whole = text.slice(0, text.lastIndexOf("\n\n") + 1);
      for (const { type, data } of eventsIn(whole)) {
        if (type === "log_line" || type === "provisioning_failed") told.push(JSON.stringify(data));
        const to = fieldOf(data, "to");
        if (to === "failed") throw new Error(told.slice(-10).join("\n"));
        if (to === "running") return killed;
        const step = String(fieldOf(data, "step"));
        if (type !== "provisioning_step" || fieldOf(data, "status") !== "in_progress" || killed.includes(step))
          continue;
        killed.push(step);
        // What comes from elsewhere is on its way then.
        git.gate.open = pause(500);
        await server.daemon.end("SIGKILL");
        await server.start();
      }
      text = text.slice(whole.length);
    }
    return killed;
  };

  it("goes on with the sandbox, which is whole at the end", { timeout: TIMEOUT_MS }, async () => {
    const id = await launch({ image: await image() });
    expect(await killInEach(id)).toEqual(STEPS);
    await client.reaches(id, "running");
    const look = [
      "cat /opt/built /workspace/app/file",
      "$HOME/.local/bin/hello-tool",
      "cat ~/.config/opencode/skills/tools/SKILL.md ~/script ~/command",
      "tail -n 1 ~/.config/opencode/agents/reviewer.md",
      "df /data | grep -c /data",
      "pgrep -fc [a]gent.mjs",
    ].join("; ");
    expect(await client.exec(id, look)).toEqual({
      stdout: "built\nthree\nhello\na skill\nonce\nonce\nBe strict.\n1\n1\n",
      exitCode: 0,
    });
    const session = String(fieldOf(await call(`/sandboxes/${id}/sessions`, {}), "id"));
    const content = [{ type: "text", text: "say hello" }];
    const answer = await call(`/sessions/${session}/messages`, { role: "user", content });
    expect(fieldOf(answer, "content")).toEqual([{ type: "text", text: "hello" }]);
    await client.call("DELETE", `/${id}`);
    await client.reaches(id, "gone");
    await pause(500);
  });
});
