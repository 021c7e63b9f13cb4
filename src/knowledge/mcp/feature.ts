import type { Feature } from "../../feature/feature.ts";
import type { McpRouteDeps } from "./routes/mcp.ts";

/** Memory and data as tools for agents, by the Model Context Protocol. */
export const MCP: Feature<{ mcp: McpRouteDeps }> = {
  name: "mcp",
  title: "MCP",
  options: async () => (await import("./options.ts")).MCP_OPTIONS,
  metrics: async () => (await import("./metrics.ts")).MCP_METRICS,
  commands: {
    mcp: () => import("./commands/mcp.ts"),
    recall: () => import("./commands/recall.ts"),
    remember: () => import("./commands/remember.ts"),
    entity: () => import("./commands/entity.ts"),
    distill: () => import("./commands/distill.ts"),
    setup: () => import("./commands/setup.ts"),
    "install-skill": () => import("./commands/install-skill.ts"),
    "install-plugin": () => import("./commands/install-plugin.ts"),
    "plugin-hook": () => import("./commands/plugin-hook.ts"),
  },
  routes: async () => {
    const { MCP_ROUTES } = await import("./routes/mcp.ts");
    return [{ name: "mcp", answeredBy: "mcp", routes: MCP_ROUTES }];
  },
};
