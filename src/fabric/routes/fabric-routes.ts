import * as claims from "./jobs-claim.ts";
import * as leased from "./jobs-leased.ts";
import { jobEventsRoute } from "./job-events.ts";
import * as jobs from "./jobs.ts";
import * as schedules from "./schedules.ts";
import * as workers from "./workers.ts";

/** What workers call. */
export const WORKER_ROUTES = [
  workers.registerWorkerRoute,
  workers.heartbeatRoute,
  claims.claimJobsRoute,
  jobs.enqueueOwnJobRoute,
  leased.progressRoute,
  leased.completeRoute,
  leased.failRoute,
  leased.leaseRoute,
  leased.releaseRoute,
  leased.jobLogsRoute,
];

/** What operators and callers do with workers, jobs and schedules. */
export const FABRIC_ROUTES = [
  workers.createWorkerRoute,
  workers.listWorkersRoute,
  workers.revokeWorkerRoute,
  workers.drainWorkerRoute,
  workers.admitWorkerRoute,
  jobs.enqueueJobRoute,
  jobs.listJobsRoute,
  jobs.getJobRoute,
  jobs.cancelJobRoute,
  jobs.retryJobRoute,
  jobEventsRoute,
  schedules.createScheduleRoute,
  schedules.listSchedulesRoute,
  schedules.getScheduleRoute,
  schedules.changeScheduleRoute,
  schedules.deleteScheduleRoute,
  schedules.runScheduleRoute,
];
