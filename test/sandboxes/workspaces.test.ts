import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startNameServer } from "../../src/sandbox/network/egress/proxy.test-kit.ts";
import { makeRepository, startGitServer, type GitServer } from "../../src/sandbox/network/git-server.test-kit.ts";
import { sweepMounts } from "../../src/sandbox/runtime/mounts.ts";
import { describeInCage } from "../../src/sandbox/runtime/cage.test-kit.ts";
import { rootFolder } from "../../src/sandbox/runtime/root.test-kit.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { eventsIn, fieldOf, SandboxClient } from "./sandboxes.test-kit.ts";

const TIMEOUT_MS = 120_000;
/** Requests name addresses of name servers without ports: this one answers at the usual one. */
const NAME_SERVER = "127.53.0.2";

describeInCage("a workspace that is launched", () => {
  const folder = rootFolder("workspaces");
  let place: Awaited<ReturnType<typeof temporaryHome>>;
  let names: Awaited<ReturnType<typeof startNameServer>>;
  let server: GitServer;
  let engine: Engine;
  const client = new SandboxClient(() => engine);
  const start = async (): Promise<void> => {
    const env = {
      ENGINE_SANDBOX_WARM_POOL: "0",
      ENGINE_SANDBOX_EGRESS_RANGES: "127.0.0.0/8",
      ENGINE_SANDBOX_REPOSITORY_HOSTS: "git.test",
      ENGINE_SANDBOX_PLAIN_HTTP_REPOSITORIES: "1",
    };
    engine = await startEngine({ home: place.home, env });
  };

  beforeAll(async () => {
    makeRepository(join(folder, "app.git"), { "set-up.sh": "#!/bin/sh\necho set up in $PWD for $WHO > done\n" });
    server = await startGitServer(folder);
    names = await startNameServer((name) => (name === "git.test" ? "127.0.0.1" : undefined), {
      host: NAME_SERVER,
      port: 53,
    });
    place = await temporaryHome();
    await start();
  }, TIMEOUT_MS);
  afterAll(async () => {
    try {
      await engine.stop();
    } finally {
      await engine.stop("SIGKILL");
      await sweepMounts(place.home);
      await place.remove();
      server.close();
      await names.close();
    }
  }, TIMEOUT_MS);

  const toml = (command: string) => `
    [workspace]
    name = "app"
    [workspace.agent]
    provider = "codex"
    [workspace.filesystem]
    working_directory = "/workspace/app"
    [workspace.environment]
    WHO = "ann"
    [workspace.network]
    dns_servers = ["${NAME_SERVER}"]
    [[workspace.repositories]]
    url = "http://git.test:${server.port}/app.git"
    tag = "v1"
    dest_path = "/workspace/app"
    [[workspace.pre_commands]]
    name = "set up"
    command = "${command}"
  `;
  const launch = async (command: string): Promise<string> => {
    const base = `${engine.url}/api/v1/workspaces`;
    const imported = await fetch(`${base}/import`, {
      method: "POST",
      headers: { "content-type": "text/plain" },
      body: toml(command),
    });
    expect(imported.status).toBe(201);
    const id = String(fieldOf(await imported.json(), "id"));
    const launched = await fetch(`${base}/${id}/launch`, { method: "POST" });
    expect(launched.status).toBe(202);
    return String(fieldOf(await launched.json(), "sandbox_id"));
  };
  const stepsOf = async (id: string): Promise<string[]> => {
    const response = await fetch(`${engine.url}/api/v1/sandboxes/${id}/stream?from=start`);
    let text = "";
    for await (const piece of response.body ?? []) {
      text += Buffer.from(piece).toString();
      if (/"to":"(running|failed)"/.test(text)) break;
    }
    return eventsIn(text)
      .filter(({ type }) => type === "provisioning_step" || type === "provisioning_failed")
      .map(
        ({ data }) => `${String(fieldOf(data, "step"))} ${String(fieldOf(data, "status") ?? fieldOf(data, "error"))}`,
      );
  };
  const remove = async (id: string): Promise<void> => {
    await client.call("DELETE", `/${id}`);
    await pause(500);
  };

  it("is what it says, step by step", { timeout: TIMEOUT_MS }, async () => {
    const id = await launch("./set-up.sh");
    await client.reaches(id, "running");
    expect(await stepsOf(id)).toEqual(
      ["CreateMachine", "PrepareDisk", "CloneRepositories", "RunPreCommands"].flatMap((step) => [
        `${step} in_progress`,
        `${step} completed`,
      ]),
    );
    const look = await client.exec(id, "cat /workspace/app/file /workspace/app/done");
    expect(look).toEqual({ stdout: "two\nset up in /workspace/app for ann\n", exitCode: 0 });
    // Commands begin where the agent does.
    expect(await client.exec(id, "pwd; cat file")).toEqual({ stdout: "/workspace/app\ntwo\n", exitCode: 0 });
    const { stdout } = await client.exec(
      id,
      `curl -s -o /dev/null -w '%{http_code}' http://git.test:${server.port}/app.git`,
    );
    expect(stdout).toBe("403");
    await remove(id);
  });

  it("fails with the step and the reason", { timeout: TIMEOUT_MS }, async () => {
    const id = await launch("false");
    await expect(client.reaches(id, "running")).rejects.toThrow("RunPreCommands: set up: it ended with exit code 1");
    const why = "RunPreCommands set up: it ended with exit code 1";
    expect((await stepsOf(id)).slice(-2)).toEqual(["RunPreCommands failed", why]);
    await remove(id);
  });

  it("is made by the next process when one is killed on the way", { timeout: TIMEOUT_MS }, async () => {
    const gate = Promise.withResolvers<void>();
    server.gate.open = gate.promise;
    server.asked.length = 0;
    const id = await launch("./set-up.sh");
    await expect.poll(() => server.asked.length).toBeGreaterThan(0);
    await engine.stop("SIGKILL");
    server.gate.open = Promise.resolve();
    gate.resolve();
    await start();
    await client.reaches(id, "running");
    const look = await client.exec(id, "cat /workspace/app/file /workspace/app/done");
    expect(look).toEqual({ stdout: "two\nset up in /workspace/app for ann\n", exitCode: 0 });
    await remove(id);
  });
});
