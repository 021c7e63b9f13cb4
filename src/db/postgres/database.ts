import { backoffMs } from "../../core/backoff.ts";
import { sleep, type Clock } from "../../core/clock.ts";
import { EngineError } from "../../core/errors.ts";
import type { IdSource } from "../../core/ids.ts";
import { LIMITS } from "../../core/limits.ts";
import type { Metrics } from "../../core/metrics.ts";
import type { Random } from "../../core/random.ts";
import type { Connection, Parameter, Row } from "./connection.ts";
import { ConnectionLost, isConflict, isLockTimeout, toDatabaseError, unavailable } from "./errors.ts";
import type { Pool } from "./pool.ts";

export type DatabaseOptions = {
  /** Who reads does not wait behind those who write, which wait for each other in the database. */
  readers: Pool;
  writers: Pool;
  clock: Clock;
  random: Random;
  newCommitId: IdSource;
  /** For tests, what the time is; in production the database knows. */
  nowMs: (() => number) | undefined;
  metrics: Metrics | undefined;
  /** Whether an error of the server is passed on as it is, because only the call that met it can explain it. */
  isExplainedByCaller: (error: unknown) => boolean;
};

/** A call on which the server is silent for longer is given up: it may be gone without a word. */
const CALL_LIMIT_MS = 60_000;
/** How long it is tried to learn what became of a commit whose answer was lost. */
const RESOLVE_WITHIN_MS = 60_000;
const RESOLVE_EVERY_MS = 200;
/** A read, or a write that may be repeated, is tried so often when its connection breaks. */
const ATTEMPTS_WHEN_LOST = 4;
/** What others are in the way of is tried no longer than this, nor more often than `LIMITS.commitAttempts`. */
const REPEAT_WITHIN_MS = 30_000;
const CONFLICT_PAUSE = { firstMs: 4, mostMs: 500 } as const;

/**
 * Work that only reads: it starts again when its connection breaks, `ATTEMPTS_WHEN_LOST` times in all. A call may take
 * `limitMs`, or as long as it likes; `told` makes what the caller sees of other errors.
 */
export async function readThrough<T>(
  pool: Pool,
  work: (connection: Connection) => Promise<T>,
  { limitMs, told }: { limitMs: number | undefined; told: (error: unknown) => unknown },
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await pool.run(work, limitMs);
    } catch (error) {
      if (!(error instanceof ConnectionLost)) throw told(error);
      if (attempt >= ATTEMPTS_WHEN_LOST) throw unavailable(error);
    }
  }
}

/** Runs calls on the pools, and repeats those that may be repeated. Its errors are those of `Catalog`. */
export class Database {
  readonly #options: DatabaseOptions;

  constructor(options: DatabaseOptions) {
    this.#options = options;
  }

  /** The time for a call that needs it: NULL lets the database look at its own clock. */
  get now(): number | null {
    return this.#options.nowMs?.() ?? null;
  }

  /** One statement that only reads. */
  async rows(text: string, parameters: readonly Parameter[] = []): Promise<Row[]> {
    return await this.read((connection) => connection.query(text, parameters));
  }

