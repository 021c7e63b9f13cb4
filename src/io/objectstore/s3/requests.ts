import { backoffMs } from "../../../core/backoff.ts";
import type { Clock } from "../../../core/clock.ts";
import { sleep } from "../../../core/clock.ts";
import { Semaphore, untilAborted } from "../../../core/concurrency.ts";
import { EngineError } from "../../../core/errors.ts";
import type { Log } from "../../../core/log.ts";
import type { Metrics } from "../../../core/metrics.ts";
import type { Random } from "../../../core/random.ts";
import { RequestFailure, failureOf } from "./failure.ts";
import type { Failure, RequestOutcome, StorePlace } from "./failure.ts";
import { transferMs } from "./limits.ts";
import type { S3Limits } from "./limits.ts";
import { Timeout } from "./timeout.ts";

/** Requests as the metrics count them. */
export type RequestKind = "put" | "get" | "head" | "list" | "delete" | "multipart";

/** One operation: what for, and how much of the caller's bytes it carries. */
export type Operation = {
  kind: RequestKind;
  /** Completes "the object store failed to …". */
  what: string;
  /** Bytes that go out; what comes in is told by `Attempt.expect`. */
  sizeBytes?: number;
  signal?: AbortSignal | undefined;
};

/** One request of an operation. */
export type Attempt = {
  /** Aborted by the caller, or when the time of this request or of the whole operation is up. */
  signal: AbortSignal;
  /** 1 for the first. */
  number: number;
  /** So many bytes are about to arrive: more time for them. */
  expect(sizeBytes: number): void;
};

/** An operation on the object store that failed for good. Its message names no place; `failure.problem` does. */
export class ObjectStoreError extends EngineError {
  readonly failure: Failure;
  constructor(what: string, failure: Failure, cause: unknown, attempts: number) {
    const tries = attempts > 1 ? ` in ${attempts} attempts` : "";
    super(failure.code, `the object store failed to ${what}${tries}: ${failure.brief}`, { cause });
    this.name = "ObjectStoreError";
    this.failure = failure;
  }
}

type RequestsOptions = {
  clock: Clock;
  random: Random;
  log: Log;
  metrics: Metrics;
  place: StorePlace;
  limits: S3Limits;
};

/**
 * Runs requests: a bounded number at once, each with a time limit, again after a pause while that may help, until the
 * deadline of the operation. The SDK does not retry on its own, because its attempts end where a body begins, and most
 * of what can fail in reading an extent comes after that.
 */
export class Requests {
  readonly #options: RequestsOptions;
  readonly #slots: Semaphore;

  constructor(options: RequestsOptions) {
    this.#options = options;
    this.#slots = new Semaphore(options.limits.concurrentRequests);
  }

  /** Resolves with what an attempt gives. Throws `ObjectStoreError`, or the reason of the caller's signal. */
  async run<T>(operation: Operation, attempt: (attempt: Attempt) => Promise<T>): Promise<T> {
    operation.signal?.throwIfAborted();
    const { clock, limits } = this.#options;
    const timeoutMs = limits.deadlineMs + transferMs(limits, operation.sizeBytes ?? 0);
    const deadline = new Timeout(clock, timeoutMs, deadlinePassed, operation.signal);
    try {
      return await this.#retry(operation, deadline, attempt);
    } finally {
      deadline.dispose();
    }
  }

