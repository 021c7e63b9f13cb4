import type { RecordStore } from "../db/records.ts";
import type { Clock, TimerHandle } from "../core/clock.ts";
import { EngineError, messageOf } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import type { JobLogs, KeptLine } from "./job-logs.ts";
import { JOB_COLUMNS, toJob, type Job, type JobStatus } from "./job.ts";
import { FABRIC_LIMITS } from "./limits.ts";

/** What happens to a job, as its watchers see it; `end` comes last, when the job is finished. */
export type JobEvent =
  | { type: "log"; line: KeptLine }
  | { type: "state"; job: WatchedJob }
  | { type: "end"; status: JobStatus | undefined };

/** Those who watch many jobs would hold much otherwise. */
export type WatchedJob = Omit<Job, "payload" | "result">;

export type JobEventsOptions = { records: RecordStore; logs: JobLogs; clock: Clock; log: Log };

const LOOK_EVERY_MS = 1_000;
/** Lines that one look reads for one watcher. */
const LINES_AT_ONCE = 500;
/** Then a watcher ends, and who asks again shows again that it may. */
const MOST_MS = 3_600_000;
/** A change within the ms of a look may follow it unseen: what changed a moment ago is looked at again. */
const FRESH_MS = 100;

const COLUMNS = JOB_COLUMNS.split(", ")
  .filter((name) => name !== "payload" && name !== "result")
  .join(", ");

/** What one look saw of a job. */
type Seen = { mark: string; isFinished: boolean; newestSeq: number };

/**
 * Tells what happens to jobs. Those who watch in one process share looks: one statement a second for all jobs that are
 * watched, and more only for those that changed. A watcher that takes its events slowly is not looked for until it has
 * taken them, so none gathers more than one look finds.
 */
export class JobEvents {
  readonly #options: JobEventsOptions;
  readonly #watchers = new Set<JobWatcher>();
  #nextLook: TimerHandle | undefined;
  #isLooking = false;
  #isClosed = false;

  constructor(options: JobEventsOptions) {
    this.#options = options;
  }

  /** Watchers in this process. */
  get watching(): number {
    return this.#watchers.size;
  }

  /**
   * The job's state at once, the lines with a number greater than `afterSeq`, then what comes. Ends after `end`; without
   * it when the process stops, or after an hour. `return` must be called when it is given up. Throws
   * `too_many_requests`.
   */
  watch(jobId: string, afterSeq: number): AsyncIterableIterator<JobEvent> {
    if (this.#isClosed) throw new EngineError("unavailable", "this server is about to stop");
    if (this.#watchers.size >= FABRIC_LIMITS.watchers) {
      throw new EngineError("too_many_requests", "too many watch jobs here", { headers: { "Retry-After": "5" } });
    }
    const watcher = new JobWatcher(jobId, afterSeq, {
      endsAtMs: this.#options.clock.monotonicMs() + MOST_MS,
      onEnd: () => void this.#watchers.delete(watcher),
      onTaken: () => this.#lookSoon(),
    });
    this.#watchers.add(watcher);
    this.#lookSoon();
    return watcher;
  }

  /** Those who watch get no more. */
  close(): void {
    this.#isClosed = true;
    this.#nextLook?.cancel();
    for (const watcher of this.#watchers) watcher.end();
  }

  #lookSoon(): void {
    // A look that is under way sees to those that came meanwhile.
    if (this.#isLooking || this.#isClosed) return;
    this.#nextLook?.cancel();
    void this.#look();
  }

  async #look(): Promise<void> {
    this.#isLooking = true;
    let mayLookAtOnce = true;
    try {
      await this.#lookAtAll();
    } catch (error) {
      mayLookAtOnce = false;
      this.#options.log.warn({ reason: messageOf(error) }, "jobs that are watched could not be looked at");
    }
    this.#isLooking = false;
    if (this.#watchers.size === 0 || this.#isClosed) return;
    if (mayLookAtOnce && [...this.#watchers].some(({ isImpatient }) => isImpatient)) this.#lookSoon();
    else this.#nextLook = this.#options.clock.after(LOOK_EVERY_MS, () => this.#lookSoon(), { background: true });
  }

  async #lookAtAll(): Promise<void> {
    const nowMs = this.#options.clock.monotonicMs();
    for (const watcher of this.#watchers) if (watcher.endsAtMs <= nowMs) watcher.end();
    const ready = [...this.#watchers].filter((watcher) => watcher.isReady);
    if (ready.length === 0) return;
    const seen = await this.#seen([...new Set(ready.map(({ jobId }) => jobId))]);
    const changed = ready.filter((watcher) => watcher.mark !== seen.get(watcher.jobId)?.mark);
    const jobs = await this.#jobs([...new Set(changed.map(({ jobId }) => jobId))].filter((id) => seen.has(id)));
    const lines = new Map<string, Promise<KeptLine[]>>();
    for (const watcher of ready) {
      const found = seen.get(watcher.jobId);
      const kept = await this.#linesFor(watcher, found?.newestSeq ?? 0, lines);
      watcher.tell({ seen: found, job: jobs.get(watcher.jobId), lines: kept });
    }
  }

  async #seen(ids: readonly string[]): Promise<Map<string, Seen>> {
    if (ids.length === 0) return new Map();
    const rows = await this.#options.records.rows(
      "SELECT id, status, fence, cancel_requested, updated_at_ms, " +
        "CASE WHEN updated_at_ms > ? THEN 1 ELSE 0 END AS is_fresh, " +
        "(SELECT max(seq) FROM job_logs WHERE job_id = jobs.id) AS newest_seq FROM jobs " +
        `WHERE id IN (${ids.map(() => "?").join(", ")})`,
      [{ nowPlusMs: -FRESH_MS }, ...ids],
    );
    return new Map(
      rows.map((row) => {
        const { status, fence, cancel_requested: cancel, updated_at_ms: updated, is_fresh: fresh } = row;
        const mark = [status, fence, cancel, updated, fresh].map(String).join(" ");
        const isFinished = status !== "queued" && status !== "leased";
        return [String(row["id"]), { mark, isFinished, newestSeq: Number(row["newest_seq"] ?? 0) }];
      }),
    );
  }

  async #jobs(ids: readonly string[]): Promise<Map<string, WatchedJob>> {
    if (ids.length === 0) return new Map();
    const rows = await this.#options.records.rows(
      `SELECT ${COLUMNS} FROM jobs WHERE id IN (${ids.map(() => "?").join(", ")})`,
      ids,
    );
    return new Map(rows.map(toJob).map((job) => [job.id, job]));
  }

  /** Watchers that are equally far share what is read. */
  async #linesFor(
    { jobId, seq }: JobWatcher,
    newestSeq: number,
    read: Map<string, Promise<KeptLine[]>>,
  ): Promise<readonly KeptLine[]> {
    if (newestSeq <= seq) return [];
    const key = `${jobId} ${seq}`;
    const lines = read.get(key) ?? this.#options.logs.read(jobId, { afterSeq: seq, limit: LINES_AT_ONCE });
    read.set(key, lines);
    return await lines;
  }
}

