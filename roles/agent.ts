import type { AuditLog } from "../src/auth/audit.ts";
import { valuesOf, type OptionValues } from "../src/config/option.ts";
import type { Service } from "../src/core/lifecycle.ts";
import type { Credentials } from "../src/credentials/credentials.ts";
import type { FeatureDeps, StorageDeps } from "../src/feature/feature.ts";
import type { CliDeps } from "../src/knowledge/agent/engines/cli/open-cli.ts";
import { AgentEngines } from "../src/knowledge/agent/engines/engines.ts";
import { AGENT_METRICS } from "../src/knowledge/agent/metrics.ts";
import { AGENT_OPTIONS } from "../src/knowledge/agent/options.ts";
import type { AgentDeps } from "../src/knowledge/agent/routes/deps.ts";
import { RunStore } from "../src/knowledge/agent/run/run-store.ts";
import { AgentService } from "../src/knowledge/agent/run/service.ts";
import { AfterTurn } from "../src/knowledge/agent/run/after-turn.ts";
import { Sessions } from "../src/knowledge/agent/sessions/sessions.ts";
import type { ToolDeps } from "../src/knowledge/mcp/deps.ts";
import { LentToolsByToken } from "../src/knowledge/mcp/lent-tools.ts";
import { agentKeys } from "./agent-keys.ts";
import { skillsHere } from "./skills.ts";

/** The engine of the installation, which several parts ask. */
export function enginesHere(
  deps: StorageDeps & { audit: AuditLog },
  credentials: Credentials,
  loan?: ToolLoan,
): AgentEngines {
  const settings = valuesOf(AGENT_OPTIONS, deps.config);
  const keys = agentKeys(credentials);
  const cli = cliHere(deps, settings, loan);
  return new AgentEngines({ ...deps, keys, settings, cli, metrics: AGENT_METRICS.of(deps.metrics) });
}

/** How programs that answer questions reach the tools of this process. */
export type ToolLoan = {
  lent: LentToolsByToken;
  /** The address that this process listens on, once it does. */
  ownUrl: () => string | undefined;
};

/** Undefined where the operator has named no program. Without a loan the program has no tools, as in dreams. */
function cliHere(
  deps: StorageDeps,
  { agentCommand, agentCommandEnv = [], agentMcpUrl }: OptionValues<typeof AGENT_OPTIONS>,
  loan: ToolLoan | undefined,
): CliDeps | undefined {
  if (agentCommand === undefined) return undefined;
  const passed = agentCommandEnv.flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value]];
  });
  return {
    ...deps,
    command: agentCommand,
    passed: Object.fromEntries(passed) as Record<string, string>,
    lent: loan?.lent ?? new LentToolsByToken(deps.random),
    mcpUrl: () => {
      if (loan === undefined || agentMcpUrl === "off") return undefined;
      const own = loan.ownUrl();
      return agentMcpUrl ?? (own && `${own}/mcp/v1`);
    },
  };
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
