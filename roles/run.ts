import { QUERY_OPTIONS } from "../src/query/options.ts";
import type { QueryProcesses } from "../src/query/contract/engines.ts";
import { RowMatcher } from "../src/query/row-matcher.ts";
import { jobKindsOf, registerMetrics } from "../src/feature/collect.ts";
import { engineRoutes } from "./routes.ts";
import type { Answerers } from "./answerers.ts";
import { briefWriter } from "../src/knowledge/agent/brief.ts";
import { extractor } from "../src/knowledge/agent/distill.ts";
import type { AgentEngines } from "../src/knowledge/agent/engines/engines.ts";
import { askerOf } from "../src/knowledge/agent/run/asker.ts";
import type { McpDeps } from "../src/knowledge/mcp/deps.ts";
import { LentToolsByToken } from "../src/knowledge/mcp/lent-tools.ts";
import type { Answerer } from "../src/server/route.ts";
import { objectStoreSettings } from "../src/config/object-store.ts";
import type { Address } from "../src/config/kinds.ts";
import type { Config } from "../src/config/options.ts";
import type { LoadedConfig } from "../src/config/load.ts";
import { availableCores } from "../src/core/available-cores.ts";
import { Cleanup, type Service } from "../src/core/lifecycle.ts";
import { assertLimits } from "../src/core/limits.ts";
import { createLog } from "../src/core/log.ts";
import { keepPathsPrivate } from "../src/core/private-paths.ts";
import { VERSION } from "../src/core/version.ts";
import { createAuth, type Auth } from "./auth.ts";
import { capabilityAnswers } from "./capabilities.ts";
import type { BackgroundPorts } from "./background.ts";
import { watchDisks } from "./disks.ts";
import type { FabricParts } from "./fabric.ts";
import type { Engines } from "./query-engines.ts";
import type { SandboxParts } from "./sandboxes.ts";
import { answersOf } from "./exposure.ts";
import type { ToolLoan } from "./agent.ts";
import { httpService, type DrainState } from "./http.ts";
import { privatePathsOf } from "./private-paths.ts";
import { createParts, type Parts, type PartsOptions } from "./parts.ts";
import { needsStorage, planOf, type Plan } from "./plan.ts";
import { runUntilStopped } from "./serve.ts";
import { valuesOf } from "../src/config/option.ts";
import { OTLP_OPTIONS } from "../src/ingest/inputs/otlp/options.ts";
import { WEB_OPTIONS } from "../src/web/options.ts";
import type { SealPool } from "../src/ingest/seal-pool.ts";
import { advertisedUrl } from "../src/config/advertised-url.ts";
import type { HeartBeat } from "../src/servers/heart-beat.ts";
import type { Storage } from "./storage.ts";

export type RunOptions = LoadedConfig & PartsOptions & { listen: Address };

const DEFAULT_NOTICE_SECS = 5;

/** Runs what the configuration says this process is, until it is told to stop; resolves to the exit code. */
export async function runRoles(options: RunOptions): Promise<number> {
  assertLimits();
  const log = createLog(options.config.logLevel);
  for (const warning of options.warnings) log.warn(warning);
  const plan = planOf(options);
  keepPathsPrivate(privatePathsOf(options.config));
  for (const note of plan.notes) log.warn(note);
  const cleanup = new Cleanup();
  try {
    const services = await buildServices(plan, createParts(options, log, cleanup), options.listen);
    return await runUntilStopped({ log, services, drainTimeoutMs: options.config.drainTimeoutSecs * 1000 });
  } finally {
    await cleanup.run();
  }
}

