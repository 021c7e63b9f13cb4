import { untilAborted } from "../../../core/concurrency.ts";

/**
 * Single flight: those who need the same thing at the same time wait for one job. One who gives up leaves the others
 * waiting; the job itself is aborted when the last one has left.
 */
export class SharedJobs<T> {
  readonly #jobs = new Map<string, Job<T>>();
  readonly #onLeft: (result: T) => void;

  /** `onLeft` is called once per finished job, when nobody who waited for it can still take its result. */
  constructor(onLeft: (result: T) => void) {
    this.#onLeft = onLeft;
  }

  isUnderWay(key: string): boolean {
    return this.#jobs.has(key);
  }

  /**
   * Waits for the job under way for `key`, or for a new one. `take` is called with its result at a moment when the
   * result is still held. Rejects with what the job failed with, or with the signal's reason.
   */
  async join<R>(key: string, how: Join<T, R>): Promise<R> {
    how.signal.throwIfAborted();
    const job = this.#jobs.get(key) ?? this.#start(key, how.start);
    job.waiting++;
    try {
      return how.take(await untilAborted(job.done, how.signal));
    } finally {
      this.#leave(key, job);
    }
  }

  #start(key: string, start: (signal: AbortSignal) => Promise<T>): Job<T> {
    const stop = new AbortController();
    const job: Job<T> = { stop, done: start(stop.signal), waiting: 0, result: undefined };
    this.#jobs.set(key, job);
    job.done.then(
      (result) => {
        job.result = { value: result };
        this.#forget(key, job);
        if (job.waiting === 0) this.#onLeft(result);
      },
      () => this.#forget(key, job),
    );
    return job;
  }

  #leave(key: string, job: Job<T>): void {
    if (--job.waiting > 0) return;
    if (job.result !== undefined) {
      this.#onLeft(job.result.value);
      return;
    }
    // Whoever comes now must not wait for a job that is being aborted.
    this.#forget(key, job);
    job.stop.abort(new Error("nobody waits for it any more"));
  }

  #forget(key: string, job: Job<T>): void {
    if (this.#jobs.get(key) === job) this.#jobs.delete(key);
  }
}

type Join<T, R> = {
  signal: AbortSignal;
  start: (signal: AbortSignal) => Promise<T>;
  take: (result: T) => R;
};

type Job<T> = {
  stop: AbortController;
  done: Promise<T>;
  waiting: number;
  result: { value: T } | undefined;
};
