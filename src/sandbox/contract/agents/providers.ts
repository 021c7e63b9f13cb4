import type { AgentConfig } from "../spec.ts";
import { mayUse, restrictsTools, type AgentRules } from "./tool-rules.ts";

/** The names of agents in requests. */
export const AGENT_PROVIDERS = ["claude-code", "codex", "gemini-cli", "opencode"] as const;

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
  /** Below its home: where it looks for skills. */
  readonly skillsFolder: string;
  readonly takesMaxTokens: boolean;
  /** Whether `settings` tells it a system prompt; otherwise that stands before the first message of each session. */
  readonly takesSystemPrompt: boolean;
  /** @param apiUrl where its API is, for an agent whose key is added to its requests outside of the sandbox */
  readonly settings: (config: AgentConfig, apiUrl?: string) => AgentSettings;
};

export type AgentSettings = {
  env: Record<string, string>;
  /** `_meta` of the requests that begin or load a session. */
  sessionMeta?: Record<string, unknown>;
  /** The mode of every session, by the agent's name for it, where its default is not the one in which it asks. */
  sessionMode?: string;
  /** A file that it reads when it starts, below its home. */
  file?: { folder: string; name: string; content: string };
};

/** Tools of Claude Code that reach beyond the conversation: its reference of tools. */
const CLAUDE_TOOLS = [
  "Agent",
  "Bash",
  "Edit",
  "Glob",
  "Grep",
  "NotebookEdit",
  "Read",
  "Skill",
  "WebFetch",
  "WebSearch",
  "Write",
];

/** From the adapter's `session-model.js` (`ANTHROPIC_MODEL`) and `acp-agent.js` (`_meta` of a session). */
function claudeSettings(config: AgentConfig, apiUrl?: string): AgentSettings {
  const { model, maxTokens, systemPrompt, toolsEnabled, deniedTools } = config;
  const denied = deniedTools.filter((name) => !name.includes("*"));
  return {
    env: {
      ...(model !== undefined && { ANTHROPIC_MODEL: model }),
      ...(apiUrl !== undefined && { ANTHROPIC_BASE_URL: apiUrl }),
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
          // Some it uses without asking otherwise; and a project's hooks run commands.
          ...(restrictsTools(config) && { settings: { permissions: { ask: CLAUDE_TOOLS }, disableAllHooks: true } }),
        },
      },
    },
    // By default a model decides what is asked for (`auto`).
    sessionMode: "default",
  };
}

/**
 * From the adapter's README (`CODEX_CONFIG`, `INITIAL_AGENT_MODE`). Of its modes only `agent-full-access` is without a
 * sandbox of its own, and it never asks for permission: where tools are restricted, the one that asks most is taken. Its
 * sandbox cannot be made in most machines, so commands run that it asks for; where none may, it has no tool for them.
 */
function codexSettings({ model, systemPrompt, ...config }: AgentConfig, apiUrl?: string): AgentSettings {
  const mayRun = mayUse(config, ["execute", "exec_command"]);
  const settings = {
    ...(model !== undefined && { model }),
    ...(systemPrompt !== undefined && { developer_instructions: systemPrompt }),
    ...(apiUrl !== undefined && codexProvider(apiUrl)),
    ...(!mayRun && { features: { shell_tool: false } }),
  };
  return {
    env: {
      CODEX_CONFIG: JSON.stringify(settings),
      INITIAL_AGENT_MODE: restrictsTools(config) ? "read-only" : "agent-full-access",
      NO_BROWSER: "1",
    },
  };
}

/** From Codex's reference of configuration: a model provider of ours, which speaks as OpenAI's own does. */
function codexProvider(apiUrl: string): Record<string, unknown> {
  const provider = { name: "engine", base_url: `${apiUrl}/v1`, env_key: "OPENAI_API_KEY", wire_api: "responses" };
  return { model_provider: "engine", model_providers: { engine: provider } };
}

/** From the package's own reading of its environment, and its reference of configuration. */
function geminiSettings({ model, ...config }: AgentConfig, apiUrl?: string): AgentSettings {
  return {
    ...(restrictsTools(config) && {
      file: { folder: ".gemini/policies", name: "engine.toml", content: geminiPolicy(config) },
    }),
    env: {
      ...(model !== undefined && { GEMINI_MODEL: model }),
      ...(apiUrl !== undefined && { GOOGLE_GEMINI_BASE_URL: apiUrl }),
      GEMINI_SANDBOX: "false",
      GEMINI_CLI_TRUST_WORKSPACE: "true",
    },
  };
}

/**
 * From Gemini CLI's documentation of its policy engine: it asks for everything. Its own name for a tool, which it does not
 * say when it asks, decides here; but what kinds of tools are denied is only known when it asks. Higher priorities win.
 */
function geminiPolicy({ toolsEnabled, allowedTools, deniedTools }: AgentRules): string {
  const denied = toolsEnabled ? deniedTools : ["*"];
  const allowed = denied.length === 0 ? allowedTools : [];
  return [...rules(["*"], "ask_user", 900), ...rules(allowed, "allow", 920), ...rules(denied, "deny", 950)].join("\n");
}

function rules(names: readonly string[], decision: string, priority: number): string[] {
  return names
    .filter((name) => /^(?:\w+|\*)$/.test(name))
    .map((name) => `[[rule]]\ntoolName = "${name}"\ndecision = "${decision}"\npriority = ${priority}\n`);
}

/** From OpenCode's documentation of its configuration; it has no sandbox of its own. */
function opencodeSettings({ model, maxTokens, ...config }: AgentConfig, apiUrl?: string): AgentSettings {
  const restricted = restrictsTools(config);
  const settings = {
    ...(model !== undefined && { model }),
    ...(apiUrl !== undefined && { provider: { anthropic: { options: { baseURL: `${apiUrl}/v1` } } } }),
    permission: { "*": restricted ? "ask" : "allow" },
    // What its own subagents ask never comes to a client of ACP, and waits for ever (anomalyco/opencode#48232).
    ...(restricted && { agent: { general: { disable: true }, explore: { disable: true } } }),
    autoupdate: false,
  };
  return {
    env: {
      OPENCODE_CONFIG_CONTENT: JSON.stringify(settings),
      // A project's settings would add to these, and its plugins decide.
      ...(restricted && { OPENCODE_DISABLE_PROJECT_CONFIG: "1", OPENCODE_PURE: "1" }),
      ...(maxTokens !== undefined && { OPENCODE_EXPERIMENTAL_OUTPUT_TOKEN_MAX: String(maxTokens) }),
    },
  };
}

/**
 * By the names of `agent_provider`. Folders of skills, from the agents' own documentation: code.claude.com/docs/en/skills
 * (personal skills), developers.openai.com/codex/skills (user scope), geminicli.com/docs/cli/using-agent-skills (user
 * skills), opencode.ai/v1/docs/skills (global config).
 */
export const AGENTS: ReadonlyMap<string, AgentProvider> = new Map([
  [
    "claude-code",
    {
      package: "@agentclientprotocol/claude-agent-acp@0.101.0",
      argv: ["claude-agent-acp"],
      apiKeyVariable: "ANTHROPIC_API_KEY",
      skillsFolder: ".claude/skills",
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
      skillsFolder: ".agents/skills",
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
      skillsFolder: ".gemini/skills",
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
      skillsFolder: ".config/opencode/skills",
      takesMaxTokens: true,
      takesSystemPrompt: false,
      settings: opencodeSettings,
    },
  ],
]);

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
