import { valuesOf } from "../src/config/option.ts";
import { contributed } from "../src/feature/collect.ts";
import type { CompactionDeps, FeatureDuty } from "../src/feature/feature.ts";
import { createLeaseLoop } from "../src/feature/lease-loop.ts";
import type { Service } from "../src/core/lifecycle.ts";
import type { SealPool } from "../src/ingest/seal-pool.ts";
import { commitDuty } from "../src/ingest/staged/commit-duty.ts";
import { PIPELINE_OPTIONS } from "../src/knowledge/pipelines/options.ts";
import type { Auth } from "./auth.ts";
import type { Parts } from "./parts.ts";
import type { Plan } from "./plan.ts";
import type { Storage } from "./storage.ts";

export type BackgroundPorts = Storage & {
  sealPool: SealPool | undefined;
  isBusy: () => boolean;
  /** Undefined in a process that asks no language model. */
  access: Pick<NonNullable<Auth["access"]>, "audit" | "credentials"> | undefined;
};

/**
 * The services that work without being asked: what the roles `committer` and `compaction` are made of. `isBusy` says
 * whether this process has clients to serve first.
 */
export async function backgroundServices(
  { background, ingest }: Plan,
  parts: Parts,
  { sealPool, isBusy, access, ...storage }: BackgroundPorts,
): Promise<Service[]> {
  const holder = parts.newId();
  const deps = { ...parts, ...storage };
  const loop = (duty: FeatureDuty): Service => createLeaseLoop({ ...deps, holder, ...duty });
  const compaction = { ...deps, isBusy, hasClients: ingest !== "nobody" };
  const duties = background.compaction
    ? await contributed(parts.features, ({ duties: of }) => of?.compaction?.(compaction))
    : [];
  // No contribution of its feature: it shares the threads that seal with ingest (docs/architecture.md).
  const commits = background.committer && sealPool !== undefined ? [commitDuty(deps, sealPool)] : [];
  const links = background.compaction ? await consolidation(compaction, access) : [];
  return [...commits, ...duties, ...links].map(loop);
}

/** No contribution of its feature: it asks the engine of the agent, with the keys that questions use (docs/architecture.md). */
async function consolidation(deps: CompactionDeps, access: BackgroundPorts["access"]): Promise<FeatureDuty[]> {
  if (!valuesOf(PIPELINE_OPTIONS, deps.config).memoryConsolidation) return [];
  const { consolidationDuties } = await import("../src/knowledge/pipelines/duties.ts");
  if (access === undefined) return consolidationDuties(deps, undefined);
  const { enginesHere } = await import("./agent.ts");
  return consolidationDuties(deps, enginesHere({ ...deps, audit: access.audit }, access.credentials));
}
