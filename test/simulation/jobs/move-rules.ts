import type { JobRow, Move } from "./moves.ts";

export type HolderVerb = "extend" | "progress" | "complete" | "fail" | "release";
export type OperatorVerb = "cancel" | "retry";

/** What is known of one lease: a job with a fence. */
export type HoldRecord = {
  /** What its holder has ever asked for. */
  asked: Set<HolderVerb>;
  /** Results with which it asked to complete the job, as JSON. */
  results: Set<string>;
  /** Who got it; a claim whose answer was lost gave it to nobody. */
  givenTo: string | undefined;
  /** Writes that were let in while it went on. */
  touches: number;
  /** When the cancellation was asked for. */
  cancelStep: number | undefined;
  /** Who ends it, by the move that is looked at. */
  ending: "holder" | "sweep" | undefined;
  endedBy: "holder" | "sweep" | undefined;
};

export type MoveContext = {
  nowMs: number;
  /** Of a row that was leased. */
  hold: HoldRecord | undefined;
  asked: (verb: OperatorVerb, id: string) => boolean;
};

/** The rule that a change of a row breaks, if it does. */
export function checkMove({ old, new: row }: Move, context: MoveContext): string | undefined {
  if (row === undefined) return old?.status === "queued" || old?.status === "leased" ? "no job is lost" : undefined;
  if (row.attempt > row.max_attempts) return "attempts are bounded";
  if (old === undefined) {
    return row.status === "queued" && row.fence === 0 && row.attempt === 0 ? undefined : "a new job waits";
  }
  if (old.status === "leased" && context.hold !== undefined) return checkLeased(old, row, context.hold, context);
  if (old.status === "queued") return checkQueued(old, row, context);
  return checkFinished(old, row, context);
}

function checkQueued(old: JobRow, row: JobRow, { nowMs, asked }: MoveContext): string | undefined {
  if (row.status === "cancelled") return asked("cancel", row.id) ? undefined : "nobody else cancels a job";
  if (row.status !== "leased") return "only a claim moves a job that waits";
  if (row.fence !== old.fence + 1) return "fences grow with each claim";
  if (row.attempt !== old.attempt + 1) return "attempts are counted";
  if (old.run_after_ms > nowMs) return "no job is claimed before it is due";
  if (row.cancel_requested === 1) return "a cancelled job does not run again";
  return row.lease_expires_at_ms === nowMs + row.lease_ms ? undefined : "a lease lasts as long as the kind says";
}

function checkLeased(old: JobRow, row: JobRow, hold: HoldRecord, { nowMs, asked }: MoveContext): string | undefined {
  const isValid = (old.lease_expires_at_ms ?? 0) > nowMs;
  if (row.fence !== old.fence || (row.status === "leased" && row.holder !== old.holder)) {
    return isValid ? "a job has one valid lease" : "an ended lease is swept first";
  }
  if (old.cancel_requested === 1 && (row.cancel_requested === 0 || row.status === "queued")) {
    return "a cancelled job does not run again";
  }
  if (row.status === "leased") {
    if (row.cancel_requested > old.cancel_requested) return asked("cancel", row.id) ? undefined : "nobody else cancels";
    // Who cancels once more changes nothing.
    if (isSame(old, row) && old.cancel_requested === 1 && asked("cancel", row.id)) return undefined;
    if (!isValid) return "no write after the end of a lease";
    if ((row.lease_expires_at_ms ?? 0) < (old.lease_expires_at_ms ?? 0)) return "a lease does not shrink";
    return hold.asked.has("progress") || hold.asked.has("extend") ? undefined : "only its holder writes to a job";
  }
  hold.ending = isValid ? "holder" : "sweep";
  if (isValid) return checkEnding(old, row, hold);
  if (row.status === "done") return "no write after the end of a lease";
  if (row.attempt !== old.attempt) return "no write after the end of a lease";
  const next = old.attempt < old.max_attempts ? "queued" : "failed";
  return row.status === (old.cancel_requested === 1 ? "cancelled" : next) ? undefined : "the sweep gives jobs on";
}

/** While the lease is valid, its holder alone ends it; a claim that nobody got is given back for it. */
function checkEnding(old: JobRow, row: JobRow, { asked, results, givenTo }: HoldRecord): string | undefined {
  if (row.status === "done") {
    return asked.has("complete") && results.has(row.result ?? "") ? undefined : "a valid lease is not taken away";
  }
  if (row.attempt === old.attempt - 1) {
    return asked.has("release") || givenTo === undefined ? undefined : "a valid lease is not taken away";
  }
  if (row.attempt !== old.attempt || !asked.has("fail")) return "a valid lease is not taken away";
  return row.status === "cancelled" && old.cancel_requested === 0 ? "nobody else cancels a job" : undefined;
}

function checkFinished(old: JobRow, row: JobRow, { asked }: MoveContext): string | undefined {
  if (row.fence !== old.fence) return "finished stays finished";
  if (old.status === "done") {
    return row.status === "done" && row.result === old.result ? undefined : "finished stays finished";
  }
  if (row.status === old.status) return undefined;
  if (row.status !== "queued" || !asked("retry", row.id)) return "finished stays finished";
  return row.attempt === 0 && row.cancel_requested === 0 ? undefined : "a job that is retried is as new";
}

/** For holders, and those who wait. */
function isSame(old: JobRow, row: JobRow): boolean {
  return old.lease_expires_at_ms === row.lease_expires_at_ms && old.progress === row.progress;
}
