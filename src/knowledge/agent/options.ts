import * as kinds from "../../config/kinds.ts";
import { option, optional } from "../../config/option.ts";
import { command, urlOrOff, variableNames } from "./option-kinds.ts";

const concurrent = kinds.integer({ min: 0, max: 10_000 });

/**
 * The options of the agent. Where a provider is, and which keys it is sent, only the operator says; for dreams on a worker the
 * operator of that worker.
 */
export const AGENT_OPTIONS = {
  agentMaxConcurrent: option({
    env: "ENGINE_AGENT_MAX_CONCURRENT",
    toml: "agent.max_concurrent",
    kind: concurrent,
    default: 0,
    side: "S",
    doc: "Runs of the agent per node, excess answers 429; 0 sets no limit.",
  }),
  agentMaxConcurrentPerTenant: option({
    env: "ENGINE_AGENT_MAX_CONCURRENT_PER_TENANT",
    toml: "agent.max_concurrent_per_tenant",
    kind: concurrent,
    default: 0,
    side: "S",
    doc: "Runs of the agent per tenant, which is a caller in a database; excess answers 429; 0 sets no limit.",
  }),
  agentRetryAfterSecs: option({
    env: "ENGINE_AGENT_RETRY_AFTER_SECS",
    toml: "agent.retry_after_secs",
    kind: kinds.integer({ min: 1, max: 3_600 }),
    default: 1,
    side: "S",
    doc: "`Retry-After` of a question that is refused for these limits.",
  }),
  agentEngineRole: option({
    env: "ENGINE_AGENT_ENGINE_ROLE",
    toml: "agent.engine_role",
    kind: kinds.oneOf(["read", "write", "admin"]),
    default: "read",
    side: "S",
    doc: "The role that choosing and testing the engine of the agent takes.",
  }),
  localModelHost: option({
    env: "ENGINE_LOCALMODEL_HOST",
    toml: "agent.localmodel_host",
    kind: kinds.baseUrl,
    default: "http://localhost:11434",
    side: "SC",
    doc: "Where the engine `localmodel` is asked: a server of chat completions, without the path of its API.",
  }),
  localModelHosts: optional({
    env: "ENGINE_LOCALMODEL_HOSTS",
    toml: "agent.localmodel_hosts",
    kind: kinds.peerUrls,
    whenUnset: "ENGINE_LOCALMODEL_HOST only",
    side: "SC",
    doc: "Further addresses that the field `host` of the engine may name.",
  }),
  anthropicBaseUrl: option({
    env: "ENGINE_ANTHROPIC_BASE_URL",
    toml: "agent.anthropic_base_url",
    kind: kinds.baseUrl,
    default: "https://api.anthropic.com",
    side: "SC",
    doc: "Where the engine `anthropic` is asked. Keys are sent there and nowhere else.",
  }),
  anthropicApiKey: optional({
    env: "ANTHROPIC_API_KEY",
    toml: "agent.anthropic_api_key",
    kind: kinds.bearerToken,
    whenUnset: "the engine `anthropic` needs a credential",
    side: "SC",
    secret: true,
    doc: "The key of the engine `anthropic`, where its configuration names no credential.",
  }),
  openaiBaseUrl: option({
    env: "ENGINE_OPENAI_BASE_URL",
    toml: "agent.openai_base_url",
    kind: kinds.baseUrl,
    default: "https://api.openai.com",
    side: "SC",
    doc: "Where the engine `openai` is asked, without `/v1`. Keys are sent there and nowhere else.",
  }),
  openaiApiKey: optional({
    env: "OPENAI_API_KEY",
    toml: "agent.openai_api_key",
    kind: kinds.bearerToken,
    whenUnset: "the engine `openai` needs a credential",
    side: "SC",
    secret: true,
    doc: "The key of the engine `openai`, where its configuration names no credential.",
  }),
  agentCommand: optional({
    env: "ENGINE_AGENT_COMMAND",
    toml: "agent.command",
    kind: command,
    whenUnset: "the engine `cli` cannot be chosen",
    side: "S",
    doc: "The program of the engine `cli`, which speaks the Agent Client Protocol over its standard input and output.",
  }),
  agentCommandEnv: optional({
    env: "ENGINE_AGENT_COMMAND_ENV",
    toml: "agent.command_env",
    kind: variableNames,
    whenUnset: "`PATH`, `LANG` and a home of its own",
    side: "S",
    doc: "Variables of the server's environment that this program gets besides, for its own keys.",
  }),
  agentMcpUrl: optional({
    env: "ENGINE_AGENT_MCP_URL",
    toml: "agent.mcp_url",
    kind: urlOrOff,
    whenUnset: "`/mcp/v1` at the address that this server listens on",
    side: "S",
    doc: "Where this program reaches the tools of a run: MCP of this very node. `off`: it has no tools.",
  }),
  sessionSummaryEvery: option({
    env: "ENGINE_SESSION_SUMMARY_EVERY",
    toml: "agent.session_summary_every",
    kind: kinds.integer({ min: 1, max: 1_000 }),
    default: 12,
    side: "S",
    doc: "Turns of a session after which what was said before is summarised anew.",
  }),
  skillsDir: optional({
    env: "ENGINE_SKILLS_DIR",
    toml: "agent.skills_dir",
    kind: kinds.path,
    whenUnset: "those that come with the program, and below `ENGINE_HOME/skills`",
    side: "S",
    doc: "A folder with skills of the agent, besides those: each is a folder with a file `SKILL.md`.",
  }),
} as const;
