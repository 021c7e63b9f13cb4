import { contributed } from "../src/feature/collect.ts";
import type { FeatureDuty } from "../src/feature/feature.ts";
import { createLeaseLoop } from "../src/feature/lease-loop.ts";
import type { Service } from "../src/core/lifecycle.ts";
import type { SealPool } from "../src/ingest/seal-pool.ts";
import { commitDuty } from "../src/ingest/staged/commit-duty.ts";
import type { Parts } from "./parts.ts";
import type { Plan } from "./plan.ts";
import type { Storage } from "./storage.ts";

export type BackgroundPorts = Storage & { sealPool: SealPool | undefined; isBusy: () => boolean };

/**
 * The services that work without being asked: what the roles `committer` and `compaction` are made of. `isBusy` says
 * whether this process has clients to serve first.
 */
export async function backgroundServices(
  { background, ingest }: Plan,
  parts: Parts,
  { sealPool, isBusy, ...storage }: BackgroundPorts,
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
  return [...commits, ...duties].map(loop);
}
