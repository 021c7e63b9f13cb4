import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startNameServer } from "../../src/sandbox/network/egress/proxy.test-kit.ts";
import { makeRepository, startGitServer } from "../../src/sandbox/network/git-server.test-kit.ts";
import { median } from "../../src/capacity/quantile.ts";
import { shown } from "../support/report.ts";
import { withServer } from "./with-server.ts";

/** Requests name addresses of name servers without ports: this one answers at the usual one. */
const NAME_SERVER = "127.53.0.9";

export type LaunchOptions = { node: string; agent: string; rounds: number };

/** From the launch of a workspace until its agent, which comes with its repository, has answered a first message. */
export async function measureLaunch({ node, agent, rounds }: LaunchOptions): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "engine-bench-launch-"));
  makeRepository(join(folder, "app.git"), { "agent.mjs": agent });
  const git = await startGitServer(folder);
  const names = await startNameServer((name) => (name === "git.test" ? "127.0.0.1" : undefined), {
    host: NAME_SERVER,
    port: 53,
  });
  const env = {
    ENGINE_SANDBOX_EGRESS_RANGES: "127.0.0.0/8",
    ENGINE_SANDBOX_REPOSITORY_HOSTS: "git.test",
    ENGINE_SANDBOX_PLAIN_HTTP_REPOSITORIES: "1",
    ENGINE_SANDBOX_AGENT_COMMANDS: `claude-code=${node} /workspace/app/agent.mjs`,
  };
  try {
    for (const warmPool of [0, 2]) {
      const took = { running: [] as number[], answered: [] as number[] };
      await withServer({ warmPool, env }, async (_server, client) => {
        const workspace = await client.addWorkspace({
          name: "app",
          spec: {
            // With what is said of it the agent is started before the sandbox runs.
            agent: { provider: "claude-code", model: "scripted" },
            network: { dns_servers: [NAME_SERVER] },
            repositories: [{ url: `http://git.test:${git.port}/app.git`, dest_path: "/workspace/app" }],
          },
        });
        for (let round = rounds > 1 ? -1 : 0; round < rounds; round++) {
          const beganAt = performance.now();
          const id = await client.running(await client.launch(workspace));
          const runningMs = performance.now() - beganAt;
          const said = await client.say(await client.converse(id), "say hello");
          if (said !== "hello") throw new Error(`the agent said ${JSON.stringify(said)}`);
          const answeredMs = performance.now() - beganAt;
          await client.remove(id);
          // The first of a server prepares the image.
          if (round < 0) continue;
          took.running.push(runningMs);
          took.answered.push(answeredMs);
        }
      });
      const from = warmPool === 0 ? "cold" : "from a prepared machine";
      console.log(
        `launch of a workspace, ${from}: running after ${shown(median(took.running))} ms, ` +
          `first answer after ${shown(median(took.answered))} ms`,
      );
    }
  } finally {
    git.close();
    await names.close();
    await rm(folder, { recursive: true });
  }
}
