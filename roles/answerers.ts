import type { AccessDeps } from "../src/access/deps.ts";
import type { CleanupDeps } from "../src/compaction/routes/cleanup.ts";
import type { DeletionDeps } from "../src/compaction/routes/deletion.ts";
import type { ConnectionDeps } from "../src/credentials/routes/deps.ts";
import type { JobCredentialDeps } from "../src/credentials/routes/job-credential.ts";
import type { FabricDeps } from "../src/fabric/routes/deps.ts";
import type { FeatureDeps } from "../src/feature/feature.ts";
import type { IngestDeps } from "../src/ingest/routes/deps.ts";
import type { ExportDeps, QueryDeps } from "../src/query/routes/deps.ts";
import type { QueryEngineDeps } from "../src/query/routes/query-engines.ts";
import type { AgentDeps } from "../src/knowledge/agent/routes/deps.ts";
import type { DreamDeskRoutesDeps } from "../src/knowledge/dreaming/remote/routes.ts";
import type { DreamingDeps } from "../src/knowledge/dreaming/routes.ts";
import type { GraphDeps } from "../src/knowledge/graph/routes/graph.ts";
import type { McpRouteDeps } from "../src/knowledge/mcp/routes/mcp.ts";
import type { MemoryDeps } from "../src/knowledge/memory/routes/deps.ts";
import type { SandboxDeps } from "../src/sandbox/control/routes/deps.ts";
import type { Answerer } from "../src/server/route.ts";
import type { ServiceDeps } from "../src/server/service.ts";
import type { CapabilitiesDeps } from "../src/servers/routes/capabilities.ts";
import type { WebDeps } from "../src/web/serve/routes.ts";

/** What each group of routes works with. A new feature's are `feature`, unless it needs more than that has. */
export type AnsweredDeps = {
  service: ServiceDeps;
  query: QueryDeps;
  ingest: IngestDeps & CleanupDeps;
  access: AccessDeps & ConnectionDeps;
  fabric: FabricDeps & JobCredentialDeps;
  exports: ExportDeps;
  queryEngines: QueryEngineDeps;
  deletion: DeletionDeps;
  memory: MemoryDeps;
  graph: GraphDeps;
  mcp: McpRouteDeps;
  agent: AgentDeps;
  dreaming: DreamingDeps & DreamDeskRoutesDeps;
  sandboxes: SandboxDeps;
  capabilities: CapabilitiesDeps;
  feature: FeatureDeps;
  web: WebDeps;
};

/** Who answers each group of routes of one process. */
export type Answerers = {
  service: ServiceDeps;
  query: Answerer<AnsweredDeps["query"]>;
  ingest: Answerer<AnsweredDeps["ingest"]>;
  access: Answerer<AnsweredDeps["access"]>;
  fabric: Answerer<AnsweredDeps["fabric"]>;
  exports: Answerer<AnsweredDeps["exports"]>;
  queryEngines?: Answerer<AnsweredDeps["queryEngines"]>;
  deletion: Answerer<AnsweredDeps["deletion"]>;
  memory?: Answerer<AnsweredDeps["memory"]>;
  graph?: Answerer<AnsweredDeps["graph"]>;
  mcp?: Answerer<AnsweredDeps["mcp"]>;
  agent?: Answerer<AnsweredDeps["agent"]>;
  dreaming?: Answerer<AnsweredDeps["dreaming"]>;
  sandboxes?: Answerer<AnsweredDeps["sandboxes"]>;
  capabilities?: Answerer<AnsweredDeps["capabilities"]>;
  feature?: Answerer<AnsweredDeps["feature"]>;
  web?: Answerer<AnsweredDeps["web"]>;
};