  /** Work that only reads; it starts again when the connection breaks. */
  async read<T>(work: (connection: Connection) => Promise<T>, mayTakeLong = false): Promise<T> {
    const limitMs = mayTakeLong ? undefined : CALL_LIMIT_MS;
    return await readThrough(this.#options.readers, work, { limitMs, told: (error) => this.#told(error) });
  }

  /** One statement that writes and may be repeated: twice does what once does. */
  async write(text: string, parameters: readonly Parameter[]): Promise<Row[]> {
    const startedMs = this.#options.clock.monotonicMs();
    for (let attempt = 1, lost: ConnectionLost | undefined; ; attempt++) {
      try {
        return await this.#options.writers.run((connection) => connection.query(text, parameters), CALL_LIMIT_MS);
      } catch (error) {
        if (error instanceof ConnectionLost) lost = error;
        const again =
          lost === error ? attempt < ATTEMPTS_WHEN_LOST : isConflict(error) && this.#mayRepeat(attempt, startedMs);
        if (!again) throw lost === undefined ? this.#told(error) : outcomeUnknown(error);
      }
      await this.#pause(attempt);
    }
  }

  /**
   * Commits at most once. `attempt` sends one statement with the commit's id, or one transaction with it, and may
   * be called again when nothing came of it. When its answer is lost on the way, the database is asked what became of
   * that id, which also keeps the lost statement from happening later; `recall` is given what the database remembers of
   * it, and gives what `attempt` would have.
   */
  async commitOnce<T>(
    attempt: (connection: Connection, commitId: string) => Promise<T>,
    recall: (connection: Connection, answer: unknown) => Promise<T>,
  ): Promise<T> {
    const startedMs = this.#options.clock.monotonicMs();
    for (let attempts = 1; ; attempts++) {
      const commitId = this.#options.newCommitId();
      try {
        return await this.#options.writers.run((connection) => attempt(connection, commitId), CALL_LIMIT_MS);
      } catch (error) {
        if (error instanceof ConnectionLost) {
          const found = await this.#resolve(commitId, recall);
          if (found !== undefined) return found.value;
        } else if (!isConflict(error)) throw this.#told(error);
        if (!this.#mayRepeat(attempts, startedMs)) {
          if (!(error instanceof ConnectionLost)) this.countGivenUp();
          throw gaveUp(error, attempts);
        }
      }
      await this.#pause(attempts);
    }
  }

  /** One serializable transaction, begun again when others were in its way; it is undone where its work says so. */
  async transaction<T>(work: TransactWork<T>): Promise<T> {
    const startedMs = this.#options.clock.monotonicMs();
    for (let attempt = 1; ; attempt++) {
      const progress = { committing: false };
      try {
        return await this.#options.writers.run((connection) => transact(connection, work, progress), CALL_LIMIT_MS);
      } catch (error) {
        if (error instanceof ConnectionLost) {
          if (progress.committing) throw outcomeUnknown(error);
          if (attempt >= ATTEMPTS_WHEN_LOST) throw unavailable(error);
        } else if (!isConflict(error) || !this.#mayRepeat(attempt, startedMs)) throw this.#told(error);
      }
      await this.#pause(attempt);
    }
  }

  /** What the caller sees of an error. */
  #told(error: unknown): unknown {
    return this.#options.isExplainedByCaller(error) ? error : toDatabaseError(error);
  }

  /** A commit met others too often. */
  countGivenUp(): void {
    this.#options.metrics?.commitsGivenUp.inc();
  }

  /** Waits before a repetition: longer each time, and not as long as others who wait. */
  async #pause(attempt: number): Promise<void> {
    const { clock, random, metrics } = this.#options;
    metrics?.catalogRetries.inc();
    await sleep(clock, backoffMs(CONFLICT_PAUSE, attempt, random));
  }

  #mayRepeat(attempts: number, startedMs: number): boolean {
    return attempts < LIMITS.commitAttempts && this.#options.clock.monotonicMs() < startedMs + REPEAT_WITHIN_MS;
  }

  async #resolve<T>(
    commitId: string,
    recall: (connection: Connection, answer: unknown) => Promise<T>,
  ): Promise<{ value: T } | undefined> {
    const { clock, writers } = this.#options;
    const deadlineMs = clock.monotonicMs() + RESOLVE_WITHIN_MS;
    for (;;) {
      try {
        return await writers.run(async (connection) => {
          const sql = "SELECT engine.resolve_commit($1::uuid, $2::bigint) AS answer";
          const [row] = await connection.query(sql, [commitId, this.now]);
          const answer = row?.["answer"];
          if (answer === undefined) throw new Error("the catalog gave no answer about a commit");
          return answer === null ? undefined : { value: await recall(connection, answer) };
        }, CALL_LIMIT_MS);
      } catch (error) {
        if (clock.monotonicMs() > deadlineMs) throw outcomeUnknown(error);
      }
      await sleep(clock, RESOLVE_EVERY_MS);
    }
  }
}

/** What the work of a transaction says at its end. */
type Transacted<T> = { value: T } | { undo: T };
type TransactWork<T> = (connection: Connection) => Promise<Transacted<T>>;

// What the work sends at once goes with the beginning, in one round trip.
async function transact<T>(
  connection: Connection,
  work: TransactWork<T>,
  progress: { committing: boolean },
): Promise<T> {
  let isOpen = true;
  try {
    const begun = connection.script("BEGIN ISOLATION LEVEL SERIALIZABLE");
    const [, done] = await Promise.all([begun, work(connection)]);
    if ("undo" in done) return done.undo;
    progress.committing = true;
    await connection.script("COMMIT");
    isOpen = false;
    return done.value;
  } finally {
    if (isOpen && !connection.isLost) await connection.script("ROLLBACK");
  }
}

/** Nothing happened, as the database said each time. */
function gaveUp(error: unknown, attempts: number): unknown {
  if (error instanceof ConnectionLost) return unavailable(error);
  const known = toDatabaseError(error);
  if (isLockTimeout(error)) return known;
  const message = `the commit met others ${attempts} times and was given up; nothing was stored`;
  return new EngineError("ingest_failed", message, { cause: error });
}

function outcomeUnknown(error: unknown): Error {
  return new Error("the connection to PostgreSQL was lost, and it is not known whether the write took effect", {
    cause: error,
  });
}
