import type { AuditLog } from "../../auth/audit.ts";
import type { Clock } from "../../core/clock.ts";
import type { Fabric } from "../fabric.ts";
import type { JobEvents } from "../job-events.ts";
import type { JobLogs } from "../job-logs.ts";
import type { Schedules } from "../schedules.ts";
import type { Workers } from "../workers.ts";
import type { Caller } from "../../auth/caller.ts";

/** What workers, jobs and schedules work with. */
export type FabricDeps = {
  /** Rejects with `not_found` for a credential that the caller may not have jobs name. */
  credentials: { get(id: string, caller: Caller): Promise<unknown> };
  fabric: Fabric;
  workers: Workers;
  logs: JobLogs;
  jobEvents: JobEvents;
  schedules: Schedules;
  audit: AuditLog;
  clock: Clock;
};
