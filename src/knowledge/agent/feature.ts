import type { FeatureParts } from "../../feature/feature.ts";

/** The agent: questions in plain words, answered from the data and the memory by a language model. */
export const AGENT: FeatureParts = {
  name: "agent",
  title: "Agent",
  options: async () => (await import("./options.ts")).AGENT_OPTIONS,
  migrations: async () => (await import("./tables.ts")).AGENT_MIGRATIONS,
  commands: {
    query: () => import("./commands/query.ts"),
    sessions: () => import("./commands/sessions.ts"),
  },
};