/** Every service of the process, in the order in which they start. Modules of roles that it has not are not loaded. */
export async function buildServices(plan: Plan, parts: Parts, listen: Address): Promise<Service[]> {
  const { config } = parts;
  parts.metrics.buildInfo.set({ version: VERSION, roles: plan.roles.join(",") }, 1);
  parts.metrics.cores.set(availableCores());
  await registerMetrics(parts.features, parts.metrics);
  watchDisks(parts, plan);
  const storage = needsStorage(plan) ? await (await import("./storage.ts")).openStorage(parts) : undefined;
  // Query processes need it: it is tried, in a process of its own, while all that follows is loaded.
  if (plan.query === "here") void (await import("./confinement.ts")).confinementOf(parts);
  const heartBeat = storage && (await (await import("./servers.ts")).announceServer(plan, parts, storage));
  const seals = plan.ingest === "here" || plan.background.committer;
  const sealPool = seals ? await (await import("./seal-pool.ts")).openSealPool(parts) : undefined;
  const auth = await createAuth(parts, storage, listen);
  const draining: DrainState = { announced: false, refusing: false };
  const answers = await buildAnswers(plan, parts, { storage, sealPool, auth, heartBeat });
  const { query, ingest, services, isBusy, queryConfinement } = answers;
  const fabric = storage === undefined ? undefined : await buildFabric(plan, parts, storage, auth);
  const sandboxes = fabric && storage && (await buildSandboxes(plan, parts, { storage, fabric, draining, listen }));
  const { authenticator } = auth;
  const isDraining = (): boolean => draining.announced;
  const service = { metrics: parts.metrics, authenticator, version: VERSION, queryConfinement, isDraining };
  const jobs = fabricAnswers(plan, query, fabric);
  const features = await featureAnswers(plan, parts, { query, storage, fabric });
  const loan = { lent: new LentToolsByToken(parts.random), url: undefined as string | undefined };
  const engines = await buildEngines(features, auth, { lent: loan.lent, ownUrl: () => loan.url });
  const memory = await buildMemory(parts, features, engines);
  const graph = await buildGraphs(features, memory.answers, query);
  const own = { memory: memory.answers, graph, features, storage, sealPool };
  const tools = await toolDepsOf(parts, { ...own, query, ingest });
  const agent = await buildAgent(tools, features, engines);
  const mcp = await buildMcp(parts, tools, agent.answers, { engines, lent: loan.lent });
  const dreaming = await buildDreaming(features, { memory: memory.answers, query, engines });
  const http = httpService({
    parts,
    listen,
    draining,
    routes: await engineRoutes(
      {
        service,
        query,
        ingest,
        access: accessOf(plan, query, auth),
        fabric: jobs,
        exports: exportAnswers(parts, jobs, { storage, engines: answers.engines }),
        queryEngines: query !== undefined && "forward" in query ? query : answers.engines && { here: answers.engines },
        deletion: deletionAnswers(jobs, query, storage),
        sandboxes: sandboxAnswers(plan, query, sandboxes),
        capabilities: await capabilityAnswers(parts, features, () => sandboxes?.deps.runtime()),
        memory: memory.answers,
        graph,
        mcp: mcp.answers,
        agent: agent.answers,
        dreaming,
        feature: features,
        web: await webAnswers(plan, parts),
      },
      parts.features,
    ),
    authenticator,
    exposure: { tokensAreAsked: authenticator.isOn, weakUser: auth.weakUser, answers: answersOf(plan) },
    noticeMs: noticeMs(config, plan),
    onListening: (url, address) => {
      loan.url = url;
      if (plan.query === "here") tellAddress(parts, heartBeat, address);
    },
    onDrain: onDrainOf([answers, mcp, agent], fabric, sandboxes),
    announce: {
      roles: plan.roles,
      version: VERSION,
      node: process.version,
      ...(storage === undefined ? {} : placesOf(parts)),
    },
  });
  const { access } = auth;
  const upkeep = storage && { ...storage, sealPool, isBusy, access };
  const background = upkeep === undefined ? [] : await buildBackground(plan, parts, upkeep);
  const worker = await buildWorker(plan, parts, { storage, fabric, sandboxes, query, memory: memory.answers });
  // They drain in reverse: HTTP takes nothing more, then the jobs that run here end.
  const gateways = sandboxes === undefined ? [] : [sandboxes.gateways];
  const grpc = { authenticator, isDraining: () => draining.refusing };
  const flight = await buildFlight(plan, parts, { query, ...grpc });
  const otlp = await buildOtlp(plan, parts, { ingest, ...grpc });
  // Inputs stop first: others of their group take over.
  const inputs = await buildInputs(parts, { storage, sealPool, ingest });
  const alive = heartBeat === undefined ? [] : [heartBeat];
  const serving = [...services, ...memory.services, ...mcp.services, ...agent.services];
  return [...alive, ...serving, ...background, ...worker, ...gateways, ...flight, ...otlp, http, ...inputs];
}

/** Other servers ask this one, too, where it answers queries. */
function tellAddress({ config }: Parts, heartBeat: HeartBeat | undefined, address: Address): void {
  const url = config.advertiseUrl ?? advertisedUrl(address, config.tlsCert !== undefined);
  if (url !== undefined) heartBeat?.listensAt(url);
}

