import { expect, it } from "vitest";
import { createRequest, toRequest } from "./create-request.ts";
import { AGENT_PROVIDERS, defaultAgentConfig } from "../../contract/agents/providers.ts";
import type { AgentConfig, Subagent } from "../../contract/spec.ts";
import { SUBAGENT_FILES } from "../../contract/agents/subagent-files.ts";

const REVIEWER = { name: "reviewer", description: "Reviews code.", prompt: "Be strict.\n" };

function refusalOf(subagents: unknown, provider = "claude-code"): string | undefined {
  const issue = createRequest.safeParse({ agent_provider: provider, subagents }).error?.issues[0];
  return issue === undefined ? undefined : `${issue.path.map(String).join(".")}: ${issue.message}`;
}

it("are taken for agents that have a way to be told of them", () => {
  const taking = AGENT_PROVIDERS.filter((provider) => refusalOf([REVIEWER], provider) === undefined);
  expect(taking).toEqual([...SUBAGENT_FILES.keys()]);
  expect(refusalOf([REVIEWER], "codex")).toBe(
    "subagents: accepted are those of claude-code and opencode: this agent has no such setting",
  );
  expect(refusalOf([], "codex")).toBeUndefined();
});

it("have names that are files, and texts that fit into one", () => {
  const cases: [Record<string, unknown>, string][] = [
    [{ name: "../x" }, "subagents.0.name: "],
    [{ name: "Reviewer" }, "subagents.0.name: "],
    [{ name: "" }, "subagents.0.name: "],
    [{ description: "two\nlines" }, "subagents.0.description: "],
    [{ prompt: "" }, "subagents.0.prompt: "],
    [{ prompt: "x".repeat(16_385) }, "subagents.0.prompt: "],
    [{ model: "a\nb" }, "subagents.0.model: "],
    [{ tools: [] }, "subagents.0.tools: "],
    [{ tools: ["Bash, Read"] }, "subagents.0.tools.0: "],
    [{ colour: "red" }, "subagents.0: "],
  ];
  for (const [more, why] of cases) {
    expect([more, refusalOf([{ ...REVIEWER, ...more }])]).toEqual([more, expect.stringContaining(why)]);
  }
  expect(refusalOf([REVIEWER, REVIEWER])).toBe("subagents: two subagents have the same name");
});

it("are shown as they would be asked for", () => {
  const body = {
    agent_provider: "opencode",
    subagents: [REVIEWER, { ...REVIEWER, name: "b", tools: ["read"], model: "m" }],
  };
  const spec = createRequest.parse(body);
  const shown = toRequest(spec);
  expect(shown["subagents"]).toEqual([{ ...REVIEWER, model: null, tools: null }, body.subagents[1]]);
  expect(createRequest.parse(shown)).toEqual(spec);
});

it("of OpenCode never have to ask, and may what the agent may", () => {
  const permissionOf = (subagent: Partial<Subagent>, config: Partial<AgentConfig> = {}): Record<string, string> => {
    const whole = { ...REVIEWER, model: undefined, tools: undefined, ...subagent };
    const content = SUBAGENT_FILES.get("opencode")?.content(whole, { ...defaultAgentConfig("opencode"), ...config });
    const line = content?.split("\n").find((one) => one.startsWith("permission: ")) ?? "";
    return JSON.parse(line.slice("permission: ".length)) as Record<string, string>;
  };
  expect(permissionOf({})).toMatchObject({ "*": "allow", bash: "allow", external_directory: "allow" });
  expect(permissionOf({ tools: ["read", "mcp_x"] })).toMatchObject({
    "*": "deny",
    read: "allow",
    mcp_x: "allow",
    bash: "deny",
  });
  expect(permissionOf({}, { deniedTools: ["execute", "edit"] })).toMatchObject({
    "*": "allow",
    bash: "deny",
    edit: "deny",
    read: "allow",
  });
  expect(permissionOf({ tools: ["bash", "read"] }, { allowedTools: ["read"] })).toMatchObject({
    "*": "deny",
    bash: "deny",
    read: "allow",
  });
  expect(permissionOf({}, { toolsEnabled: false })).toMatchObject({ "*": "deny", read: "deny" });
  for (const config of [{}, { toolsEnabled: false }, { allowedTools: ["read"] }]) {
    expect(Object.values(permissionOf({}, config))).not.toContain("ask");
  }
});
