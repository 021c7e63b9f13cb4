import type { FeatureDeps, FeatureDuty } from "../../feature/feature.ts";
import { DreamQueue } from "./queue.ts";
import { PipelineRuns } from "./runs.ts";
import { DreamSchedules } from "./schedule.ts";
import { sweepDroppedRuns } from "./sweep.ts";

const SCHEDULES_POLL_MS = 10_000;
const SWEEP_POLL_MS = 60_000;

/** What one process of many does for all dreams. */
export function dreamDuties(deps: FeatureDeps): FeatureDuty[] {
  const runs = new PipelineRuns(deps);
  const schedules = new DreamSchedules({ ...deps, runs, queue: new DreamQueue({ ...deps, runs }) });
  return [
    { name: "dream schedules", pollMs: SCHEDULES_POLL_MS, duty: async () => void (await schedules.fireDue()) },
    {
      name: "dream sweep",
      pollMs: SWEEP_POLL_MS,
      duty: async ({ signal }) => {
        const swept = await sweepDroppedRuns(deps, signal);
        if (swept > 0) deps.log.info({ runs: swept }, "runs of dropped databases are deleted");
      },
    },
  ];
}