/** Arrow Flight, where queries are run. */
async function buildFlight(
  plan: Plan,
  parts: Parts,
  { query, ...ports }: Pick<Answers, "query"> & { authenticator: Auth["authenticator"]; isDraining: () => boolean },
): Promise<Service[]> {
  if (query === undefined || !("here" in query)) return [];
  const { flightService } = await import("./flight.ts");
  const flight = flightService(plan, parts, { ...ports, query: query.here.query });
  return flight === undefined ? [] : [flight];
}

/** OTLP over gRPC, where rows are taken. */
async function buildOtlp(
  plan: Plan,
  parts: Parts,
  { ingest, ...ports }: Pick<Answers, "ingest"> & { authenticator: Auth["authenticator"]; isDraining: () => boolean },
): Promise<Service[]> {
  if (ingest === undefined || !("here" in ingest)) return [];
  const { otlpService } = await import("./otlp.ts");
  const otlp = otlpService(plan, parts, { ...ports, ...ingest.here });
  return otlp === undefined ? [] : [otlp];
}

/** Signing in, users and tokens are where queries are: an edge passes them on to the same peers. */
function accessOf(plan: Plan, query: Answerers["query"], { access }: Auth): Answerers["access"] {
  if (query !== undefined && "forward" in query) return query;
  return plan.query === "here" && access !== undefined ? { here: access } : undefined;
}

/** Where jobs are run, or routes about them answered. */
async function buildFabric(
  plan: Plan,
  parts: Parts,
  storage: Storage,
  { access, workers }: Auth,
): Promise<FabricParts | undefined> {
  if (access === undefined || (plan.query !== "here" && !plan.background.worker)) return undefined;
  const { openFabric } = await import("./fabric.ts");
  const kinds = await jobKindsOf(parts.features, parts.config);
  return openFabric(parts, storage, { ...access, workers }, kinds);
}

async function buildWorker(
  plan: Plan,
  parts: Parts,
  {
    storage,
    fabric,
    sandboxes,
    query,
    memory,
  }: {
    storage: Storage | undefined;
    fabric: FabricParts | undefined;
    sandboxes: SandboxParts | undefined;
    memory: Answerers["memory"];
  } & Pick<Answers, "query">,
): Promise<Service[]> {
  if (!plan.background.worker || storage === undefined || fabric === undefined) return [];
  const here = query !== undefined && "here" in query ? query.here.query : undefined;
  const { dutyServices, featureDeps, workerServices } = await import("./fabric.ts");
  const remembers = memory !== undefined && "here" in memory ? memory.here.memory : undefined;
  const { queryEngines } = await import("./query-engines.ts");
  const engines = queryEngines(parts, storage, fabric.deps);
  const jobs = await workerServices(parts, { ...storage, query: here, engines, memory: remembers }, fabric);
  if (sandboxes === undefined) return jobs;
  const [{ sandboxDuties }, { sandboxNode }] = await Promise.all([
    import("../src/sandbox/control/duties.ts"),
    import("./sandbox-node.ts"),
  ]);
  // No contributions of their feature: they share the control plane with the routes (docs/architecture.md).
  const duties = sandboxDuties(featureDeps(parts, storage, fabric), sandboxes.deps);
  return [...jobs, ...dutyServices(parts, storage, duties), sandboxNode(parts, { fabric, sandboxes })];
}

/** Where jobs are, sandboxes are: nodes have them by jobs. */
async function buildSandboxes(
  plan: Plan,
  parts: Parts,
  {
    storage,
    fabric,
    draining,
    listen,
  }: { storage: Storage; fabric: FabricParts; draining: DrainState; listen: Address },
): Promise<SandboxParts> {
  const { openSandboxes } = await import("./sandboxes.ts");
  return openSandboxes(parts, storage, fabric, {
    isDraining: () => draining.announced,
    listen: plan.query === "here" ? listen : undefined,
  });
}

/** Routes about sandboxes are where queries are. */
function sandboxAnswers(
  plan: Plan,
  query: Answerers["query"],
  sandboxes: SandboxParts | undefined,
): Answerers["sandboxes"] {
  if (query !== undefined && "forward" in query) return query;
  return plan.query === "here" && sandboxes !== undefined ? { here: sandboxes.deps } : undefined;
}

