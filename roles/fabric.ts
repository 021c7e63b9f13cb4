import { FABRIC_OPTIONS } from "../src/fabric/options.ts";
import { valuesOf } from "../src/config/option.ts";
import type { FabricDeps } from "../src/fabric/routes/deps.ts";
import { contributed } from "../src/feature/collect.ts";
import type { FeatureDeps, FeatureDuty } from "../src/feature/feature.ts";
import { createLeaseLoop } from "../src/feature/lease-loop.ts";
import type { Service } from "../src/core/lifecycle.ts";
import { Fabric } from "../src/fabric/fabric.ts";
import type { JobHandler } from "../src/fabric/handler.ts";
import type { Hold } from "../src/fabric/job.ts";
import { JobEvents } from "../src/fabric/job-events.ts";
import { JobLogs } from "../src/fabric/job-logs.ts";
import { JobMetrics } from "../src/fabric/job-metrics.ts";
import { JOB_METRICS } from "../src/fabric/metrics.ts";
import { JobKinds, type JobKind } from "../src/fabric/kinds.ts";
import { LocalPort } from "../src/fabric/local-port.ts";
import type { Credentials } from "../src/credentials/credentials.ts";
import type { JobCredentialDeps } from "../src/credentials/routes/job-credential.ts";
import { JobCredentials } from "../src/credentials/job-credentials.ts";
import { JobRunner } from "../src/fabric/runner.ts";
import { Schedules } from "../src/fabric/schedules.ts";
import { DREAM_JOB } from "../src/knowledge/dreaming/dream-job.ts";
import type { MemoryService } from "../src/knowledge/memory/service.ts";
import { PIPELINE_OPTIONS } from "../src/knowledge/pipelines/options.ts";
import { isStillBound } from "../src/sandbox/control/scheduler/still-bound.ts";
import { SANDBOX_JOB_KIND } from "../src/sandbox/contract/sandbox-job.ts";
import { Arrivals } from "../src/query/arrivals.ts";
import type { QueryService } from "../src/query/contract/query.ts";
import { ANYBODY, mayBeKey } from "./agent-keys.ts";
import type { Auth } from "./auth.ts";
import { engineHandlers, queryServiceOf, type HandlerPorts } from "./fabric-handlers.ts";
import type { Parts } from "./parts.ts";
import type { Storage } from "./storage.ts";

/** Of the time that a server has to drain: the rest is for giving jobs back, and for the requests in flight. */
const DRAIN_SHARE = 0.7;

/** Jobs as one process has them. */
export type FabricParts = {
  deps: FabricDeps & JobCredentialDeps & { credentials: Credentials };
  metrics: JobMetrics;
  /** The steps of stopping: see `httpService`. */
  onDrain: { announced(): void; refusing(): void };
  draining: Draining;
};

/** Aborted when the process begins to stop, at `sinceMs` on the monotonic clock. */
type Draining = { signal: AbortSignal; sinceMs: number | undefined };

type Access = Pick<Auth, "workers"> & Pick<NonNullable<Auth["access"]>, "audit" | "credentials" | "tokens">;

/** The fabric of this process, for its routes and for its dispatcher. */
export function openFabric(parts: Parts, storage: Storage, access: Access, kinds: readonly JobKind[]): FabricParts {
  const { clock, metrics } = parts;
  const { records } = storage;
  const { workers, audit, credentials } = access;
  if (workers === undefined) throw new Error("a process with a catalog knows the workers");
  const jobMetrics = new JobMetrics(metrics);
  const fabric = new Fabric({
    ...parts,
    ...storage,
    kinds: new JobKinds(kinds),
    leaseMs: valuesOf(FABRIC_OPTIONS, parts.config).fabricLeaseSecs * 1_000,
    metrics: jobMetrics,
  });
  JOB_METRICS.of(metrics).jobClaimsWaiting.watch({}, () => fabric.claimsWaiting);
  const logs = new JobLogs(records);
  const jobEvents = new JobEvents({ ...parts, records, logs });
  const schedules = new Schedules({ ...parts, records, fabric });
  const secrets = new JobCredentials({
    ...access,
    fabric,
    allows: async ({ id, kind }, credential) => {
      if (kind === SANDBOX_JOB_KIND) return await isStillBound(records, id, credential);
      return kind !== DREAM_JOB.name || mayBeKey(credential);
    },
    // A dream names the key of the engine, which is anybody's, and has no rights beyond its own database.
    opener: ({ kind }) => (kind === DREAM_JOB.name ? ANYBODY : undefined),
  });
  const deps = { fabric, workers, logs, jobEvents, schedules, audit, credentials, secrets, clock };
  const stop = new AbortController();
  const draining: Draining = { signal: stop.signal, sinceMs: undefined };
  const onDrain = {
    announced: () => {
      draining.sinceMs = clock.monotonicMs();
      stop.abort();
    },
    // Else claims that wait, and those who watch jobs, would be waited for.
    refusing: () => {
      fabric.close();
      jobEvents.close();
    },
  };
  return { deps, metrics: jobMetrics, onDrain, draining };
}

