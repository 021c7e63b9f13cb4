import type { RouteDefinition } from "../../../server/route.ts";
import { ASK_ROUTES } from "./agent.ts";
import type { AgentDeps } from "./deps.ts";
import { ENGINE_ROUTES } from "./engines.ts";
import { SESSION_ROUTES } from "./sessions.ts";
import { SKILL_ROUTES } from "./skills.ts";

/** In the order of the specification. */
export const AGENT_ROUTES: readonly RouteDefinition<AgentDeps>[] = [
  ...ASK_ROUTES,
  ...SESSION_ROUTES,
  ...ENGINE_ROUTES,
  ...SKILL_ROUTES,
];