/** Features that need nothing special are where queries are. */
async function featureAnswers(
  plan: Plan,
  parts: Parts,
  {
    query,
    storage,
    fabric,
  }: { query: Answerers["query"]; storage: Storage | undefined; fabric: FabricParts | undefined },
): Promise<Answerers["feature"]> {
  if (query !== undefined && "forward" in query) return query;
  if (plan.query !== "here" || storage === undefined || fabric === undefined) return undefined;
  const { featureDeps } = await import("./fabric.ts");
  return { here: featureDeps(parts, storage, fabric) };
}

/** Pages for browsers, where people go to: the process that is everything, or the door of a cluster. */
async function webAnswers({ roles }: Plan, { config, random }: Parts): Promise<Answerers["web"]> {
  const isDoor = roles.includes("all_in_one") || roles.includes("edge");
  const { web = isDoor ? "on" : "off" } = valuesOf(WEB_OPTIONS, config);
  if (web === "off") return undefined;
  const { webDeps } = await import("../src/web/serve/routes.ts");
  return { here: webDeps(random) };
}

/** What answers in plain words, where credentials are. */
async function buildEngines(
  features: Answerers["feature"],
  { access }: Auth,
  loan: ToolLoan,
): Promise<AgentEngines | undefined> {
  if (access === undefined || features === undefined || "forward" in features) return undefined;
  const { enginesHere } = await import("./agent.ts");
  return enginesHere(features.here, access.credentials, loan);
}

/** Memories are where other features are. */
async function buildMemory(
  parts: Parts,
  features: Answerers["feature"],
  engines: AgentEngines | undefined,
): Promise<{ answers: Answerers["memory"]; services: readonly Service[] }> {
  if (features === undefined || "forward" in features) return { answers: features, services: [] };
  const { memoryHere, recallService } = await import("./memory.ts");
  const here = { ...memoryHere(features.here), brief: engines && briefWriter({ ...features.here, engines }) };
  const { records } = features.here;
  const { fileSyncWatch } = await import("./file-sync.ts");
  return { answers: { here }, services: [recallService(here), ...fileSyncWatch({ ...parts, records }, here.memory)] };
}

/** Graphs are where memories are and queries run. */
async function buildGraphs(
  features: Answerers["feature"],
  memory: Answerers["memory"],
  query: Answerers["query"],
): Promise<Answerers["graph"]> {
  if (memory === undefined || "forward" in memory) return memory;
  if (features === undefined || "forward" in features || query === undefined || "forward" in query) return undefined;
  const { openGraphs } = await import("../src/knowledge/graph/open.ts");
  return { here: { graphs: openGraphs({ ...features.here, ...memory.here, queries: query.here.query }) } };
}

/** What the tools of agents work with: MCP and the agent are where memories and graphs are. */
async function toolDepsOf(
  parts: Parts,
  {
    memory,
    graph,
    features,
    query,
    ingest,
    storage,
    sealPool,
  }: Pick<Answers, "query" | "ingest"> & {
    memory: Answerers["memory"];
    graph: Answerers["graph"];
    features: Answerers["feature"];
    storage: Storage | undefined;
    sealPool: SealPool | undefined;
  },
): Promise<Answerer<McpDeps>> {
  if (memory === undefined || "forward" in memory) return memory;
  const isComplete = storage !== undefined && features !== undefined && "here" in features;
  if (!isComplete || graph === undefined || "forward" in graph || query === undefined || "forward" in query)
    return undefined;
  const takesRows = ingest !== undefined && "here" in ingest;
  const [{ rowsHere }, { skillsHere }] = await Promise.all([import("./mcp.ts"), import("./skills.ts")]);
  const rows = takesRows ? ingest.here.ingest : rowsHere(parts, storage, sealPool);
  const skills = skillsHere(features.here);
  return { here: { ...features.here, ...memory.here, ...graph.here, queries: query.here.query, rows, skills } };
}

type Streaming = { services: readonly Service[]; endStreams: () => void };

