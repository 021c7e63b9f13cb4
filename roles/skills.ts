import { valuesOf } from "../src/config/option.ts";
import type { FeatureDeps } from "../src/feature/feature.ts";
import { AGENT_OPTIONS } from "../src/knowledge/agent/options.ts";
import { Skills } from "../src/knowledge/skills/skills.ts";

/** The skills of this installation, for the tools of agents and the agent itself. */
export function skillsHere({ records, audit, config }: Pick<FeatureDeps, "records" | "audit" | "config">): Skills {
  return new Skills({ records, audit, home: config.home, directory: valuesOf(AGENT_OPTIONS, config).skillsDir });
}
