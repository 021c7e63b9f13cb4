/** Limits of the job fabric. Those of the specification say so. */
export const FABRIC_LIMITS = {
  payloadBytes: 256 * 1024,
  progressBytes: 64 * 1024,
  resultBytes: 256 * 1024,
  errorChars: 4_096,
  dedupKeyChars: 255,
  credentials: 16,
  priority: { min: -100, max: 100 },
  maxAttempts: { min: 1, max: 100 },
  /** How far ahead a job may be enqueued. */
  runAfterMs: 366 * 86_400_000,
  backoffMs: { min: 0, max: 86_400_000 },
  /** What a lease may be extended to from now (specification). */
  leaseMs: { min: 10_000, max: 3_600_000 },
  /** What one claim may ask for. */
  claimJobs: 100,
  /** What a claim may wait (specification). */
  claimWaitMs: 25_000,
  /** Lanes that one process knows, and one look at the queue finds. */
  lanes: 10_000,
  /** Claims that wait in one process. */
  claimsWaiting: 10_000,
  /** Jobs that a schedule makes at once for ticks that were missed. */
  catchUpJobs: 100,
  everyMs: { min: 1_000, max: 366 * 86_400_000 },
  jitterMs: 86_400_000,
  /** Who watch jobs in one process. */
  watchers: 1_000,
  /** What is kept of a job's log: its first lines and its newest; and what may come at once. */
  log: { firstLines: 200, newestLines: 800, lineChars: 2_000, linesAtOnce: 100 },
} as const;

/** When nothing else is said: by the kind, or by who enqueues. */
export const JOB_DEFAULTS = { priority: 0, maxAttempts: 5, backoffMs: 5_000 } as const;

/** The longest pause between two attempts. */
export const MOST_BACKOFF_MS = 3_600_000;
