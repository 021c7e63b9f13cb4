import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { startNameServer } from "../../src/sandbox/network/egress/proxy.test-kit.ts";
import { makeRepository, startGitServer } from "../../src/sandbox/network/git-server.test-kit.ts";
import { bundledAgent } from "../../test/sandboxes/bundled-agent.ts";
import { defineBenchmark, type Side } from "../suite/benchmark.ts";
import { NODE } from "./agent-server.ts";
import type { SandboxClient } from "./client.ts";
import { requireSandboxes, settled, startSandboxServer } from "./with-server.ts";

export const benchmark = defineBenchmark({
  name: "sandbox/launch",
  question:
    "How long is it from the launch of a workspace until its sandbox runs, and until its agent, which comes with its small " +
    "repository, has answered a first message; from a prepared machine and cold?",
  notMeasured:
    "Networks: the repository and the name server are on this machine. The agent is the scripted one of the tests. As root, " +
    "on Linux.",
  options: z.strictObject({}),
  measures: {
    running: { unit: "ms", better: "less", doc: "until the sandbox runs" },
    answered: { unit: "ms", better: "less", doc: "until the agent has answered" },
  },
  rounds: 5,
  open: async (_options, { folder }) => {
    requireSandboxes("sandbox/launch", "/usr/bin/node", "git");
    const ends: (() => unknown)[] = [];
    const close = async () => {
      for (const end of ends.toReversed()) await end();
    };
    try {
      await mkdir(folder, { recursive: true });
      makeRepository(join(folder, "app.git"), { "agent.mjs": await bundledAgent() });
      const git = await startGitServer(folder);
      ends.push(() => git.close());
      const names = await startNameServer(addressOf, { host: NAME_SERVER, port: 53 });
      ends.push(() => names.close());
      const sideOf = async (name: string, warmPool: number): Promise<Side> => {
        const { server, client, stop } = await startSandboxServer({ warmPool, env: ENV });
        ends.push(stop);
        const workspace = await client.addWorkspace(workspaceOf(git.port));
        return { name, round: () => launch(client, workspace), processes: () => ({ server: server.pid }) };
      };
      return { sides: [await sideOf("engine, prepared", 2), await sideOf("engine, cold", 0)], close };
    } catch (error) {
      await close();
      throw error;
    }
  },
});

/** Requests name addresses of name servers without ports: this one answers at the usual one. */
const NAME_SERVER = "127.53.0.9";

function addressOf(name: string): string | undefined {
  return name === "git.test" ? "127.0.0.1" : undefined;
}

const ENV = {
  ENGINE_SANDBOX_EGRESS_RANGES: "127.0.0.0/8",
  ENGINE_SANDBOX_REPOSITORY_HOSTS: "git.test",
  ENGINE_SANDBOX_PLAIN_HTTP_REPOSITORIES: "1",
  ENGINE_SANDBOX_AGENT_COMMANDS: `claude-code=${NODE} /workspace/app/agent.mjs`,
};

function workspaceOf(gitPort: number): object {
  return {
    name: "app",
    spec: {
      // Naming the model has the agent started before the sandbox runs.
      agent: { provider: "claude-code", model: "scripted" },
      network: { dns_servers: [NAME_SERVER] },
      repositories: [{ url: `http://git.test:${gitPort}/app.git`, dest_path: "/workspace/app" }],
    },
  };
}

async function launch(client: SandboxClient, workspace: string): Promise<Record<string, number>> {
  const startedMs = performance.now();
  const id = await client.running(await client.launch(workspace));
  const running = performance.now() - startedMs;
  const said = await client.say(await client.converse(id), "say hello");
  const answered = performance.now() - startedMs;
  if (said !== "hello") throw new Error(`the agent said ${JSON.stringify(said)}`);
  await client.remove(id);
  await settled();
  return { running, answered };
}
