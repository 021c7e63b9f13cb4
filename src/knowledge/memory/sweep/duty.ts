import type { FeatureDuty, StorageDeps } from "../../../feature/feature.ts";
import { sweepDropped } from "./dropped.ts";
import { sweepFormerModels } from "./former-models.ts";

const POLL_MS = 60_000;

/** Deletes what no memory needs any more. */
export function memorySweep(deps: Pick<StorageDeps, "catalog" | "records" | "newId" | "log">): FeatureDuty {
  const { records, log } = deps;
  const holder = deps.newId();
  return {
    name: "memory sweep",
    pollMs: POLL_MS,
    duty: async ({ signal }) => {
      const dropped = await sweepDropped(deps, signal);
      if (dropped > 0) log.info({ rows: dropped }, "memories of dropped databases are deleted");
      const former = await sweepFormerModels(records, holder, signal);
      if (former > 0) log.info({ rows: former }, "vectors of former models are deleted");
    },
  };
}
