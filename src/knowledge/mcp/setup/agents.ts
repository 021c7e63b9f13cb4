/** Coding agents whose configuration `engine setup` writes, and where they read it. */
export type Agent = {
  key: string;
  title: string;
  /** Below which folder: the project's, where the command runs, or the user's home. */
  base: "project" | "home";
  path: readonly string[];
};

export const AGENTS: readonly Agent[] = [
  { key: "claude-code", title: "Claude Code", base: "project", path: [".mcp.json"] },
  { key: "cursor", title: "Cursor", base: "project", path: [".cursor", "mcp.json"] },
  { key: "windsurf", title: "Windsurf", base: "home", path: [".codeium", "windsurf", "mcp_config.json"] },
];

export function agentNamed(key: string): Agent | undefined {
  return AGENTS.find((agent) => agent.key === key);
}

/** The key of the servers in all of these files, and ours among them. */
export const SERVERS_KEY = "mcpServers";
export const OWN_KEY = "engine";

/** Found by the agent's PATH: the files of projects are shared by people whose programs lie elsewhere. */
export const OWN_ENTRY = { command: "engine", args: ["mcp"] } as const;
