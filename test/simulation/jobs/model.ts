import type { HoldState } from "../../../src/fabric/extend.ts";
import type { Enqueued, NewJob } from "../../../src/fabric/enqueue.ts";
import type { Hold, Job } from "../../../src/fabric/job.ts";
import { groupOf, parseLane } from "../../../src/fabric/lanes.ts";
import { Broken } from "../model.ts";
import { checkMove, type HolderVerb, type HoldRecord, type OperatorVerb } from "./move-rules.ts";
import type { JobRow, Move } from "./moves.ts";

/** How often things happened: a simulation in which nothing happens finds nothing. */
export type JobTally = Record<
  | "enqueued"
  | "deduped"
  | "claimed"
  | "completed"
  | "failed"
  | "released"
  | "swept"
  | "cancelled"
  | "retried"
  | "stale",
  number
>;

/** What the holder asks for travels with the step in which it asked. */
export type Ask = { verb: HolderVerb; hold: Hold; step: number };

/**
 * What is true of jobs, whatever goes wrong: fed with all that holders and users ask and hear, and with every change of a
 * row. It knows nothing of statements, and decides by the rules of `fabric/job.ts` alone.
 */
export class JobModel {
  readonly rows = new Map<string, JobRow>();
  readonly tally: JobTally = {
    enqueued: 0,
    deduped: 0,
    claimed: 0,
    completed: 0,
    failed: 0,
    released: 0,
    swept: 0,
    cancelled: 0,
    retried: 0,
    stale: 0,
  };
  readonly #holds = new Map<string, HoldRecord>();
  readonly #asked: Record<OperatorVerb, Set<string>> = { cancel: new Set(), retry: new Set() };
  readonly #acknowledged = new Set<string>();
  readonly #forgotten = new Set<string>();
  #step = 0;

  /** Jobs that are not finished. */
  get unfinished(): JobRow[] {
    return [...this.rows.values()].filter(isUnfinished);
  }

