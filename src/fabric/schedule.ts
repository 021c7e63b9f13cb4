import { createHash } from "node:crypto";
import type { RecordRow } from "../db/records.ts";
import type { Ticks, Timing } from "./cron.ts";
import { jsonOf, optionalNumber, optionalText, ownerOf, textOf, type JobOwner } from "./job.ts";
import { FABRIC_LIMITS } from "./limits.ts";

/** What enqueues a job again and again. */
export type Schedule = {
  id: string;
  name: string;
  kind: string;
  payload: unknown;
  database: string | undefined;
  timing: Timing;
  catchUp: CatchUp;
  /** Each tick comes later by up to so much, though not as late as the next one. */
  jitterMs: number;
  enabled: boolean;
  /** When the next job is due; undefined where there is none to come. */
  nextAtMs: number | undefined;
  /** The newest tick that is over, whether or not it made a job. */
  lastAtMs: number | undefined;
  lastJobId: string | undefined;
  /** Whose it is, with the rights that they had when they defined it last: its jobs run with these. */
  owner: JobOwner;
  createdAtMs: number;
  /** When it was defined as it is: ticks count from then. */
  updatedAtMs: number;
};

/**
 * What becomes of ticks that were missed, because no node ran: they are left out (`skip`), make one job together
 * (`once`), or one each (`all`), the newest `FABRIC_LIMITS.catchUpJobs`.
 */
export const CATCH_UPS = ["skip", "once", "all"] as const;
export type CatchUp = (typeof CATCH_UPS)[number];

export const SCHEDULE_COLUMNS =
  "id, name, kind, payload, database_name, timing, catch_up, jitter_ms, enabled, next_at_ms, last_at_ms, last_job_id, " +
  "owner, subject, caller_kind, role, databases, created_at_ms, updated_at_ms";

export function toSchedule(row: RecordRow): Schedule {
  const catchUp = CATCH_UPS.find((one) => one === row["catch_up"]);
  if (catchUp === undefined) throw new Error(`a stored policy is ${String(row["catch_up"])}`);
  return {
    id: textOf(row, "id"),
    name: textOf(row, "name"),
    kind: textOf(row, "kind"),
    payload: jsonOf(row, "payload"),
    database: optionalText(row, "database_name"),
    timing: jsonOf(row, "timing") as Timing,
    catchUp,
    jitterMs: Number(row["jitter_ms"]),
    enabled: Number(row["enabled"]) === 1,
    nextAtMs: optionalNumber(row, "next_at_ms"),
    lastAtMs: optionalNumber(row, "last_at_ms"),
    lastJobId: optionalText(row, "last_job_id"),
    owner: ownerOf(row),
    createdAtMs: Number(row["created_at_ms"]),
    updatedAtMs: Number(row["updated_at_ms"]),
  };
}

/** A node looks every second: a tick that is later was missed. */
const MISSED_AFTER_MS = 60_000;

/** What a schedule that is due does. */
export type Due = {
  /** The ticks that make a job, the oldest first. */
  ticks: readonly number[];
  /** The newest tick that is over with it. */
  lastAtMs: number | undefined;
  nextAtMs: number | undefined;
};

type Timed = Pick<Schedule, "id" | "jitterMs">;

/** At a time at which the schedule is due. No tick is, where the rules of its time zone were changed since. */
export function dueAt(schedule: Schedule, ticks: Ticks, nowMs: number): Due {
  const { lastAtMs = 0, updatedAtMs, catchUp } = schedule;
  const since = Math.max(lastAtMs, updatedAtMs);
  const due = ticksBetween(ticks, since, nowMs).filter((tick) => fireAtMs(schedule, ticks, tick) <= nowMs);
  const newest = due.at(-1);
  if (newest === undefined) {
    return { ticks: [], lastAtMs: schedule.lastAtMs, nextAtMs: nextAfter(schedule, ticks, since) };
  }
  const isMissed = nowMs - fireAtMs(schedule, ticks, newest) > MISSED_AFTER_MS;
  const chosen = {
    skip: isMissed ? [] : [newest],
    once: [newest],
    all: due.slice(-FABRIC_LIMITS.catchUpJobs),
  }[catchUp];
  return { ticks: chosen, lastAtMs: newest, nextAtMs: nextAfter(schedule, ticks, newest) };
}

/** When the job of the first tick after a time is due. */
export function nextAfter(schedule: Timed, ticks: Ticks, atMs: number): number | undefined {
  const tick = ticks.after(atMs);
  return tick === undefined ? undefined : fireAtMs(schedule, ticks, tick);
}

/** After `since` and up to `untilMs`, the newest where there are very many. */
function ticksBetween(ticks: Ticks, since: number, untilMs: number): number[] {
  // One more than may be wanted: the newest may not be due yet.
  const most = FABRIC_LIMITS.catchUpJobs + 1;
  const found: number[] = [];
  for (let tick = ticks.after(since); tick !== undefined && tick <= untilMs; tick = ticks.after(tick)) {
    found.push(tick);
    if (found.length > most) return ticks.upTo(untilMs, most);
  }
  return found;
}

/** The same on all nodes, and before the next tick, so that ticks keep their order. */
function fireAtMs({ id, jitterMs }: Timed, ticks: Ticks, tick: number): number {
  if (jitterMs === 0) return tick;
  const mostMs = Math.min(jitterMs, (ticks.after(tick) ?? Infinity) - tick);
  const share = createHash("sha256").update(`${id} ${tick}`).digest().readUInt32BE(0) / 2 ** 32;
  return tick + Math.floor(share * mostMs);
}
