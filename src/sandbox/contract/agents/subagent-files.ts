import type { AgentConfig, Subagent } from "../spec.ts";
import { mayUse } from "./tool-rules.ts";

/** How an agent is told of the agents that it may give work to: a file for each, below its home. */
export type SubagentFiles = {
  readonly folder: string;
  readonly content: (subagent: Subagent, config: AgentConfig) => string;
};

/** Claude Code's documentation of subagents: user-level ones, which its adapter has it read (`settingSources`). */
function claudeFile({ name, description, prompt, model, tools }: Subagent): string {
  return markdown({ name, description, model, tools: tools?.join(", ") }, prompt);
}

/** Tools of OpenCode, from its documentation of permissions, with the kind that ACP has for each. */
const OPENCODE_TOOLS: Readonly<Record<string, string>> = {
  read: "read",
  edit: "edit",
  glob: "search",
  grep: "search",
  list: "read",
  bash: "execute",
  task: "other",
  skill: "other",
  lsp: "other",
  todoread: "other",
  todowrite: "other",
  webfetch: "fetch",
  websearch: "fetch",
  codesearch: "fetch",
  external_directory: "other",
  doom_loop: "other",
};

/**
 * OpenCode's documentation of agents. What a subagent of it asks never comes to a client of ACP, and waits for ever
 * (anomalyco/opencode#48232): so nothing is left to ask for.
 */
function opencodeFile({ description, prompt, model, tools }: Subagent, config: AgentConfig): string {
  const named = tools === undefined ? undefined : new Set(tools);
  const answer = (tool: string) => (mayUse(config, [tool, OPENCODE_TOOLS[tool] ?? "other"]) ? "allow" : "deny");
  const all = [...new Set([...Object.keys(OPENCODE_TOOLS), ...(tools ?? [])])];
  const isOpen = named === undefined && config.toolsEnabled && config.allowedTools.length === 0;
  const permission = {
    "*": isOpen ? "allow" : "deny",
    ...Object.fromEntries(all.map((tool) => [tool, named?.has(tool) === false ? "deny" : answer(tool)])),
    // The machine keeps it where it may be; and one that goes round in circles ends.
    external_directory: "allow",
    doom_loop: "deny",
  };
  return markdown({ description, mode: "subagent", model, permission }, prompt);
}

/** By agent provider; others take none. */
export const SUBAGENT_FILES: ReadonlyMap<string, SubagentFiles> = new Map([
  ["claude-code", { folder: ".claude/agents", content: claudeFile }],
  ["opencode", { folder: ".config/opencode/agents", content: opencodeFile }],
]);

/** Values of the front matter are JSON, which YAML is a superset of. */
function markdown(fields: Readonly<Record<string, unknown>>, body: string): string {
  const lines = Object.entries(fields).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}: ${JSON.stringify(value)}`],
  );
  return `---\n${lines.join("\n")}\n---\n\n${body}\n`;
}