  async #retry<T>(operation: Operation, deadline: Timeout, attempt: (attempt: Attempt) => Promise<T>): Promise<T> {
    const { limits, clock, log } = this.#options;
    let earlier: Failure | undefined;
    for (let number = 1; ; number++) {
      try {
        // Waiting for a slot ends with the deadline too.
        const started = this.#slots.run(() => this.#attempt(operation, deadline, number, attempt));
        return await untilAborted(started, deadline.signal);
      } catch (error) {
        operation.signal?.throwIfAborted();
        const failure = this.#failureOf(operation, error);
        const pauseMs = this.#pauseMs(number);
        if (!failure.retry || number >= limits.attempts || pauseMs >= deadline.leftMs) {
          throw this.#giveUp(operation, withEarlier(failure, earlier), error, number);
        }
        earlier = failure;
        this.#options.metrics.objstoreRetries.inc({ kind: operation.kind });
        log.debug({ attempt: number, pauseMs, problem: failure.problem }, `trying again to ${operation.what}`);
        await sleep(clock, pauseMs, operation.signal);
      }
    }
  }

  #failureOf({ kind }: Operation, error: unknown): Failure {
    const failure = failureOf(error, this.#options.place);
    // Only what is asked for can be absent.
    const asks = kind === "get" || kind === "head" || kind === "delete";
    return failure.outcome === "not_found" && !asks ? { ...failure, outcome: "refused" } : failure;
  }

  #giveUp(operation: Operation, failure: Failure, error: unknown, attempts: number): ObjectStoreError {
    const failed = new ObjectStoreError(operation.what, failure, error, attempts);
    // To ask for something absent is no failure; everything else is for the operator, whom the message alone does not
    // tell which store and which setting it is about.
    if (failure.outcome === "not_found") return failed;
    this.#options.metrics.objstoreGivenUp.inc({ kind: operation.kind });
    this.#options.log.warn({ problem: failure.problem }, failed.message);
    return failed;
  }

  /** Doubles from attempt to attempt; the random part keeps many from coming back at once. */
  #pauseMs(number: number): number {
    const { limits, random } = this.#options;
    return backoffMs({ firstMs: limits.backoffMs, mostMs: limits.backoffMaxMs }, number - 1, random);
  }

  async #attempt<T>(
    operation: Operation,
    deadline: Timeout,
    number: number,
    attempt: (attempt: Attempt) => Promise<T>,
  ): Promise<T> {
    deadline.signal.throwIfAborted();
    const { clock, limits, metrics } = this.#options;
    const { kind, sizeBytes = 0 } = operation;
    const timeoutMs = limits.attemptTimeoutMs + transferMs(limits, sizeBytes);
    const timeout = new Timeout(clock, timeoutMs, attemptTimedOut, deadline.signal);
    const expect = (incomingBytes: number) => {
      deadline.extendTo(limits.deadlineMs + transferMs(limits, incomingBytes));
      timeout.extendTo(limits.attemptTimeoutMs + transferMs(limits, incomingBytes));
    };
    const startedMs = clock.monotonicMs();
    metrics.objstoreInFlight.inc();
    let outcome: RequestOutcome = "ok";
    try {
      const result = await untilAborted(attempt({ signal: timeout.signal, number, expect }), timeout.signal);
      metrics.objstoreBytes.inc({ direction: "out" }, sizeBytes);
      return result;
    } catch (error) {
      outcome = operation.signal?.aborted === true ? "aborted" : this.#failureOf(operation, error).outcome;
      throw error;
    } finally {
      timeout.dispose();
      metrics.objstoreInFlight.dec();
      metrics.objstoreRequests.inc({ kind, outcome });
      metrics.objstoreDuration.observe({ kind }, (clock.monotonicMs() - startedMs) / 1_000);
    }
  }
}

/** That time is up says little; what the time went into says more. */
function withEarlier(failure: Failure, earlier: Failure | undefined): Failure {
  if (failure.outcome !== "timeout" || earlier === undefined || earlier.outcome === "timeout") return failure;
  return {
    ...failure,
    brief: `${failure.brief}; before that ${earlier.brief}`,
    problem: `${failure.problem}; before that ${earlier.problem}`,
  };
}

function attemptTimedOut(afterMs: number): Error {
  return new RequestFailure("AttemptTimeout", `no answer within ${afterMs} ms`);
}

function deadlinePassed(afterMs: number): Error {
  return new RequestFailure(
    "Deadline",
    `not done within ${afterMs} ms, with all attempts and the wait for a connection`,
  );
}
