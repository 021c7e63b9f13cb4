import { bundledAgent } from "../../test/sandboxes/bundled-agent.ts";
import { startSandboxServer, type SandboxServer } from "./with-server.ts";

/** Servers with the scripted agent of the tests, which is spoken to by the real protocol. */

/** Where sandboxes of the `host` image find Node. */
export const NODE = "/usr/bin/node";
const AGENT = "/home/agent/agent.mjs";
const LIMITS = { cpu_cores: 2, memory_mb: 1024 };

/** `agent`: its program. `id`: of a sandbox that has it. */
export type AgentServer = SandboxServer & { agent: string; id: string };

/** A server, and a sandbox with the agent in it. */
export async function startAgentServer(): Promise<AgentServer> {
  const agent = await bundledAgent();
  const env = { ENGINE_SANDBOX_AGENT_COMMANDS: `claude-code=${NODE} ${AGENT}` };
  const started = await startSandboxServer({ warmPool: 0, env });
  const { client, stop } = started;
  try {
    const id = await client.create({ resource_limits: LIMITS });
    await client.put(id, AGENT, new Blob([agent]).stream());
    return { ...started, agent, id, stop: () => client.remove(id).finally(stop) };
  } catch (error) {
    await stop();
    throw error;
  }
}
