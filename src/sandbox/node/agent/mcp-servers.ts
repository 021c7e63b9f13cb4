import type { McpCapabilities, McpServer as AcpServer } from "@agentclientprotocol/sdk";
import { withVariables } from "../../contract/agents/mcp-variables.ts";
import type { McpServer } from "../../contract/spec.ts";
import { AgentFault } from "./fault.ts";

/** As an agent is told of them, with the variables of its sandbox. */
export function toAcpServers(servers: readonly McpServer[], variables: Readonly<Record<string, string>>): AcpServer[] {
  const known = new Map(Object.entries(variables));
  const list = (all: Readonly<Record<string, string>>) =>
    Object.entries(all).map(([key, value]) => ({
      name: key,
      value: withVariables(value, known),
    }));
  return servers.map((server): AcpServer => {
    if (server.type !== "stdio") {
      const { type, name: called, url, headers } = server;
      return { type, name: called, url, headers: list(headers) };
    }
    // Of this kind the protocol names none: all agents take it.
    const { name: called, command, args, env } = server;
    return { name: called, command, args: [...args], env: list(env) };
  });
}

/** Throws `AgentFault` for a server of a kind that the agent does not take. */
export function checkServers(servers: readonly AcpServer[], can: McpCapabilities | undefined): void {
  for (const server of servers) {
    if (!("type" in server) || (server.type !== "http" && server.type !== "sse") || can?.[server.type] === true)
      continue;
    throw new AgentFault(`it does not take MCP servers over ${server.type}, as ${server.name} is`);
  }
}
