import type { Capability } from "../../feature/capability.ts";
import { SET_IT } from "./engines/target.ts";

export const AGENT_CAPABILITIES: readonly Capability[] = [
  {
    name: "agent",
    title: "Agent",
    whyOff: async ({ records }) => {
      const rows = await records.rows("SELECT key FROM agent_settings WHERE key = 'engine'", []);
      return rows.length > 0 ? undefined : `The agent has no engine: ${SET_IT}.`;
    },
  },
];