/** What the role `worker` is made of. */
export async function workerServices(
  parts: Parts,
  { memory, ...ports }: HandlerPorts & { memory: MemoryService | undefined },
  fabric: FabricParts,
): Promise<Service[]> {
  const deps = featureDeps(parts, ports, fabric);
  const handlers = await contributed(parts.features, ({ jobHandlers }) => jobHandlers?.(deps));
  const duties = await contributed(parts.features, ({ duties: of }) => of?.worker?.(deps));
  const query = queryServiceOf(parts, ports);
  const { dreamer } = await import("./dreaming.ts");
  const dreams = dreamer(deps, { credentials: fabric.deps.credentials, query, memory });
  return [
    ...dutyServices(parts, ports, [...duties, ...(await correlation(deps, query))]),
    dispatcher(parts, fabric, [...engineHandlers(parts, ports, query), dreams, ...handlers]),
  ];
}

/** No contribution of its feature: it shares the query service with clients (docs/architecture.md). */
async function correlation(deps: FeatureDeps, query: () => Promise<QueryService>): Promise<FeatureDuty[]> {
  if (!valuesOf(PIPELINE_OPTIONS, deps.config).ciCorrelate) return [];
  const { correlationDuties } = await import("../src/knowledge/pipelines/duties.ts");
  return correlationDuties(deps, new Arrivals({ ...deps, query, nowMs: () => deps.clock.nowMs() }));
}

/** Duties under leases that this process holds. */
export function dutyServices(
  parts: Parts,
  { catalog }: Pick<Storage, "catalog">,
  duties: readonly FeatureDuty[],
): Service[] {
  const holder = parts.newId();
  return duties.map((duty) => createLeaseLoop({ ...parts, holder, catalog, ...duty }));
}

/** What the routes, jobs and duties of any feature work with in this process. */
export function featureDeps(parts: Parts, storage: Storage, { deps: { fabric, audit } }: FabricParts): FeatureDeps {
  const { config, log, metrics, clock, random, newId } = parts;
  const { catalog, records, signals, store } = storage;
  return { config, log, metrics, clock, random, newId, catalog, records, signals, store, fabric, audit };
}

function dispatcher(parts: Parts, { deps, draining }: FabricParts, handlers: readonly JobHandler[]): Service {
  const { log, clock, metrics } = parts;
  const config = valuesOf(FABRIC_OPTIONS, parts.config);
  const { fabric, logs } = deps;
  const port = new LocalPort({
    ...parts,
    fabric,
    logs,
    credential: (hold, id) => revealFor(deps, hold, id),
  });
  const runner = new JobRunner({ ...parts, port, handlers, slots: config.fabricWorkers });
  draining.signal.addEventListener("abort", () => runner.close(), { once: true });
  const { jobSlots, jobSlotsBusy } = JOB_METRICS.of(metrics);
  jobSlots.watch({}, () => config.fabricWorkers);
  jobSlotsBusy.watch({}, () => runner.busy);
  return {
    name: "jobs",
    run: async () => {
      log.info(
        { holder: port.holder, slots: config.fabricWorkers, kinds: handlers.map(({ kind }) => kind) },
        "taking jobs",
      );
      runner.run().catch((error: unknown) => log.error({ err: error }, "no more jobs are taken"));
    },
    drain: () => {
      const nowMs = clock.monotonicMs();
      const untilMs = (draining.sinceMs ?? nowMs) + config.drainTimeoutSecs * 1_000 * DRAIN_SHARE;
      return runner.drain(Math.max(0, untilMs - nowMs));
    },
    stop: async () => {
      runner.stop();
      fabric.close();
    },
  };
}

/** The secret for a handler of this process. */
export function revealFor({ secrets }: Pick<JobCredentialDeps, "secrets">, hold: Hold, id: string): Promise<unknown> {
  const caller = { subject: hold.holder, kind: "internal" } as const;
  return secrets.reveal(hold, id, { holder: "engine", origin: { caller, address: "", requestId: "" } });
}
