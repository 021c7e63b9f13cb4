import type { AskRouteDeps } from "./agent.ts";
import type { EngineRouteDeps } from "./engines.ts";
import type { SessionRouteDeps } from "./sessions.ts";
import type { SkillRouteDeps } from "./skills.ts";

/** What the routes of the agent work with. */
export type AgentDeps = AskRouteDeps & EngineRouteDeps & SessionRouteDeps & SkillRouteDeps;
