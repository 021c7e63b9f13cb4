import type { Feature } from "../../feature/feature.ts";
import type { AgentDeps } from "./routes/deps.ts";

/** The agent: questions in plain words, answered from the data and the memory by a language model. */
export const AGENT: Feature<{ agent: AgentDeps }> = {
  name: "agent",
  title: "Agent",
  options: async () => (await import("./options.ts")).AGENT_OPTIONS,
  metrics: async () => (await import("./metrics.ts")).AGENT_METRICS,
  capabilities: async () => (await import("./capabilities.ts")).AGENT_CAPABILITIES,
  routes: async () => {
    const { AGENT_ROUTES } = await import("./routes/agent-routes.ts");
    return [{ name: "agent", answeredBy: "agent", routes: AGENT_ROUTES }];
  },
  migrations: async () => (await import("./tables.ts")).AGENT_MIGRATIONS,
  commands: {
    query: () => import("./commands/query.ts"),
    sessions: () => import("./commands/sessions.ts"),
  },
};
