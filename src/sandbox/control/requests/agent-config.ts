import { z } from "zod";
import { text } from "../../contract/text-fields.ts";
import type { AgentConfig, SandboxSpec } from "../../contract/spec.ts";
import { mcpServersField } from "./mcp-servers.ts";
import { variablesOf } from "../../contract/agents/mcp-variables.ts";
import { AGENTS, defaultAgentConfig } from "../../contract/agents/providers.ts";

const MODEL_CHARS = 255;
/** As JSON in an environment variable it has at most 96 KiB, of the 128 that Linux takes. */
const PROMPT_CHARS = 16_384;
const MAX_TOOLS = 256;
const TOOL_CHARS = 255;

const tools = z.array(text(TOOL_CHARS).min(1)).max(MAX_TOOLS);

/** The field `agent_config` of a create request. */
export const agentConfigField = z
  .strictObject({
    provider: z.string().nullish().describe("That of `agent_provider`, which is its default."),
    model: text(MODEL_CHARS)
      .min(1)
      .nullish()
      .describe("By the agent's own name for it; the agent's default by default."),
    system_prompt: text(PROMPT_CHARS).min(1).nullish().describe("Said to the agent beside its own."),
    max_tokens: z.int().min(1).max(10_000_000).nullish().describe("Of an answer of the model. Not all agents take it."),
    tools_enabled: z.boolean().default(true),
    allowed_tools: tools.default([]).describe("Kinds, titles and names of tools, and patterns with `*`. None: all."),
    denied_tools: tools.default([]).describe("So too; they come before those that are allowed."),
    mcp_servers: mcpServersField,
  })
  .nullish()
  .describe("How the agent is to be.");

/** Undefined where nothing is said of it. What the agent does not take is an issue. */
export function toAgentConfig(
  given: z.output<typeof agentConfigField>,
  { agentProvider, envVars }: Pick<SandboxSpec, "agentProvider" | "envVars">,
  context: z.RefinementCtx,
): AgentConfig | undefined {
  if (given === undefined || given === null) return undefined;
  const refuse = (field: string | readonly (string | number)[], message: string) =>
    context.addIssue({ code: "custom", path: ["agent_config", ...[field].flat()], message });
  const provider = given.provider ?? agentProvider;
  const maxTokens = given.max_tokens ?? undefined;
  if (provider !== agentProvider) refuse("provider", "accepted is the sandbox's agent_provider");
  if (maxTokens !== undefined && AGENTS.get(agentProvider)?.takesMaxTokens === false) {
    refuse("max_tokens", "this agent has no such setting");
  }
  for (const [i, server] of given.mcp_servers.entries()) {
    const unknown = variablesOf(server).find((variable) => !Object.hasOwn(envVars, variable));
    if (unknown !== undefined) refuse(["mcp_servers", i], `there is no variable ${unknown} in env_vars`);
  }
  return {
    ...defaultAgentConfig(agentProvider),
    model: given.model ?? undefined,
    systemPrompt: given.system_prompt ?? undefined,
    maxTokens,
    toolsEnabled: given.tools_enabled,
    allowedTools: given.allowed_tools,
    deniedTools: given.denied_tools,
    mcpServers: given.mcp_servers,
  };
}

/** The field that makes the same. */
export function fromAgentConfig(config: AgentConfig | undefined): Record<string, unknown> | null {
  if (config === undefined) return null;
  return {
    provider: config.provider,
    model: config.model ?? null,
    system_prompt: config.systemPrompt ?? null,
    max_tokens: config.maxTokens ?? null,
    tools_enabled: config.toolsEnabled,
    allowed_tools: config.allowedTools,
    denied_tools: config.deniedTools,
    mcp_servers: config.mcpServers ?? [],
  };
}