/** MCP's tools work with what answers the other routes. */
async function buildMcp(
  parts: Parts,
  tools: Answerer<McpDeps>,
  agent: Answerers["agent"],
  { engines, lent }: { engines: AgentEngines | undefined; lent: LentToolsByToken },
): Promise<Streaming & { answers: Answerers["mcp"] }> {
  if (tools === undefined || "forward" in tools) return { answers: tools, services: [], endStreams: () => {} };
  const { mcpHere } = await import("./mcp.ts");
  const asker = agent !== undefined && "here" in agent ? askerOf(agent.here.agent) : undefined;
  const extracts = engines && extractor({ ...parts, engines });
  const { mcp, service } = mcpHere({ ...tools.here, lent, asker, extractor: extracts });
  // The engine of this machine is that of `engine mcp`, too.
  const sockets = parts.isLocal ? [(await import("./mcp-socket.ts")).mcpSocketBeside(parts, mcp)] : [];
  return { answers: { here: { mcp } }, services: [service, ...sockets], endStreams: () => mcp.endStreams() };
}

/** The agent is where its tools are. */
async function buildAgent(
  tools: Answerer<McpDeps>,
  features: Answerers["feature"],
  engines: AgentEngines | undefined,
): Promise<Streaming & { answers: Answerers["agent"] }> {
  if (tools === undefined || "forward" in tools) return { answers: tools, services: [], endStreams: () => {} };
  if (engines === undefined || features === undefined || "forward" in features)
    return { answers: undefined, services: [], endStreams: () => {} };
  const { agentHere } = await import("./agent.ts");
  const { answers, service, endStreams } = agentHere(features.here, { tools: tools.here, engines });
  return { answers: { here: answers }, services: [service], endStreams };
}

/** Dreams are asked for, and those of workers answered, where memories are and queries run. */
async function buildDreaming(
  features: Answerers["feature"],
  {
    memory,
    query,
    engines,
  }: { memory: Answerers["memory"]; query: Answerers["query"]; engines: AgentEngines | undefined },
): Promise<Answerers["dreaming"]> {
  if (memory === undefined || "forward" in memory) return memory;
  if (features === undefined || "forward" in features) return undefined;
  if (query === undefined || "forward" in query || engines === undefined) return undefined;
  const { dreamingHere } = await import("./dreaming.ts");
  return { here: dreamingHere(features.here, { memory: memory.here.memory, engines, query: query.here.query }) };
}

function onDrainOf(
  streaming: readonly Pick<Answers, "endStreams">[],
  fabric: FabricParts | undefined,
  sandboxes: SandboxParts | undefined,
): FabricParts["onDrain"] {
  return {
    announced: () => fabric?.onDrain.announced(),
    refusing: () => {
      for (const { endStreams } of streaming) endStreams();
      fabric?.onDrain.refusing();
      sandboxes?.close();
    },
  };
}

/** Routes about jobs are where queries are, as those about access are. */
function fabricAnswers(plan: Plan, query: Answerers["query"], fabric: FabricParts | undefined): Answerers["fabric"] {
  if (query !== undefined && "forward" in query) return query;
  return plan.query === "here" && fabric !== undefined ? { here: fabric.deps } : undefined;
}

/** Exports are jobs, and their results are in the store. */
function exportAnswers(
  { log }: Parts,
  fabric: Answerers["fabric"],
  { storage, engines }: { storage: Storage | undefined; engines: Engines | undefined },
): Answerers["exports"] {
  if (fabric === undefined || "forward" in fabric) return fabric;
  return storage === undefined || engines === undefined
    ? undefined
    : { here: { ...storage, ...fabric.here, ...engines, log } };
}

/** Deletions are jobs, and their conditions are tried as queries are. */
function deletionAnswers(
  fabric: Answerers["fabric"],
  query: Answerers["query"],
  storage: Storage | undefined,
): Answerers["deletion"] {
  if (fabric === undefined || "forward" in fabric) return fabric;
  if (storage === undefined || query === undefined || "forward" in query) return undefined;
  const { query: service } = query.here;
  return { here: { ...storage, ...fabric.here, matcher: new RowMatcher(() => Promise.resolve(service)) } };
}

async function buildBackground(plan: Plan, parts: Parts, ports: BackgroundPorts): Promise<Service[]> {
  const { committer, compaction } = plan.background;
  return committer || compaction ? (await import("./background.ts")).backgroundServices(plan, parts, ports) : [];
}

async function buildInputs(
  parts: Parts,
  {
    storage,
    sealPool,
    ingest,
  }: { storage: Storage | undefined; sealPool: SealPool | undefined } & Pick<Answers, "ingest">,
): Promise<Service[]> {
  if (storage === undefined || sealPool === undefined || ingest === undefined || "forward" in ingest) return [];
  const { inputServices } = await import("./inputs.ts");
  return inputServices(parts, storage, { ingest: ingest.here.ingest, sealPool });
}