  /** A holder is about to write; `result` is what it completes the job with. */
  asks(verb: HolderVerb, hold: Hold, result?: unknown): Ask {
    const record = this.#holdOf(hold);
    record.asked.add(verb);
    if (result !== undefined) record.results.add(JSON.stringify(result));
    return { verb, hold, step: this.#step };
  }

  /** Somebody is about to cancel or retry a job. */
  operates(verb: OperatorVerb, id: string): void {
    this.#asked[verb].add(id);
  }

  /** What a job's cancellation is answered with. */
  hearsCancelled(id: string, job: Job): void {
    check("answers are for what was asked", job.id === id, `the cancellation of ${id} is answered with ${job.id}`);
    // One that was finished may have been retried since.
    const isTold = job.status !== "leased" || job.cancelRequested || this.#asked.retry.has(id);
    check("a holder hears of a cancellation", isTold, `${id} is to run on`);
  }

  /** All that changed, in order, when the database says that it is `nowMs`. */
  moved(moves: readonly Move[], nowMs: number): void {
    this.#step++;
    for (const move of moves) this.#apply(move, nowMs);
  }

  /** A claim is answered. */
  gives(claim: { holder: string; kinds: readonly string[]; labels: Job["selector"]; max: number }, jobs: Job[]): void {
    const { holder, kinds, labels = {}, max } = claim;
    check("answers are for what was asked", jobs.length <= max, `${jobs.length} jobs for a claim of ${max}`);
    for (const job of jobs) {
      const hold = { jobId: job.id, holder, fence: job.fence };
      const record = this.#holdOf(hold);
      const name = `${job.id} with fence ${job.fence}`;
      check("a job is given to one holder", record.givenTo === undefined, `${name}: ${record.givenTo} and ${holder}`);
      check("a job is given to one holder", job.holder === holder, `${name} of ${job.holder} goes to ${holder}`);
      record.givenTo = holder;
      const mayHave =
        kinds.includes(job.kind) &&
        (job.workerId === undefined || job.workerId === holder) &&
        Object.entries(job.selector ?? {}).every(([label, value]) => labels[label] === value);
      check("a job goes to who may have it", mayHave, `${name} goes to ${holder}`);
      this.tally.claimed++;
    }
  }

  /** A verb that ends an attempt is answered. */
  accepts({ verb, hold }: Ask, job: Job): void {
    const record = this.#holdOf(hold);
    const name = `${verb} of ${hold.jobId} with fence ${hold.fence}`;
    const isOwn = job.id === hold.jobId;
    check("answers are for what was asked", isOwn, `${name} is answered with ${job.id}`);
    check("only the holder ends its attempt", record.endedBy === "holder", `${name} is accepted`);
    if (verb !== "complete") return;
    const row = this.rows.get(hold.jobId);
    const isNewest = this.#forgotten.has(hold.jobId) || (row?.status === "done" && row.fence === hold.fence);
    check("a completion is the newest holder's", isNewest, `${name} is accepted, the job has fence ${row?.fence}`);
    const said = record.results.has(JSON.stringify(job.result));
    check("a completion is the newest holder's", said, `${name} is answered with another result`);
  }

  /** A verb that goes on holding is answered. */
  continues({ verb, hold, step }: Ask, { cancelRequested }: HoldState): void {
    const record = this.#holdOf(hold);
    const name = `${verb} of ${hold.jobId} with fence ${hold.fence}`;
    check("no write after the end of a lease", record.touches > 0, `${name} is accepted`);
    const knew = record.cancelStep === undefined || record.cancelStep > step || cancelRequested;
    check("a holder hears of a cancellation", knew, name);
  }

  refused(): void {
    this.tally.stale++;
  }

  enqueued(request: NewJob, { job, deduped }: Enqueued): void {
    const name = `${job.id} for ${JSON.stringify(request)}`;
    check("no job is lost", this.rows.has(job.id) || this.#forgotten.has(job.id), `${name} is acknowledged`);
    const { kind, database, dedupKey, payload } = request;
    const isAsked = job.kind === kind && job.database === database && job.dedupKey === dedupKey;
    const isOwn = deduped ? dedupKey !== undefined : JSON.stringify(job.payload) === JSON.stringify(payload);
    check("answers are for what was asked", isAsked && isOwn, name);
    if (deduped) this.tally.deduped++;
    this.#acknowledged.add(job.id);
  }

  /** Everything is well again, and was for long enough. */
  concludes(): void {
    for (const { id, status } of this.unfinished) throw new Broken("every job is settled", `${id} is ${status}`);
    for (const id of this.#acknowledged) {
      check("no job is lost", this.rows.has(id) || this.#forgotten.has(id), `${id} was acknowledged`);
    }
  }

  /** When a lease ends, or a job is due that waits: the first after `nowMs`. */
  nextMs(nowMs: number): number {
    const times = this.unfinished.map((row) => row.lease_expires_at_ms ?? row.run_after_ms);
    return Math.min(...times.filter((timeMs) => timeMs > nowMs));
  }

  /** Groups in which a job waits that is due. */
  waitingGroups(nowMs: number): Set<string> {
    const due = this.unfinished.filter((row) => row.status === "queued" && row.run_after_ms <= nowMs);
    return new Set(due.map(({ lane }) => groupOf(parseLane(lane))));
  }

  #apply(move: Move, nowMs: number): void {
    const { old, new: row } = move;
    const asked = (verb: OperatorVerb, id: string): boolean => this.#asked[verb].has(id);
    const hold = old?.status === "leased" ? this.#holdOf({ jobId: old.id, fence: old.fence }) : undefined;
    const rule = checkMove(move, { nowMs, hold, asked });
    this.#count(move, hold);
    if (row === undefined) {
      this.rows.delete(old?.id ?? "");
      this.#forgotten.add(old?.id ?? "");
    } else this.rows.set(row.id, row);
    if (rule !== undefined) throw new Broken(rule, `${JSON.stringify(old)} becomes ${JSON.stringify(row)} at ${nowMs}`);
    if (row === undefined || !isUnfinished(row) || row.dedup_key === null) return;
    const key = keyOf(row);
    const twin = this.unfinished.find((other) => other.id !== row.id && keyOf(other) === key);
    check("one unfinished job of a key", twin === undefined, `${row.id} and ${twin?.id} have ${key}`);
  }

  #count({ old, new: row }: Move, hold: HoldRecord | undefined): void {
    if (hold !== undefined && old !== undefined && row !== undefined) {
      if (row.status === "leased") {
        const isTouch = old.progress !== row.progress || old.lease_expires_at_ms !== row.lease_expires_at_ms;
        const isCancel = old.cancel_requested !== row.cancel_requested;
        if (isCancel) hold.cancelStep = this.#step;
        // A lease that lasts long enough is left as it is.
        if (isTouch || (!isCancel && hold.asked.has("extend"))) hold.touches++;
      } else hold.endedBy = hold.ending;
      if (hold.endedBy === "sweep") this.tally.swept++;
      else if (row.attempt < old.attempt) this.tally.released++;
      else if (row.status === "done") this.tally.completed++;
      else if (row.status !== "leased" && row.status !== "cancelled") this.tally.failed++;
    }
    if (old === undefined) this.tally.enqueued++;
    else if (row?.status === "cancelled") this.tally.cancelled++;
    else if (old.status !== "leased" && row?.status === "queued") this.tally.retried++;
  }

  #holdOf({ jobId, fence }: Pick<Hold, "jobId" | "fence">): HoldRecord {
    const key = `${jobId} ${fence}`;
    const known = this.#holds.get(key);
    if (known !== undefined) return known;
    const record: HoldRecord = {
      asked: new Set(),
      results: new Set(),
      givenTo: undefined,
      touches: 0,
      cancelStep: undefined,
      ending: undefined,
      endedBy: undefined,
    };
    this.#holds.set(key, record);
    return record;
  }
}

function isUnfinished({ status }: JobRow): boolean {
  return status === "queued" || status === "leased";
}

function keyOf({ kind, database_name: database, dedup_key: key }: JobRow): string {
  return key === null ? "" : JSON.stringify([kind, database, key]);
}

function check(rule: string, isKept: boolean, what: string): void {
  if (!isKept) throw new Broken(rule, what);
}
