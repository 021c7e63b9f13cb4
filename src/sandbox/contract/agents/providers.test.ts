import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { AGENT_PROVIDERS, AGENTS, defaultAgentConfig, type AgentSettings } from "./providers.ts";
import type { AgentConfig } from "../spec.ts";

function settings(provider: string, config: Partial<AgentConfig> = {}): AgentSettings | undefined {
  return AGENTS.get(provider)?.settings({ ...defaultAgentConfig(provider), ...config });
}

const CONFIG = { model: "m-1", systemPrompt: 'Be "brief".', maxTokens: 100 };

it("there is an agent for each provider, and the documentation says the same of it", () => {
  expect([...AGENTS.keys()]).toEqual([...AGENT_PROVIDERS]);
  const doc = readFileSync(new URL("../../../../docs/agents.md", import.meta.url), "utf8");
  for (const [name, agent] of AGENTS) {
    const row = doc.split("\n").find((line) => line.startsWith(`| \`${name}\``)) ?? "";
    const at = agent.package.lastIndexOf("@");
    expect(row).toContain(`\`${agent.package.slice(0, at)}\` ${agent.package.slice(at + 1)} `);
    expect(row).toContain(`\`${agent.argv.join(" ")}\``);
  }
});

it("tells each agent its model, its prompt and its limit, in the way of that agent", () => {
  expect(settings("claude-code", CONFIG)).toMatchObject({
    env: { ANTHROPIC_MODEL: "m-1", CLAUDE_CODE_MAX_OUTPUT_TOKENS: "100" },
    sessionMeta: { systemPrompt: { append: 'Be "brief".' }, claudeCode: { options: { sandbox: { enabled: false } } } },
  });
  const codex = settings("codex", CONFIG)?.env ?? {};
  expect(JSON.parse(codex["CODEX_CONFIG"] ?? "")).toEqual({ model: "m-1", developer_instructions: 'Be "brief".' });
  expect(settings("gemini-cli", CONFIG)?.env).toMatchObject({ GEMINI_MODEL: "m-1", GEMINI_SANDBOX: "false" });
  const opencode = settings("opencode", CONFIG)?.env ?? {};
  expect(JSON.parse(opencode["OPENCODE_CONFIG_CONTENT"] ?? "")).toMatchObject({ model: "m-1" });
});

it("points each agent at the gateway, where its key is added to its requests", () => {
  const envOf = (provider: string) =>
    AGENTS.get(provider)?.settings(defaultAgentConfig(provider), "http://127.0.0.1:1/a").env ?? {};
  expect(envOf("claude-code")).toEqual({ ANTHROPIC_BASE_URL: "http://127.0.0.1:1/a" });
  expect(JSON.parse(envOf("codex")["CODEX_CONFIG"] ?? "")).toEqual({
    model_provider: "engine",
    model_providers: {
      engine: {
        name: "engine",
        base_url: "http://127.0.0.1:1/a/v1",
        env_key: AGENTS.get("codex")?.apiKeyVariable,
        wire_api: "responses",
      },
    },
  });
  expect(envOf("gemini-cli")).toMatchObject({ GOOGLE_GEMINI_BASE_URL: "http://127.0.0.1:1/a" });
  expect(JSON.parse(envOf("opencode")["OPENCODE_CONFIG_CONTENT"] ?? "")).toMatchObject({
    provider: { anthropic: { options: { baseURL: "http://127.0.0.1:1/a/v1" } } },
  });
});

it("has those ask that would not, where tools are restricted", () => {
  expect(settings("codex")?.env["INITIAL_AGENT_MODE"]).toBe("agent-full-access");
  expect(settings("codex", { deniedTools: ["x"] })?.env["INITIAL_AGENT_MODE"]).toBe("read-only");
  const claude = settings("claude-code", { toolsEnabled: false, deniedTools: ["Bash", "mcp__*"] });
  expect(claude?.sessionMeta).toMatchObject({
    disableBuiltInTools: true,
    claudeCode: {
      options: {
        disallowedTools: ["Bash"],
        settings: { permissions: { ask: expect.arrayContaining(["Bash", "Read"]) } },
      },
    },
  });
  expect(claude?.sessionMode).toBe("default");
  const opencode = (config: Partial<AgentConfig>): unknown =>
    JSON.parse(settings("opencode", config)?.env["OPENCODE_CONFIG_CONTENT"] ?? "");
  expect(opencode({})).toMatchObject({ permission: { "*": "allow" } });
  expect(opencode({ allowedTools: ["edit"] })).toMatchObject({
    permission: { "*": "ask" },
    agent: { general: { disable: true }, explore: { disable: true } },
  });
});

it("takes from an agent what it could use without asking", () => {
  const codex = (config: Partial<AgentConfig>): unknown =>
    JSON.parse(settings("codex", config)?.env["CODEX_CONFIG"] ?? "");
  expect(codex({ deniedTools: ["fetch"] })).toEqual({});
  for (const config of [{ deniedTools: ["execute"] }, { allowedTools: ["edit"] }, { toolsEnabled: false }]) {
    expect(codex(config)).toEqual({ features: { shell_tool: false } });
  }
  expect(settings("gemini-cli")?.file).toBeUndefined();
  const rulesOf = (config: Partial<AgentConfig>) =>
    [...(settings("gemini-cli", config)?.file?.content ?? "").matchAll(/toolName = "(.*)"\ndecision = "(.*)"/g)].map(
      ([, name, decision]) => `${name} ${decision}`,
    );
  expect(rulesOf({ deniedTools: ["read_file", 'x"\n', "mcp_*"] })).toEqual(["* ask_user", "read_file deny"]);
  expect(rulesOf({ allowedTools: ["read_file"] })).toEqual(["* ask_user", "read_file allow"]);
  // It may be denied by its kind.
  expect(rulesOf({ allowedTools: ["read_file"], deniedTools: ["read"] })).toEqual(["* ask_user", "read deny"]);
  expect(rulesOf({ toolsEnabled: false })).toEqual(["* ask_user", "* deny"]);
});
