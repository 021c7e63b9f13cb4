import type { AgentConfig } from "../spec.ts";

/** How an agent is started in a machine that has it installed, and what of `agent_config` it can be told. */
export type AgentProvider = {
  /** On npm, with the version that this was written for. */
  readonly package: string;
  /** Speaks ACP over its standard input and output. */
  readonly argv: readonly string[];
  /** Where it looks for its API key. */
  readonly apiKeyVariable: string;
  /** How it is asked to log in with that key, where it does not by itself. */
  readonly authMethod?: string;
  readonly takesMaxTokens: boolean;
  /** Whether `settings` tells it a system prompt; otherwise that stands before the first message of each session. */
  readonly takesSystemPrompt: boolean;
  readonly settings: (config: AgentConfig) => AgentSettings;
};

export type AgentSettings = {
  env: Record<string, string>;
  /** `_meta` of the requests that begin or load a session. */
  sessionMeta?: Record<string, unknown>;
};

/** From the adapter's `session-model.js` (`ANTHROPIC_MODEL`) and `acp-agent.js` (`_meta` of a session). */
function claudeSettings({ model, maxTokens, systemPrompt, toolsEnabled, deniedTools }: AgentConfig): AgentSettings {
  const denied = deniedTools.filter((name) => !name.includes("*"));
  return {
    env: {
      ...(model !== undefined && { ANTHROPIC_MODEL: model }),
      // Of Claude Code itself: its documentation of environment variables.
      ...(maxTokens !== undefined && { CLAUDE_CODE_MAX_OUTPUT_TOKENS: String(maxTokens) }),
    },
    sessionMeta: {
      ...(systemPrompt !== undefined && { systemPrompt: { append: systemPrompt } }),
      ...(!toolsEnabled && { disableBuiltInTools: true }),
      claudeCode: {
        options: {
          // Its own sandbox is off: the machine is one.
          sandbox: { enabled: false },
          ...(denied.length > 0 && { disallowedTools: denied }),
        },
      },
    },
  };
}

/**
 * From the adapter's README (`CODEX_CONFIG`, `INITIAL_AGENT_MODE`). Of its modes only `agent-full-access` is without a
 * sandbox of its own, and it never asks for permission: where tools are restricted, the one that asks most is taken.
 */
function codexSettings({ model, systemPrompt, ...config }: AgentConfig): AgentSettings {
  const settings = {
    ...(model !== undefined && { model }),
    ...(systemPrompt !== undefined && { developer_instructions: systemPrompt }),
  };
  return {
    env: {
      CODEX_CONFIG: JSON.stringify(settings),
      INITIAL_AGENT_MODE: restrictsTools(config) ? "read-only" : "agent-full-access",
      NO_BROWSER: "1",
    },
  };
}

/** From the package's own reading of its environment, and its reference of configuration. */
function geminiSettings({ model }: AgentConfig): AgentSettings {
  return {
    env: {
      ...(model !== undefined && { GEMINI_MODEL: model }),
      GEMINI_SANDBOX: "false",
      GEMINI_CLI_TRUST_WORKSPACE: "true",
    },
  };
}

/** From OpenCode's documentation of its configuration; it has no sandbox of its own. It asks for nothing by default. */
function opencodeSettings({ model, maxTokens }: AgentConfig): AgentSettings {
  const settings = {
    ...(model !== undefined && { model }),
    permission: { edit: "ask", bash: "ask", webfetch: "ask" },
    autoupdate: false,
  };
  return {
    env: {
      OPENCODE_CONFIG_CONTENT: JSON.stringify(settings),
      ...(maxTokens !== undefined && { OPENCODE_EXPERIMENTAL_OUTPUT_TOKEN_MAX: String(maxTokens) }),
    },
  };
}

/** By the names of `agent_provider`. */
export const AGENTS: ReadonlyMap<string, AgentProvider> = new Map([
  [
    "claude-code",
    {
      package: "@agentclientprotocol/claude-agent-acp@0.101.0",
      argv: ["claude-agent-acp"],
      apiKeyVariable: "ANTHROPIC_API_KEY",
      takesMaxTokens: true,
      takesSystemPrompt: true,
      settings: claudeSettings,
    },
  ],
  [
    "codex",
    {
      package: "@agentclientprotocol/codex-acp@2.6.0",
      argv: ["codex-acp"],
      apiKeyVariable: "OPENAI_API_KEY",
      authMethod: "api-key",
      takesMaxTokens: false,
      takesSystemPrompt: true,
      settings: codexSettings,
    },
  ],
  [
    "gemini-cli",
    {
      package: "@google/gemini-cli@0.61.0",
      argv: ["gemini", "--acp"],
      apiKeyVariable: "GEMINI_API_KEY",
      authMethod: "gemini-api-key",
      takesMaxTokens: false,
      takesSystemPrompt: false,
      settings: geminiSettings,
    },
  ],
  [
    "opencode",
    {
      package: "opencode-ai@1.18.33",
      argv: ["opencode", "acp"],
      apiKeyVariable: "ANTHROPIC_API_KEY",
      takesMaxTokens: true,
      takesSystemPrompt: false,
      settings: opencodeSettings,
    },
  ],
]);

/** Whether the agent may not use all that it has. */
export function restrictsTools({
  toolsEnabled,
  allowedTools,
  deniedTools,
}: Pick<AgentConfig, "toolsEnabled" | "allowedTools" | "deniedTools">): boolean {
  return !toolsEnabled || allowedTools.length > 0 || deniedTools.length > 0;
}

/** Of a sandbox whose maker says nothing of its agent. */
export function defaultAgentConfig(provider: string): AgentConfig {
  return {
    provider,
    model: undefined,
    systemPrompt: undefined,
    maxTokens: undefined,
    toolsEnabled: true,
    allowedTools: [],
    deniedTools: [],
  };
}