/** By hand, for a generator that waits cannot be told to end. */
class JobWatcher implements AsyncIterableIterator<JobEvent> {
  readonly jobId: string;
  readonly endsAtMs: number;
  readonly #onEnd: () => void;
  readonly #onTaken: () => void;
  /** The newest line that was handed over, or waits to be. */
  #seq: number;
  #mark: string | undefined;
  /** The state that was told last, as text. */
  #told: string | undefined;
  #status: JobStatus | undefined;
  #events: JobEvent[] = [];
  #isEnded = false;
  #isImpatient = true;
  #next: PromiseWithResolvers<IteratorResult<JobEvent>> | undefined;

  constructor(
    jobId: string,
    afterSeq: number,
    { endsAtMs, onEnd, onTaken }: { endsAtMs: number; onEnd: () => void; onTaken: () => void },
  ) {
    this.jobId = jobId;
    this.#seq = afterSeq;
    this.endsAtMs = endsAtMs;
    this.#onEnd = onEnd;
    this.#onTaken = onTaken;
  }

  get seq(): number {
    return this.#seq;
  }

  /** What the look saw whose news this has. */
  get mark(): string | undefined {
    return this.#mark;
  }

  /** Whether it has handed over what it had. */
  get isReady(): boolean {
    return this.#events.length === 0;
  }

  /** Whether it should not wait for the next look: it is new, or there are more lines than the last one read. */
  get isImpatient(): boolean {
    return this.#isImpatient && this.isReady;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<JobEvent>> {
    this.#next ??= Promise.withResolvers();
    const { promise } = this.#next;
    this.#hand();
    return promise;
  }

  async return(): Promise<IteratorResult<JobEvent>> {
    this.#events = [];
    this.end();
    return { done: true, value: undefined };
  }

  /** No more comes; what waits is still handed over. */
  end(): void {
    this.#isEnded = true;
    this.#onEnd();
    this.#hand();
  }

  /** What a look found; a job that is gone was finished. */
  tell({
    seen,
    job,
    lines,
  }: {
    seen: Seen | undefined;
    job: WatchedJob | undefined;
    lines: readonly KeptLine[];
  }): void {
    if (this.#isEnded) return;
    const state = job === undefined ? [] : this.#newsOf(job);
    const said = lines.map((line) => ({ type: "log", line }) as const);
    // The first state comes at once, later ones after what was said on the way to them.
    this.#events.push(...(this.#mark === undefined ? [...state, ...said] : [...said, ...state]));
    if (job !== undefined) this.#mark = seen?.mark;
    this.#seq = lines.at(-1)?.seq ?? this.#seq;
    this.#isImpatient = seen !== undefined && this.#seq < seen.newestSeq;
    // A job that was seen finished has no lines to come, unless it was retried since.
    const isOver = seen === undefined || (seen.isFinished && isFinished(this.#status));
    if (isOver && !this.#isImpatient) {
      this.#events.push({ type: "end", status: this.#status });
      this.end();
    }
    this.#hand();
  }

  #newsOf(job: WatchedJob): JobEvent[] {
    const { status, attempt, progress, error, holder, cancelRequested, runAfterMs, finishedAtMs } = job;
    const text = JSON.stringify([
      [status, attempt, progress, error],
      [holder, cancelRequested, runAfterMs, finishedAtMs],
    ]);
    this.#status = status;
    if (text === this.#told) return [];
    this.#told = text;
    return [{ type: "state", job }];
  }

  #hand(): void {
    const next = this.#next;
    if (next === undefined) return;
    const event = this.#events.shift();
    if (event === undefined && !this.#isEnded) return;
    this.#next = undefined;
    next.resolve(event === undefined ? { done: true, value: undefined } : { done: false, value: event });
    if (this.isImpatient && !this.#isEnded) this.#onTaken();
  }
}

function isFinished(status: JobStatus | undefined): boolean {
  return status !== undefined && status !== "queued" && status !== "leased";
}
