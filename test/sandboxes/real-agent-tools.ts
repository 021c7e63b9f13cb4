import type { ModelStep } from "./provider-formats.ts";

export type RealAgent = {
  /** What is run with Node.js, or by itself, below `node_modules`; with its arguments. */
  command: string;
  byNode: boolean;
  /** Without one it would not ask the model that there is. */
  model?: string;
  /** Of the denied tools. */
  ownNames: readonly string[];
  /** Tools that it is asked for, one after the other: one that it may use, and two that it may not. */
  tools: readonly [ModelStep, ModelStep, ModelStep];
};

export const HOME = "/home/agent";
/** Where the agent is put, and Node.js beside it. */
export const PLACE = `${HOME}/installed`;
export const [ALLOWED, DENIED, HIDDEN] = [`${HOME}/allowed.txt`, `${HOME}/denied.txt`, `${HOME}/hidden.txt`] as const;
/** Ways to let an agent write a file, but neither run a command nor read; most read without asking. */
export type ToolRules = "kinds" | "names" | "allowed";
export const TOOL_RULES: readonly ToolRules[] = ["kinds", "names", "allowed"];

/** In `agent_config`. */
export function rulesOf(rules: ToolRules, { ownNames }: RealAgent): Record<string, readonly string[]> {
  if (rules === "allowed") return { allowed_tools: ["edit"] };
  return { denied_tools: rules === "kinds" ? ["execute", "read"] : ownNames };
}

/** By agent provider. */
export const REAL_AGENTS: ReadonlyMap<string, RealAgent> = new Map([
  [
    "claude-code",
    {
      command: "@agentclientprotocol/claude-agent-acp/dist/index.js",
      byNode: true,
      ownNames: ["Bash", "Read"],
      tools: [
        { tool: "Write", input: { file_path: ALLOWED, content: "yes" } },
        { tool: "Bash", input: { command: `touch ${DENIED}`, description: "touch a file" } },
        { tool: "Read", input: { file_path: HIDDEN } },
      ],
    },
  ],
  [
    "codex",
    {
      command: "@agentclientprotocol/codex-acp/dist/index.js",
      byNode: true,
      ownNames: ["exec_command"],
      tools: [
        { tool: "exec", input: `await tools.apply_patch(${JSON.stringify(patchOf(ALLOWED))})` },
        { tool: "exec", input: commandOfCodex(`touch ${DENIED}`) },
        { tool: "exec", input: commandOfCodex(`cat ${HIDDEN}`) },
      ],
    },
  ],
  [
    "gemini-cli",
    {
      command: "@google/gemini-cli/bundle/gemini.js --acp",
      byNode: true,
      model: "gemini-2.5-flash",
      ownNames: ["run_shell_command", "read_file"],
      tools: [
        { tool: "write_file", input: { file_path: ALLOWED, content: "yes" } },
        { tool: "run_shell_command", input: { command: `touch ${DENIED}` } },
        { tool: "read_file", input: { file_path: HIDDEN } },
      ],
    },
  ],
  [
    "opencode",
    {
      command: "opencode-ai/bin/opencode.exe acp",
      byNode: false,
      model: "anthropic/claude-sonnet-4-5",
      ownNames: ["bash", "read"],
      tools: [
        { tool: "write", input: { filePath: ALLOWED, content: "yes" } },
        { tool: "bash", input: { command: `touch ${DENIED}`, description: "touch a file" } },
        { tool: "read", input: { filePath: HIDDEN } },
      ],
    },
  ],
]);

/** A command without Codex's own sandbox, for which it asks. */
function commandOfCodex(cmd: string): string {
  const command = { cmd, sandbox_permissions: "require_escalated", justification: "It has to be." };
  return `text(JSON.stringify(await tools.exec_command(${JSON.stringify(command)})))`;
}

/** A new file, as Codex takes it. */
function patchOf(path: string): string {
  return `*** Begin Patch\n*** Add File: ${path}\n+yes\n*** End Patch\n`;
}