type Answers = Pick<Answerers, "query" | "ingest"> & {
  services: readonly Service[];
  /** Has clients that read what comes go elsewhere. */
  endStreams: () => void;
  /** Where queries are run. */
  engines?: Engines;
  /** How query processes are kept in, where there are any. */
  queryConfinement?: string;
  /** Whether clients wait for this process to take their rows. */
  isBusy: () => boolean;
};

/** Who answers the routes, and the services that takes. */
async function buildAnswers(
  plan: Plan,
  parts: Parts,
  {
    storage,
    sealPool,
    auth,
    heartBeat,
  }: {
    storage: Storage | undefined;
    sealPool: SealPool | undefined;
    auth: Auth;
    heartBeat: HeartBeat | undefined;
  },
): Promise<Answers> {
  const answers: Answers = {
    query: undefined,
    ingest: undefined,
    services: [],
    endStreams: () => {},
    isBusy: () => false,
  };
  if (plan.query === "peers" || plan.ingest === "peers") {
    const edge = (await import("./edge.ts")).createEdge(parts, plan);
    answers.services = edge.services;
    if (edge.query !== undefined) answers.query = { forward: edge.query };
    if (edge.ingest !== undefined) answers.ingest = { forward: edge.ingest };
  }
  if (storage === undefined) return answers;
  if (plan.ingest === "here" && sealPool !== undefined) {
    const { createIngest } = await import("./ingest.ts");
    const { service, isBusy, budget } = createIngest(parts, storage, sealPool);
    const { otlpDatabase } = valuesOf(OTLP_OPTIONS, parts.config);
    answers.ingest = { here: { ...storage, ingest: service, otlpDatabase } };
    answers.isBusy = isBusy;
    const { fileDropServices } = await import("./filedrop.ts");
    answers.services = [...answers.services, ...(await fileDropServices(parts, storage, { ...sealPool, budget }))];
  }
  if (plan.query === "here" && auth.access !== undefined && heartBeat !== undefined) {
    const { queryEngines, enginesWith } = await import("./query-engines.ts");
    const engines = queryEngines(parts, storage, auth.access);
    const { createQuery, createTails } = await import("./query.ts");
    const schemaCacheTtlMs = valuesOf(QUERY_OPTIONS, parts.config).schemaCacheTtlSecs * 1000;
    const { service, confinement } = await createQuery(parts, storage, engines);
    const converter = (): Promise<QueryProcesses> => Promise.resolve(service);
    answers.engines = enginesWith(parts, storage, engines, { converter, folder: "remote" });
    const { remote } = answers.engines;
    const { clock, log, metrics, newId } = parts;
    const tails = createTails(parts, storage, service);
    const { OtherServers } = await import("../src/servers/other-servers.ts");
    const nodes = new OtherServers({ heartBeat, clock });
    answers.query = {
      here: {
        ...storage,
        query: service,
        running: service,
        checker: service,
        nodes,
        remote,
        tails,
        clock,
        log,
        metrics,
        newId,
        schemaCacheTtlMs,
      },
    };
    answers.endStreams = () => tails.close();
    answers.queryConfinement = confinement;
  }
  return answers;
}

/** Where the data is, for the log. */
export function placesOf(loaded: Pick<LoadedConfig, "config" | "origins">): { catalog: string; data: string } {
  const { catalogUrl, pathPrefix } = loaded.config;
  const catalog = catalogUrl.kind === "sqlite" ? catalogUrl.path : "postgres";
  const store = objectStoreSettings(loaded);
  return { catalog, data: store.kind === "local" ? store.root : `s3://${store.bucket}/${pathPrefix}` };
}

/** A server that nobody sends to, or that is alone, stops at once; one among others gives them time to notice. */
function noticeMs({ drainNoticeSecs, drainTimeoutSecs }: Config, { roles, query, ingest }: Plan): number {
  const asked = query !== "nobody" || ingest !== "nobody";
  const amongOthers = asked && !roles.includes("all_in_one");
  const ownSecs = amongOthers ? Math.min(DEFAULT_NOTICE_SECS, drainTimeoutSecs / 2) : 0;
  return (drainNoticeSecs ?? ownSecs) * 1000;
}
