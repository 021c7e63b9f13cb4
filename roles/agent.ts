import type { AuditLog } from "../src/auth/audit.ts";
import { valuesOf } from "../src/config/option.ts";
import type { Service } from "../src/core/lifecycle.ts";
import type { Credentials } from "../src/credentials/credentials.ts";
import type { FeatureDeps, StorageDeps } from "../src/feature/feature.ts";
import { AgentEngines } from "../src/knowledge/agent/engines/engines.ts";
import { AGENT_METRICS } from "../src/knowledge/agent/metrics.ts";
import { AGENT_OPTIONS } from "../src/knowledge/agent/options.ts";
import type { AgentDeps } from "../src/knowledge/agent/routes/deps.ts";
import { RunStore } from "../src/knowledge/agent/run/run-store.ts";
import { AgentService } from "../src/knowledge/agent/run/service.ts";
import { AfterTurn } from "../src/knowledge/agent/run/after-turn.ts";
import { Sessions } from "../src/knowledge/agent/sessions/sessions.ts";
import type { ToolDeps } from "../src/knowledge/mcp/deps.ts";
import { agentKeys } from "./agent-keys.ts";
import { skillsHere } from "./skills.ts";

/** The engine of the installation, which several parts ask. */
export function enginesHere(deps: StorageDeps & { audit: AuditLog }, credentials: Credentials): AgentEngines {
  const settings = valuesOf(AGENT_OPTIONS, deps.config);
  return new AgentEngines({ ...deps, keys: agentKeys(credentials), settings, metrics: AGENT_METRICS.of(deps.metrics) });
}

/** What answers the routes of the agent in this process. */
export function agentHere(
  deps: FeatureDeps,
  { tools, engines }: { tools: ToolDeps; engines: AgentEngines },
): { answers: AgentDeps; service: Service; endStreams: () => void } {
  const values = valuesOf(AGENT_OPTIONS, deps.config);
  const sessions = new Sessions(deps);
  const skills = skillsHere(deps);
  const afterTurn = new AfterTurn({ ...deps, tools, sessions, engines, summaryEvery: values.sessionSummaryEvery });
  const agent = new AgentService({
    ...deps,
    tools,
    engines,
    sessions,
    skills,
    store: new RunStore({
      ...deps,
      sessions,
      holder: deps.newId(),
      isAlone: deps.config.catalogUrl.kind === "sqlite",
    }),
    admission: {
      maxConcurrent: values.agentMaxConcurrent,
      maxConcurrentPerTenant: values.agentMaxConcurrentPerTenant,
      retryAfterSecs: values.agentRetryAfterSecs,
    },
    metrics: AGENT_METRICS.of(deps.metrics),
    afterTurn: (turn) => void afterTurn.run(turn),
  });
  const service: Service = {
    name: "agent",
    run: async () => agent.start(),
    // The HTTP server, which drains first, waits for the answers.
    drain: async () => {},
    stop: async () => {
      afterTurn.close();
      agent.close();
    },
  };
  return {
    answers: { agent, engines, sessions, skills, clock: deps.clock },
    service,
    endStreams: () => agent.endStreams(),
  };
}
